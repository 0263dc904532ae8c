"""`onnx:<folder>`: an own model from one `.onnx`, `tokenizer.json` and `ibid-embedder.json`."""

import hashlib
from pathlib import Path

from ibid.adapters.embedders.digests import file_digest
from ibid.adapters.embedders.local import LoadedModel, LocalEmbedder
from ibid.adapters.embedders.onnx_settings import FILE_NAME, OnnxSettings, read_settings
from ibid.adapters.embedders.threads import default_threads
from ibid.domain.errors import Misconfigured

_TOKENIZER = "tokenizer.json"


class OnnxEmbedder(LocalEmbedder):
    """Implements Embedder over a folder's model.

    The signature holds the width and a digest of the model's files, the tokenizer and the
    settings that decide a vector; the folder's name and place are not in it.
    """

    def __init__(self, folder: Path, *, threads: int | None = None) -> None:
        """Check the folder's files and settings; the model itself is loaded at first use.

        Args:
            folder: Holds exactly one file that ends in `.onnx`, its external data if any
                (`<model>.onnx_data` or `<model>.onnx.data`), the tokenizer and the settings.
            threads: For the model's arithmetic, at least 1; None means by the machine.

        Raises:
            Misconfigured: A file is missing or wrong; the message names file and field.
        """
        model = _only_model(folder)
        tokenizer = folder / _TOKENIZER
        if not tokenizer.is_file():
            raise Misconfigured(f"{tokenizer} is missing")
        settings = read_settings(folder / FILE_NAME)
        super().__init__(
            lambda: _load(model, tokenizer, settings, threads or default_threads()),
            languages=settings.languages,
        )


def _only_model(folder: Path) -> Path:
    if not folder.is_dir():
        raise Misconfigured(f"{folder} is no folder")
    models = sorted(path for path in folder.glob("*.onnx") if path.is_file())
    if len(models) != 1:
        raise Misconfigured(f"{folder} must hold exactly one .onnx file, not {len(models)}")
    return models[0]


def _load(model: Path, tokenizer: Path, settings: OnnxSettings, threads: int) -> LoadedModel:
    # onnxruntime takes a quarter of a second and 60 MB: only who embeds pays for them.
    from ibid.adapters.embedders.onnx_session import OnnxSession  # noqa: PLC0415

    session = OnnxSession(
        model,
        tokenizer,
        pooling=settings.pooling,
        max_tokens=settings.max_tokens,
        threads=threads,
    )
    return LoadedModel(
        session=session,
        signature=f"onnx:{session.width}:{_digest(model, tokenizer, settings)}",
        query_prefix=settings.query_prefix,
        passage_prefix=settings.passage_prefix,
    )


def _digest(model: Path, tokenizer: Path, settings: OnnxSettings) -> str:
    external = sorted(path for path in model.parent.glob(f"{model.name}?*") if path.is_file())
    digests = [file_digest(path) for path in (model, *external, tokenizer)]
    return hashlib.sha256(":".join([*digests, settings.digest()]).encode()).hexdigest()
