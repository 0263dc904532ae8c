"""The graph `ask`: when it pauses, and what each reply makes of the turn."""

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path

import pytest

from ibid.adapters.models.extractive import ExtractiveModel
from ibid.adapters.sqlite.saver import EmbeddedSaver
from ibid.domain.answers import Clarification, GroundingWarning, Intent
from ibid.domain.errors import GenerationGone, ModelUnavailable
from ibid.domain.events import CitationsFound, StatusChanged
from ibid.domain.projects import ProjectSettings
from ibid.graphs.answer.ask_state import AskState, first_ask_state
from ibid.graphs.answer.build import AnswerGraph, build_answer_graph
from ibid.graphs.answer.texts import FixedText, fixed_text
from tests.fakes.leased_memory import LeasedMemorySaver
from tests.fakes.scripted_model import Decision, ScriptedModel
from tests.fakes.search import FakePassageSearch
from tests.unit.graphs.answer.asking import ASKED, CONFIG, DATA, OTHER, TESTS, TIED, ask_graph
from tests.unit.graphs.answer.turns import deps, passage, read, resumed, turn

CODE = {"intent": "codebase_question", "search_query": ASKED}
INSUFFICIENT = {"sufficient": False, "gap": "", "better_query": "better"}
OPTIONS = ("src/config.py: load", "src/data.py: load")


