"""The settings file of an own ONNX model: `ibid-embedder.json` beside the model.

One JSON object; every field but `pooling` and `max_tokens` may be left out::

    {
      "pooling": "cls",
      "query_prefix": "Represent this sentence for searching relevant passages: ",
      "passage_prefix": "",
      "normalise": true,
      "max_tokens": 512,
      "languages": ["english"]
    }
"""

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from ibid.domain.errors import Misconfigured

FILE_NAME = "ibid-embedder.json"

_FIELDS = ("pooling", "query_prefix", "passage_prefix", "normalise", "max_tokens", "languages")
_POOLINGS = ("mean", "cls")
_TOKENS = range(8, 8_193)


@dataclass(frozen=True, slots=True, kw_only=True)
class OnnxSettings:
    """How a model's token states become the vector of a text.

    Attributes:
        pooling: `mean` over the text's tokens, or the state of the first one (`cls`).
        query_prefix: Put before every question, a trailing space included; empty for none.
        passage_prefix: Put before every passage, likewise.
        max_tokens: Longest input, special tokens included, 8 to 8,192; the rest is cut.
        languages: Snowball's names of the languages the model knows; empty means many.
    """

    pooling: Literal["mean", "cls"]
    query_prefix: str = ""
    passage_prefix: str = ""
    max_tokens: int
    languages: frozenset[str] = frozenset()

    def digest(self) -> str:
        """Hash what decides the vectors: all but the languages, whatever the file's layout."""
        parts = [self.pooling, self.query_prefix, self.passage_prefix, self.max_tokens]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def read_settings(path: Path) -> OnnxSettings:
    """Read and check a settings file.

    Raises:
        Misconfigured: It can't be read, or a field is wrong; the message names file and field.
    """
    try:
        fields = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise Misconfigured(f"{path} can't be read: {error.strerror}") from error
    except ValueError as error:
        raise Misconfigured(f"{path} is not JSON in UTF-8") from error
    if not isinstance(fields, dict):
        raise Misconfigured(f"{path} must hold one JSON object")
    unknown = sorted(set(fields) - set(_FIELDS))
    if unknown:
        raise Misconfigured(f"{path}: unknown field {unknown[0]!r}; known: {', '.join(_FIELDS)}")
    if fields.get("normalise", True) is not True:
        raise Misconfigured(
            f"{path}: normalise must be true or left out, since vectors are compared by cosine"
        )
    return OnnxSettings(
        pooling=_pooling(path, fields),
        query_prefix=_text(path, fields, "query_prefix"),
        passage_prefix=_text(path, fields, "passage_prefix"),
        max_tokens=_max_tokens(path, fields),
        languages=_languages(path, fields),
    )


def _pooling(path: Path, fields: dict[str, Any]) -> Literal["mean", "cls"]:
    match fields.get("pooling"):
        case "mean":
            return "mean"
        case "cls":
            return "cls"
        case _:
            raise Misconfigured(f"{path}: pooling must be one of {', '.join(_POOLINGS)}")


def _text(path: Path, fields: dict[str, Any], name: str) -> str:
    value = fields.get(name, "")
    if not isinstance(value, str):
        raise Misconfigured(f"{path}: {name} must be text")
    return value


def _max_tokens(path: Path, fields: dict[str, Any]) -> int:
    value = fields.get("max_tokens")
    if not isinstance(value, int) or isinstance(value, bool) or value not in _TOKENS:
        raise Misconfigured(
            f"{path}: max_tokens must be a whole number from {_TOKENS[0]} to {_TOKENS[-1]}"
        )
    return value


def _languages(path: Path, fields: dict[str, Any]) -> frozenset[str]:
    value = fields.get("languages", [])
    if not isinstance(value, list) or not all(
        isinstance(name, str) and name.isalpha() and name.islower() for name in value
    ):
        raise Misconfigured(
            f'{path}: languages must be a list of lower-case names such as ["english"]'
        )
    return frozenset(value)
