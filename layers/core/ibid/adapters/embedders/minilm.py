"""`minilm`, the default: all-MiniLM-L6-v2 (Apache-2.0), int8, English, 384 wide."""

import hashlib
from pathlib import Path

from ibid.adapters.embedders.local import LoadedModel, LocalEmbedder
from ibid.adapters.embedders.minilm_files import MODEL, TOKENIZER, foreseen_form, minilm_files
from ibid.adapters.embedders.threads import default_threads

MAX_TOKENS = 256

_WIDTH = 384
_LANGUAGES = frozenset({"english"})


def open_minilm(cache: Path, *, threads: int | None = None) -> LocalEmbedder:
    """Return the default embedder; its files are found, checked and loaded at first use.

    At the very first use on a machine the model is converted, some seconds in a process of its
    own, and kept under `cache`; if that fails the model is used as it comes, slower, and a
    warning is logged. The two are different vector spaces with different signatures. Which one
    it will be is foretold without loading anything; should a conversion fail against all signs,
    the first call raises EmbedderUnavailable, and the next one serves the model as it comes.

    Args:
        cache: A folder of this application's, made if it is missing; safe to share.
        threads: For the model's arithmetic, at least 1; None means by the machine.
    """
    return LocalEmbedder(
        lambda: _load(cache, threads or default_threads()),
        languages=_LANGUAGES,
        foretell=lambda: _signature(foreseen_form(cache), _WIDTH),
    )


def _load(cache: Path, threads: int) -> LoadedModel:
    files = minilm_files(cache)
    # onnxruntime takes a quarter of a second and 60 MB: only who embeds pays for them.
    from ibid.adapters.embedders.onnx_session import OnnxSession  # noqa: PLC0415

    session = OnnxSession(
        files.model, files.tokenizer, pooling="mean", max_tokens=MAX_TOKENS, threads=threads
    )
    return LoadedModel(session=session, signature=_signature(files.form, session.width))


def _signature(form: str, width: int) -> str:
    # Of the sources and the recipe, not of the result: the same on every machine.
    identity = f"{MODEL.sha256}:{TOKENIZER.sha256}:mean:{MAX_TOKENS}:{form}"
    digest = hashlib.sha256(identity.encode()).hexdigest()
    return f"minilm:all-MiniLM-L6-v2:{form}:{width}:{digest}"