@pytest.fixture(params=["memory", "embedded"])
async def graph(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[AnswerGraph]:
    if request.param == "memory":
        yield ask_graph()
        return
    saver = await EmbeddedSaver.open(tmp_path / "checkpoints.sqlite", term_s=0.5)
    yield build_answer_graph(clarify=True, checkpointer=saver)
    await saver.close()


async def test_a_tie_pauses_and_the_reply_finishes_the_same_turn(graph: AnswerGraph) -> None:
    model, search = ScriptedModel(), FakePassageSearch(TIED)
    given = deps(model, search)

    first = await read(turn(ASKED), given, graph=graph)

    assert first.pause.node == "clarify"
    assert first.pause.clarification == Clarification(
        question="More than one place defines “load”. Which one do you mean?", options=OPTIONS
    )
    assert first.phases == ["classifying", "retrieving"]
    assert first.results == []
    assert first.text == ""

    second = await read(resumed(turn(ASKED), first.pause, "src/data.py"), given, graph=graph)

    assert [request.task for request in model.requests] == ["classify", "grade", "answer"]
    assert len(search.searches) == 1
    assert second.phases == ["grading", "generating"]
    assert [found.file_path for found in second.sources[0].citations] == [
        "src/data.py",
        "docs/guide.md",
    ]
    assert second.result.answer == second.text == "It is in the first excerpt [1]."
    assert [found.file_path for found in second.result.citations] == [
        "src/data.py",
        "docs/guide.md",
    ]
    assert second.result.assumptions == ()
    assert second.result.clarification is None
    assert second.result.retrieval_attempts == 1
    assert model.calls("answer")[0].question == "What does load do? (src/data.py: load)"


@pytest.mark.parametrize(
    ("reply", "path"),
    [
        ("2", "src/data.py"),
        ("src/config.py: load", "src/config.py"),
        ("config", "src/config.py"),
        ("the one with rows", "src/data.py"),
    ],
)
async def test_every_way_to_name_an_option_narrows(reply: str, path: str) -> None:
    graph, given = ask_graph(), deps(search=FakePassageSearch(TIED))
    pause = (await read(turn(ASKED), given, graph=graph)).pause

    seen = await read(resumed(turn(ASKED), pause, reply), given, graph=graph)

    assert seen.result.passages[0].file_path == path
    assert len(seen.result.passages) == 2
    assert seen.result.assumptions == ()


async def test_a_reply_that_names_two_of_three_is_asked_about_once_more(
    graph: AnswerGraph,
) -> None:
    model, search = ScriptedModel(), FakePassageSearch([CONFIG, DATA, TESTS])
    given = deps(model, search)
    first = (await read(turn(ASKED), given, graph=graph)).pause

    second = (await read(resumed(turn(ASKED), first, "1 and 3"), given, graph=graph)).pause
    seen = await read(resumed(turn(ASKED), second, "2", run="t-3"), given, graph=graph)

    assert second.interrupt_id != first.interrupt_id
    assert second.node == "clarify"
    assert second.clarification.options == ("src/config.py: load", "src/fixtures.py: load")
    assert [each.file_path for each in seen.result.passages] == ["src/fixtures.py"]
    assert [request.task for request in model.requests] == ["classify", "grade", "answer"]
    assert len(search.searches) == 1


async def test_after_three_replies_it_goes_on_with_what_is_left() -> None:
    graph = ask_graph()
    many = [replace(CONFIG, file_path=f"src/m{at}.py") for at in range(8)]
    given = deps(search=FakePassageSearch(many))
    pause = (await read(turn(ASKED), given, graph=graph)).pause
    for reply in ("1, 2, 3, 4, 5, 6", "1, 2, 3, 4"):
        pause = (await read(resumed(turn(ASKED), pause, reply), given, graph=graph)).pause

    seen = await read(resumed(turn(ASKED), pause, "1, 2"), given, graph=graph)

    assert [each.file_path for each in seen.result.passages] == ["src/m0.py", "src/m1.py"]
    assert seen.result.assumptions == ("This is about all of the options.",)


@pytest.mark.parametrize("reply", ["0", "9", "?", "{}", "…"])
async def test_a_reply_that_says_nothing_takes_the_best_and_says_so(reply: str) -> None:
    graph, given = ask_graph(), deps(search=FakePassageSearch(TIED))
    pause = (await read(turn(ASKED), given, graph=graph)).pause

    seen = await read(resumed(turn(ASKED), pause, reply), given, graph=graph)

    assert [each.file_path for each in seen.result.passages] == ["src/config.py", "docs/guide.md"]
    assert seen.result.assumptions == (
        "The reply chose none of the options, so this is about src/config.py: load.",
    )


async def test_all_of_them_keeps_all_and_says_so() -> None:
    graph, given = ask_graph(), deps(search=FakePassageSearch(TIED))
    pause = (await read(turn(ASKED), given, graph=graph)).pause

    seen = await read(resumed(turn(ASKED), pause, "both"), given, graph=graph)

    assert len(seen.result.passages) == 3
    assert seen.result.assumptions == ("This is about all of the options.",)


@pytest.mark.parametrize("language", ["en", "pt-BR", "es-419"])
async def test_none_of_them_ends_with_a_plain_question_and_no_model(language: str) -> None:
    graph, model = ask_graph(), ScriptedModel()
    given = deps(model, FakePassageSearch(TIED))
    asked = turn(ASKED, reply_language=language)
    pause = (await read(asked, given, graph=graph)).pause

    seen = await read(resumed(asked, pause, "none of these"), given, graph=graph)

    text = fixed_text(FixedText.ASK_AGAIN, reply_language=language)
    assert seen.text == seen.result.answer == text
    assert seen.result.clarification == Clarification(question=text)
    assert seen.sources == [CitationsFound(citations=())]
    assert seen.result.citations == ()
    assert seen.result.warnings == ()
    assert seen.result.suggestions == ()
    assert [request.task for request in model.requests] == ["classify"]


async def test_words_that_name_no_option_are_searched_for_with_the_question() -> None:
    graph = ask_graph()
    network = passage("def load(url): ...", file_path="src/network.py", symbol="load")
    search = FakePassageSearch(TIED, [network, *TIED])
    given = deps(search=search)
    pause = (await read(turn(ASKED), given, graph=graph)).pause

    seen = await read(resumed(turn(ASKED), pause, "that of the network"), given, graph=graph)

    assert search.searches[1].query == "What does load do? that of the network"
    assert seen.phases == ["retrieving", "grading", "generating"]
    assert seen.result.passages[0].file_path == "src/network.py"
    assert seen.result.assumptions == (
        "The reply chose none of the options, so its words were added to the question.",
    )
    assert seen.result.retrieval_attempts == 2


async def test_words_that_find_nothing_leave_what_was_found_before() -> None:
    graph = ask_graph()
    given = deps(search=FakePassageSearch(TIED, []))
    pause = (await read(turn(ASKED), given, graph=graph)).pause

    seen = await read(resumed(turn(ASKED), pause, "banana"), given, graph=graph)

    assert len(seen.result.passages) == 3
    assert seen.result.assumptions[-1] == fixed_text(FixedText.KEPT_EARLIER, reply_language="en")


async def test_words_that_find_nothing_to_a_bare_question_end_as_nothing_found() -> None:
    graph, given = ask_graph(), deps(search=FakePassageSearch([]))
    asked = turn("How does it work?")
    pause = (await read(asked, given, graph=graph)).pause

    seen = await read(resumed(asked, pause, "banana"), given, graph=graph)

    assert seen.text == fixed_text(FixedText.NO_CONTEXT, reply_language="en")
    assert seen.result.assumptions == ()
    assert seen.result.warnings == (GroundingWarning.NO_CONTEXT,)


async def test_a_question_that_points_at_nothing_is_asked_about_before_any_search() -> None:
    graph, model = ask_graph(), ScriptedModel()
    search = FakePassageSearch([CONFIG])
    given = deps(model, search)
    asked = turn("How does it work?")

    first = (await read(asked, given, graph=graph)).pause
    again = (await read(resumed(asked, first, "that"), given, graph=graph)).pause
    seen = await read(resumed(asked, again, "the config", run="t-3"), given, graph=graph)

    assert first.clarification.options == ()
    assert "“it”" in first.clarification.question
    assert again.clarification == first.clarification
    assert again.interrupt_id != first.interrupt_id
    assert [each.query for each in search.searches] == ["How does it work? the config"]
    assert seen.phases == ["retrieving", "grading", "generating"]
    assert seen.result.assumptions == ()
    assert model.calls("answer")[0].question == "How does it work? (the config)"


async def test_who_never_says_what_is_asked_to_ask_again() -> None:
    graph, given = ask_graph(), deps()
    asked = turn("How does it work?")
    pause = (await read(asked, given, graph=graph)).pause
    for reply in ("?", "all"):
        pause = (await read(resumed(asked, pause, reply), given, graph=graph)).pause

    seen = await read(resumed(asked, pause, "that"), given, graph=graph)

    assert seen.result.clarification is not None
    assert seen.result.retrieval_attempts == 0


async def test_a_tie_behind_a_reply_pauses_again_in_the_same_turn() -> None:
    graph, search = ask_graph(), FakePassageSearch(TIED)
    given = deps(search=search)
    asked = turn("How does it work?")
    first = (await read(asked, given, graph=graph)).pause

    second = (await read(resumed(asked, first, "`load`"), given, graph=graph)).pause
    seen = await read(resumed(asked, second, "2", run="t-3"), given, graph=graph)

    assert second.clarification.options == OPTIONS
    assert seen.result.passages[0].file_path == "src/data.py"
    assert len(search.searches) == 1


async def test_a_better_query_after_a_reply_finds_nothing_that_was_turned_down() -> None:
    graph = ask_graph()
    search = FakePassageSearch(TIED)
    given = deps(ScriptedModel(decisions={"grade": [INSUFFICIENT]}), search)
    pause = (await read(turn(ASKED), given, graph=graph)).pause

    seen = await read(resumed(turn(ASKED), pause, "2"), given, graph=graph)

    assert [each.query for each in search.searches] == [ASKED, "better"]
    assert [each.file_path for each in seen.result.passages] == ["src/data.py", "docs/guide.md"]


async def test_a_new_generation_is_searched_again_and_narrowed_again() -> None:
    graph = ask_graph()
    moved = replace(DATA, start_line=90, end_line=91)
    search = FakePassageSearch(TIED, [moved, CONFIG])
    given = deps(search=search)
    pause = (await read(turn(ASKED), given, graph=graph)).pause

    seen = await read(resumed(turn(ASKED), pause, "2", generation=4), given, graph=graph)

    assert [each.generation for each in search.searches] == [3, 4]
    assert [(each.file_path, each.start_line) for each in seen.result.passages] == [
        ("src/data.py", 90)
    ]


async def test_the_generation_of_a_resumed_run_may_be_gone_as_well() -> None:
    graph = ask_graph()
    search = FakePassageSearch(TIED, GenerationGone("5"), [DATA])
    given = deps(search=search)
    pause = (await read(turn(ASKED), given, graph=graph)).pause

    seen = await read(resumed(turn(ASKED), pause, "2", generation=5), given, graph=graph)

    assert [each.generation for each in search.searches] == [3, 5, 4]
    assert len(seen.result.passages) == 1


@pytest.mark.parametrize(
    ("judgement", "options"),
    [
        (["the parser", "the planner"], ("the parser", "the planner")),
        (["a", "A", " ", 7, None, "b\nc"], ("a", "b c")),
        ([f"option {at}" for at in range(20)], tuple(f"option {at}" for at in range(8))),
        (["only one"], ()),
        ("no list", ()),
        (None, ()),
    ],
)
async def test_an_unsure_model_asks_with_its_options(
    judgement: object, options: tuple[str, ...]
) -> None:
    decision = {**CODE, "needs_clarification": True, "clarification_options": judgement}
    model = ScriptedModel(decisions={"classify": [decision]})

    pause = (await read(turn(ASKED), deps(model), graph=ask_graph())).pause

    assert pause.clarification == Clarification(
        question=fixed_text(FixedText.WHICH_INTENT, reply_language="en", phrase=""),
        options=options,
    )


async def test_the_reply_to_an_unsure_model_is_searched_for_without_another_judgement() -> None:
    decision = {
        **CODE,
        "needs_clarification": True,
        "clarification_options": ["parser", "planner"],
    }
    model, search = ScriptedModel(decisions={"classify": [decision]}), FakePassageSearch([OTHER])
    graph, given = ask_graph(), deps(model, search)
    pause = (await read(turn(ASKED), given, graph=graph)).pause

    seen = await read(resumed(turn(ASKED), pause, "2"), given, graph=graph)

    assert [each.query for each in search.searches] == ["What does load do? planner"]
    assert len(model.calls("classify")) == 1
    assert seen.result.assumptions == ()


@pytest.mark.parametrize(
    "decision",
    [
        CODE,
        {**CODE, "needs_clarification": False, "clarification_options": ["a", "b"]},
        {**CODE, "needs_clarification": "yes"},
        {**CODE, "intent": "out_of_scope", "needs_clarification": True},
        {**CODE, "intent": "conversational", "needs_clarification": True},
        ModelUnavailable("away"),
        {"intent": "nonsense", "needs_clarification": True},
    ],
)
async def test_a_model_that_is_sure_silent_or_away_leaves_it_to_the_rules(
    decision: Decision,
) -> None:
    model = ScriptedModel(decisions={"classify": [decision]})

    seen = await read(turn(ASKED), deps(model), graph=ask_graph())

    assert seen.pauses == []
    assert seen.result.answer


async def test_with_classify_switched_off_the_rules_still_ask() -> None:
    settings = ProjectSettings(classify_intent=False, grade_evidence=False)
    given = deps(search=FakePassageSearch(TIED), settings=settings)
    graph = ask_graph()

    seen = await read(turn(ASKED), given, graph=graph)

    assert seen.phases == ["retrieving"]
    assert seen.pause.clarification.options == OPTIONS
    finished = await read(resumed(turn(ASKED), seen.pause, "1"), given, graph=graph)
    assert finished.result.passages[0].file_path == "src/config.py"


async def test_the_model_is_asked_for_its_judgement_in_this_graph_only() -> None:
    model = ScriptedModel()

    await read(turn(ASKED), deps(model), graph=ask_graph())
    await read(turn(ASKED), deps(model))

    asking, plain = model.calls("classify")
    assert asking.schema is not None
    assert plain.schema is not None
    assert set(asking.schema["properties"]) - set(plain.schema["properties"]) == {
        "needs_clarification",
        "clarification_options",
    }
    assert "needs_clarification" not in plain.messages[0].content


@pytest.mark.parametrize(
    ("question", "phases"),
    [("Thanks!", ["classifying", "generating"]), ("How does App.run start?", None)],
)
async def test_what_is_clear_goes_the_way_it_goes_in_the_other_graph(
    question: str, phases: list[str] | None
) -> None:
    given = deps(ExtractiveModel())

    one = await read(turn(question), given, graph=ask_graph())
    other = await read(turn(question), given)

    assert one.events == other.events
    assert one.result == other.result
    assert phases is None or one.phases == phases


async def test_a_refusal_stays_one() -> None:
    model = ScriptedModel(decisions={"classify": [{**CODE, "intent": "out_of_scope"}]})

    seen = await read(turn(ASKED), deps(model), graph=ask_graph())

    assert seen.result.intent is Intent.OUT_OF_SCOPE
    assert seen.text == fixed_text(FixedText.REFUSE, reply_language="en")


async def test_where_nothing_was_found_other_questions_are_suggested() -> None:
    async def nearest(
        query: str, *, tenant: str, project_id: str, generation: int, limit: int
    ) -> list[str]:
        assert (query, tenant, project_id, generation) == (ASKED, "acme", "p1", 3)
        return ["src/a.py", "src/b.py"][:limit]

    given = deps(search=FakePassageSearch([]), nearest_files=nearest)

    seen = await read(turn(ASKED, reply_language="pt-BR"), given, graph=ask_graph())

    assert seen.result.suggestions == (
        "O que há em `src/a.py`?",
        "O que há em `src/b.py`?",
        "O que faz este projeto?",
    )
    assert (await read(turn(ASKED), given)).result.suggestions == ()


async def test_suggestions_that_fail_cost_nothing_else() -> None:
    async def away(
        query: str, *, tenant: str, project_id: str, generation: int, limit: int
    ) -> list[str]:
        raise ModelUnavailable(f"{query}{tenant}{project_id}{generation}{limit}")

    given = deps(search=FakePassageSearch([]), nearest_files=away)

    seen = await read(turn(ASKED), given, graph=ask_graph())

    assert seen.result.suggestions == ("What does this project do?",)


async def test_what_was_found_gets_no_suggestions() -> None:
    async def nearest(
        query: str, *, tenant: str, project_id: str, generation: int, limit: int
    ) -> list[str]:
        raise AssertionError(f"{query}{tenant}{project_id}{generation}{limit}")

    seen = await read(turn(ASKED), deps(nearest_files=nearest), graph=ask_graph())

    assert seen.result.suggestions == ()


async def test_the_input_names_every_key_and_every_checkpoint_is_plain_data() -> None:
    saver = LeasedMemorySaver()
    graph, given = ask_graph(saver), deps(search=FakePassageSearch(TIED))
    pause = (await read(turn(ASKED), given, graph=graph)).pause
    await read(resumed(turn(ASKED), pause, "2"), given, graph=graph)

    start = first_ask_state(turn(ASKED))
    snapshot = await graph.aget_state({"configurable": {"thread_id": "t-1"}})

    keys = set(AskState.__annotations__)
    assert set(start) == set(snapshot.values) == keys
    assert all(_is_plain(value) for value in snapshot.values.values())


def _is_plain(value: object) -> bool:
    if isinstance(value, dict):
        return all(type(key) is str and _is_plain(each) for key, each in value.items())
    if isinstance(value, list):
        return all(map(_is_plain, value))
    return value is None or type(value) in {str, int, float, bool}


async def test_no_run_shows_a_token_before_its_sources() -> None:
    graph, given = ask_graph(), deps(search=FakePassageSearch(TIED))
    pause = (await read(turn(ASKED), given, graph=graph)).pause

    seen = await read(resumed(turn(ASKED), pause, "2"), given, graph=graph)

    kinds = [type(event) for event in seen.events if not isinstance(event, StatusChanged)]
    assert kinds[0] is CitationsFound
    assert kinds.count(CitationsFound) == 1


async def test_the_topology_is_the_one_that_runs() -> None:
    drawn = ask_graph().get_graph()

    assert set(drawn.nodes) == {
        "__start__",
        "__end__",
        "classify",
        "retrieve",
        "clarify",
        "grade",
        "generate",
        "answer_from_history",
        "refuse",
    }
    assert {(edge.source, edge.target) for edge in drawn.edges} == {
        ("__start__", "classify"),
        ("classify", "clarify"),
        ("classify", "retrieve"),
        ("classify", "answer_from_history"),
        ("classify", "refuse"),
        ("retrieve", "clarify"),
        ("retrieve", "grade"),
        ("retrieve", "generate"),
        ("clarify", "clarify"),
        ("clarify", "retrieve"),
        ("clarify", "grade"),
        ("clarify", "__end__"),
        ("grade", "retrieve"),
        ("grade", "generate"),
        ("generate", "__end__"),
        ("answer_from_history", "__end__"),
        ("refuse", "__end__"),
    }


@pytest.mark.parametrize(
    "build",
    [
        lambda: build_answer_graph(clarify=True),
        lambda: build_answer_graph(checkpointer=LeasedMemorySaver()),
    ],
)
def test_a_graph_has_a_checkpointer_if_it_can_pause_and_only_then(
    build: Callable[[], AnswerGraph],
) -> None:
    with pytest.raises(ValueError, match="checkpointer"):
        build()


async def test_proceed_is_awaited_before_each_model_call() -> None:
    model = ScriptedModel()
    called: list[int] = []

    async def proceed() -> None:
        called.append(len(model.requests))

    await read(turn(), deps(model), proceed=proceed)

    assert called == [0, 1, 2]


@pytest.mark.parametrize("calls", [0, 1, 2])
async def test_a_run_that_may_not_proceed_makes_no_further_call(calls: int) -> None:
    model = ScriptedModel()
    waits = asyncio.Event()

    async def proceed() -> None:
        if len(model.requests) == calls:
            waits.set()
            await asyncio.Event().wait()

    reader = asyncio.create_task(read(turn(), deps(model), graph=ask_graph(), proceed=proceed))
    await waits.wait()
    reader.cancel()
    await asyncio.wait([reader])

    assert reader.cancelled()
    assert len(model.requests) == calls


async def test_proceed_is_awaited_before_an_answer_from_history() -> None:
    model = ScriptedModel(decisions={"classify": [{**CODE, "intent": "conversational"}]})
    called: list[int] = []

    async def proceed() -> None:
        called.append(len(model.requests))

    await read(turn(), deps(model), proceed=proceed)

    assert called == [0, 1]


async def test_what_proceed_raises_is_no_helper_that_fell_back() -> None:
    async def lost() -> None:
        raise ModelUnavailable("the store is away")

    seen = await read(turn(), deps(), proceed=lost)

    assert isinstance(seen.error, ModelUnavailable)
