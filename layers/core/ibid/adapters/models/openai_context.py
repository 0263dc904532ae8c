"""Ask an OpenAI-compatible server for its model's context, where it tells.

vLLM, Groq, OpenRouter and llama.cpp tell in `/v1/models`, llama.cpp in `/props` too. Ollama tells
in `/api/show` what the model could take, which is not what it is run with: it drops the beginning
of what is longer than `num_ctx`, silently. So of Ollama the loaded context counts, else `num_ctx`,
else what it runs models with unless told otherwise.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import openai
from openai import AsyncOpenAI

SAFE_GUESS: Final = 4_096
"""Tokens; the least that servers run models with by default."""

_HOSTED: Final[Sequence[tuple[str, int]]] = (
    ("gpt-3.5", 16_000),
    ("gpt-4o", 128_000),
    ("gpt-4.1", 128_000),
    ("gpt-4-turbo", 128_000),
    ("gpt-4", 8_000),
    ("gpt-5", 128_000),
    ("o1", 128_000),
    ("o3", 128_000),
    ("o4", 128_000),
)
_FIELDS: Final = ("context_length", "max_model_len", "context_window", "loaded_context_length")
_NUM_CTX: Final = re.compile(r"^\s*num_ctx\s+(\d+)", re.MULTILINE)


async def ask_context(client: AsyncOpenAI, model: str, *, timeout_s: float) -> int | None:
    """Ask the server.

    Returns:
        Tokens; the safe guess where it does not tell; None if it could not be reached.
    """
    if client.base_url.host == "api.openai.com":
        return next((size for start, size in _HOSTED if model.startswith(start)), SAFE_GUESS)
    root = str(client.base_url).rstrip("/").removesuffix("/v1")
    asked = client.with_options(timeout=timeout_s, max_retries=0)
    try:
        listed = await _get(asked, "/models")
        if size := _of_models(listed, model):
            return size
        if shown := await _show(asked, root, model):
            running = await _get(asked, f"{root}/api/ps")
            return _of_ollama(shown, running, model)
        return _of_props(await _get(asked, f"{root}/props")) or SAFE_GUESS
    except openai.APIConnectionError:
        return None


async def _get(client: AsyncOpenAI, path: str) -> Mapping[str, Any]:
    try:
        return _mapping(await client.get(path, cast_to=object))
    except (openai.APIStatusError, ValueError):
        return {}


async def _show(client: AsyncOpenAI, root: str, model: str) -> Mapping[str, Any]:
    try:
        answer = await client.post(f"{root}/api/show", body={"model": model}, cast_to=object)
    except (openai.APIStatusError, ValueError):
        return {}
    return _mapping(answer)


def _of_models(listed: Mapping[str, Any], model: str) -> int | None:
    """The entry of our model, else of the only one there is."""
    entries = _items(listed.get("data"))
    ours = [entry for entry in entries if entry.get("id") == model] or entries
    if len(ours) != 1:
        return None
    meta = _mapping(ours[0].get("meta"))
    return next(_sizes([*(ours[0].get(name) for name in _FIELDS), meta.get("n_ctx")]), None)


def _of_ollama(shown: Mapping[str, Any], running: Mapping[str, Any], model: str) -> int:
    names = {model, f"{model}:latest"}
    loaded = [
        entry.get("context_length")
        for entry in _items(running.get("models"))
        if names & {entry.get("name"), entry.get("model")}
    ]
    parameters = shown.get("parameters")
    chosen = _NUM_CTX.search(parameters) if isinstance(parameters, str) else None
    possible = [
        size
        for name, size in _mapping(shown.get("model_info")).items()
        if name.endswith(".context_length")
    ]
    run_with = next(_sizes([*loaded, int(chosen[1]) if chosen else None]), SAFE_GUESS)
    return min(run_with, next(_sizes(possible), run_with))


def _of_props(props: Mapping[str, Any]) -> int | None:
    settings = _mapping(props.get("default_generation_settings"))
    return next(_sizes([settings.get("n_ctx"), props.get("n_ctx")]), None)


def _sizes(values: Sequence[object]) -> Iterator[int]:
    return (value for value in values if type(value) is int and value > 0)


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _items(value: object) -> list[Mapping[str, Any]]:
    return [entry for entry in value if isinstance(entry, dict)] if isinstance(value, list) else []
