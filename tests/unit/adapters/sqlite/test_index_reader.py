"""A large generation is scored by two threads, to the same cosines."""

from pathlib import Path

import pytest

from ibid.adapters.sqlite import index_reader
from ibid.adapters.sqlite.index import SqlitePassageIndex
from ibid.ports.index import Candidates, IndexQuery
from tests.contract.passages import PROJECT, TENANT, chunk, fill, unit


async def found(folder: Path) -> Candidates:
    index = SqlitePassageIndex(folder)
    count = 31
    vectors = [unit(1.0, number / 7, -number / 5) for number in range(count)]
    try:
        await fill(index, [chunk(f"{number:02}.py") for number in range(count)], vectors)
        return await index.candidates(
            IndexQuery(terms={"text": 1.0}, vector=unit(0.2, 0.9, -0.4)),
            tenant=TENANT,
            project_id=PROJECT,
            generation=1,
            timeout_s=10,
        )
    finally:
        await index.close()


async def test_two_threads_find_what_one_finds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    by_one = await found(tmp_path / "one")
    monkeypatch.setattr(index_reader, "_ROWS_FOR_TWO", 2)

    by_two = await found(tmp_path / "two")

    assert by_two == by_one
    assert len(by_two.items) == 31
