"""The question to paste is one that the project can answer."""

from dataclasses import replace

from ibid.cli.first_question import OVERVIEW, first_question
from ibid.domain.projects import Project
from tests.contract.passages import PROJECT, SIGNATURE, TENANT, chunk, fill, unit
from tests.fakes.index import FakePassageIndex
from tests.fakes.samples import a_project


def project(*, signature: str | None, generation: int = 1) -> Project:
    return replace(
        a_project("p"),
        tenant=TENANT,
        id=PROJECT,
        active_generation=generation,
        embedding_signature=signature,
    )


async def test_with_vectors_it_asks_for_an_overview() -> None:
    index = FakePassageIndex()
    await fill(index, [chunk("a.py", symbol="handler")], [unit(1, 0, 0)])

    assert await first_question(index, project(signature=SIGNATURE)) == OVERVIEW


async def test_by_words_alone_it_asks_for_the_longest_definition_of_the_source() -> None:
    index = FakePassageIndex()
    await fill(
        index,
        [
            chunk("src/a.py", symbol="handler", content="def handler(): ..."),
            chunk("src/b.py", symbol="Router", content="class Router:\n    ..." * 3),
            chunk("src/c.py", symbol="Router.add other", content="x" * 500),
            chunk("src/d.py", symbol="_private", content="z" * 500),
            chunk("tests/test_a.py", symbol="TestRouter", content="y" * 500),
        ],
    )

    assert await first_question(index, project(signature=None)) == "Where is Router defined?"


async def test_where_nothing_is_defined_or_left_it_asks_for_an_overview() -> None:
    index = FakePassageIndex()
    await fill(index, [chunk("notes.txt", content="words")])

    assert await first_question(index, project(signature=None)) == OVERVIEW
    assert await first_question(index, project(signature=None, generation=7)) == OVERVIEW
