"""Opens the embedder and the model that the settings name."""

from contextlib import AsyncExitStack
from pathlib import Path
from typing import Protocol

from ibid.domain.errors import Misconfigured
from ibid.ports.embedder import Embedder
from ibid.ports.models import ChatModel
from ibid.settings import Settings


class _ClosableEmbedder(Embedder, Protocol):
    async def aclose(self) -> None: ...


class _ClosableModel(ChatModel, Protocol):
    async def aclose(self) -> None: ...


async def open_embedder(settings: Settings, stack: AsyncExitStack) -> Embedder | None:
    """Make the embedder that the settings name, closed with the stack; a local one loads late.

    Raises:
        Misconfigured: Its files or its account can't be used.
        EmbedderUnavailable: A remote one did not answer.
    """
    kind, _, name = settings.embedder.partition(":")
    threads = settings.embed_threads or None
    embedder: _ClosableEmbedder
    match kind:
        case "none":
            return None
        case "minilm":
            from ibid.adapters.embedders.minilm import open_minilm

            embedder = open_minilm(settings.data / "models", threads=threads)
        case "onnx":
            from ibid.adapters.embedders.onnx import OnnxEmbedder

            embedder = own = OnnxEmbedder(Path(name), threads=threads)
            await own.ready()  # a model that can't be used stops the start
        case "openai":
            from ibid.adapters.embedders.openai import open_openai_embedder

            embedder = await open_openai_embedder(
                name, base_url=settings.openai_base_url, api_key=_openai_key(settings)
            )
        case "bedrock":
            from ibid.adapters.embedders.bedrock import BedrockEmbedder

            embedder = BedrockEmbedder(name)
        case _:
            raise Misconfigured(f"IBID_EMBEDDER: there is no embedder {kind!r}")
    stack.push_async_callback(embedder.aclose)
    return embedder


def open_model(settings: Settings, stack: AsyncExitStack) -> ChatModel:
    """Make the model that the settings name, closed with the stack; nothing is sent yet.

    Raises:
        Misconfigured: There is no such kind.
    """
    kind, _, name = settings.model.partition(":")
    model: _ClosableModel
    match kind:
        case "extractive":
            from ibid.adapters.models.extractive import ExtractiveModel

            return ExtractiveModel()
        case "openai":
            from ibid.adapters.models.openai import OpenAiModel

            model = OpenAiModel(
                name,
                base_url=settings.openai_base_url,
                api_key=_openai_key(settings),
                context_tokens=settings.model_context,
            )
        case "bedrock":
            from ibid.adapters.models.bedrock import BedrockModel

            model = BedrockModel(name, region=None, context_tokens=settings.model_context)
        case _:
            raise Misconfigured(f"IBID_MODEL: there is no model {kind!r}")
    stack.push_async_callback(model.aclose)
    return model


def _openai_key(settings: Settings) -> str | None:
    """Return the key, or None for a server that asks for none.

    Raises:
        Misconfigured: OpenAI itself is meant, and there is no key.
    """
    key = settings.openai_api_key
    if key is None and settings.openai_base_url is None:
        raise Misconfigured(
            "openai:... needs OPENAI_API_KEY, or OPENAI_BASE_URL for a server that asks for none"
        )
    return None if key is None else key.get_secret_value()
