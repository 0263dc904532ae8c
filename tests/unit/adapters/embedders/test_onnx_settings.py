import json
from pathlib import Path
from typing import Any

import pytest

from ibid.adapters.embedders.onnx_settings import OnnxSettings, read_settings
from ibid.domain.errors import Misconfigured

GOOD = {"pooling": "mean", "max_tokens": 256}


def written(folder: Path, fields: object) -> Path:
    path = folder / "ibid-embedder.json"
    path.write_text(fields if isinstance(fields, str) else json.dumps(fields))
    return path


def test_only_pooling_and_longest_input_must_be_set(tmp_path: Path) -> None:
    settings = read_settings(written(tmp_path, GOOD))

    assert settings == OnnxSettings(pooling="mean", max_tokens=256)


def test_every_field_is_read(tmp_path: Path) -> None:
    fields = {
        "pooling": "cls",
        "query_prefix": "query: ",
        "passage_prefix": "passage: ",
        "normalise": True,
        "max_tokens": 512,
        "languages": ["english", "spanish"],
    }

    assert read_settings(written(tmp_path, fields)) == OnnxSettings(
        pooling="cls",
        query_prefix="query: ",
        passage_prefix="passage: ",
        max_tokens=512,
        languages=frozenset({"english", "spanish"}),
    )


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"pooling": "max"}, "pooling"),
        ({"pooling": None}, "pooling"),
        ({"max_tokens": 7}, "max_tokens"),
        ({"max_tokens": 8_193}, "max_tokens"),
        ({"max_tokens": True}, "max_tokens"),
        ({"max_tokens": "256"}, "max_tokens"),
        ({"query_prefix": 1}, "query_prefix"),
        ({"passage_prefix": None}, "passage_prefix"),
        ({"normalise": False}, "normalise"),
        ({"languages": "english"}, "languages"),
        ({"languages": ["English"]}, "languages"),
        ({"languages": [1]}, "languages"),
        ({"pool": "mean"}, "'pool'"),
    ],
)
def test_a_wrong_field_is_refused_by_file_and_name(
    tmp_path: Path, change: dict[str, Any], field: str
) -> None:
    path = written(tmp_path, {**GOOD, **change})

    with pytest.raises(Misconfigured) as caught:
        read_settings(path)

    assert str(path) in str(caught.value)
    assert field in str(caught.value)


@pytest.mark.parametrize("text", ["{", "[1]", '"mean"'])
def test_what_is_no_json_object_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(Misconfigured, match="JSON"):
        read_settings(written(tmp_path, text))


def test_bytes_that_are_no_text_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "ibid-embedder.json"
    path.write_bytes(b"\xff\xfe{")

    with pytest.raises(Misconfigured, match="UTF-8"):
        read_settings(path)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(Misconfigured, match=r"ibid-embedder\.json can't be read"):
        read_settings(tmp_path / "ibid-embedder.json")


def test_the_digest_follows_what_decides_a_vector_and_nothing_else() -> None:
    base = OnnxSettings(pooling="mean", max_tokens=256)

    alike = OnnxSettings(pooling="mean", max_tokens=256, languages=frozenset({"english"}))
    others = [
        OnnxSettings(pooling="cls", max_tokens=256),
        OnnxSettings(pooling="mean", max_tokens=128),
        OnnxSettings(pooling="mean", max_tokens=256, query_prefix="q: "),
        OnnxSettings(pooling="mean", max_tokens=256, passage_prefix="q: "),
    ]

    assert alike.digest() == base.digest()
    assert len({base.digest(), *(other.digest() for other in others)}) == 5
