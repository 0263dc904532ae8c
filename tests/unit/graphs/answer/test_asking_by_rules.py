"""The default answerer, which needs no model, asks and understands on a real index of a project."""

from collections.abc import Mapping

import pytest

from ibid.adapters.models.extractive import ExtractiveModel
from ibid.domain.answers import TurnPause
from ibid.domain.projects import ProjectSettings
from ibid.graphs.answer.build import AnswerGraph
from ibid.graphs.answer.deps import AnswerDeps
from ibid.indexing.chunking import chunk_file
from ibid.retrieval.search import PassageSearch
from tests.fakes.index import FakePassageIndex
from tests.unit.graphs.answer.asking import ask_graph
from tests.unit.graphs.answer.turns import read, resumed, turn

FILES: Mapping[str, str] = {
    "src/config.py": (
        'def load(path):\n    """Load the configuration from a TOML file."""\n'
        "    return parse(open(path))\n\n\n"
        'def save(path):\n    """Save the configuration."""\n    return write(path)\n'
    ),
    "src/data.py": (
        'def load(path):\n    """Load rows from a CSV file."""\n    return rows(open(path))\n'
    ),
    "src/factory.py": (
        'def create_app():\n    """Create the application with its configuration."""\n'
        "    return App(load('app.toml'))\n"
    ),
    "README.md": "# Demo\n\nA demo project: `create_app` makes its application.\n",
    "docs/setup.md": "# Setup\n\nInstall it with pip.\n",
    "admin/setup.md": "# Setup\n\nAsk the administrator for a key.\n",
}


@pytest.fixture
async def given() -> AnswerDeps:
    index = FakePassageIndex()
    writer = await index.write(tenant="acme", project_id="p1", generation=3)
    for path, text in FILES.items():
        await writer.add(chunk_file(path, text, commit_sha=None).chunks, None)
    await writer.seal(
        embedding_signature=None, main_language="english", commit_sha=None, source_digest="x"
    )

    async def active_generation() -> int:
        return 3

    return AnswerDeps(
        search=PassageSearch(index=index, embedder=None),
        model=ExtractiveModel(),
        settings=ProjectSettings(),
        permalink=lambda _: None,
        active_generation=active_generation,
    )


async def pause_of(question: str, graph: AnswerGraph, given: AnswerDeps) -> TurnPause:
    return (await read(turn(question), given, graph=graph)).pause


@pytest.mark.parametrize(
    ("reply", "docstring"),
    [
        ("src/data.py", "Load rows from a CSV file."),
        ("data", "Load rows from a CSV file."),
        ("src/config.py: load", "Load the configuration from a TOML file."),
        ("config.py", "Load the configuration from a TOML file."),
        ("the CSV one", "Load rows from a CSV file."),
        ("toml", "Load the configuration from a TOML file."),
    ],
)
async def test_two_functions_of_one_name_are_asked_about_and_the_reply_narrows(
    given: AnswerDeps, reply: str, docstring: str
) -> None:
    graph = ask_graph()
    pause = await pause_of("What does load do?", graph, given)

    seen = await read(resumed(turn("What does load do?"), pause, reply), given, graph=graph)

    assert set(pause.clarification.options) == {"src/config.py: load", "src/data.py: load"}
    assert docstring in seen.result.answer
    assert seen.result.cited_indexes
    assert seen.result.assumptions == ()


async def test_an_options_number_means_the_option_that_was_shown_there(given: AnswerDeps) -> None:
    graph = ask_graph()
    pause = await pause_of("What does load do?", graph, given)

    for number, option in enumerate(pause.clarification.options, start=1):
        graph = ask_graph()
        pause = await pause_of("What does load do?", graph, given)
        seen = await read(
            resumed(turn("What does load do?"), pause, str(number)), given, graph=graph
        )
        assert f"{seen.result.passages[0].file_path}: load" == option


async def test_two_documents_of_one_name_are_asked_about(given: AnswerDeps) -> None:
    graph = ask_graph()
    pause = await pause_of("What is in setup.md?", graph, given)

    seen = await read(resumed(turn("What is in setup.md?"), pause, "admin"), given, graph=graph)

    assert set(pause.clarification.options) == {"docs/setup.md", "admin/setup.md"}
    assert "Ask the administrator for a key." in seen.result.answer


@pytest.mark.parametrize(
    "question",
    [
        "What does create_app do?",
        "What does load in config do?",
        "What does load do in src/data.py?",
        "How is the configuration saved?",
        "What does save do?",
        "What is in README.md?",
        "What does this project do?",
        "How do I install it with pip?",
        "Hello!",
    ],
)
async def test_a_question_with_one_reading_is_answered_at_once(
    given: AnswerDeps, question: str
) -> None:
    seen = await read(turn(question), given, graph=ask_graph())

    assert seen.pauses == []
    assert seen.result.answer
    assert seen.result.clarification is None
