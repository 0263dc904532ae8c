"""Every way through the graph `messages`, and what each leaves."""

import json
import threading
from collections.abc import AsyncIterator
from typing import Any

import pytest

from ibid.domain.answers import GroundingWarning, HistoryTurn, Intent
from ibid.domain.errors import (
    AnswerEmpty,
    GenerationGone,
    IbidError,
    ModelUnavailable,
    VectorStoreUnavailable,
)
from ibid.domain.events import CitationsFound, TokenDelta
from ibid.domain.passages import Citation
from ibid.domain.projects import ProjectSettings
from ibid.graphs.answer.build import build_answer_graph
from ibid.graphs.answer.state import AnswerState, first_state
from ibid.graphs.answer.texts import FixedText, fixed_text
from ibid.ports.models import ModelRequest, ReplyEnd, TextDelta
from tests.fakes.scripted_model import ScriptedModel
from tests.fakes.search import FakePassageSearch, Search
from tests.unit.graphs.answer.turns import GRAPH, deps, passage, read, turn

INSUFFICIENT = {
    "sufficient": False,
    "gap": "Where the port is read.",
    "better_query": "port config",
}
SUFFICIENT = {"sufficient": True, "gap": "", "better_query": ""}
THANKS = {"intent": "conversational", "search_query": "Thanks!"}
OFF_TOPIC = {"intent": "out_of_scope", "search_query": "What is the weather?"}
PAST = (HistoryTurn(question="Where is run?", answer="In `src/app.py` [1]."),)


async def test_a_question_is_classified_searched_judged_and_answered() -> None:
    model = ScriptedModel()
    search = FakePassageSearch([passage(), passage("x = 1", file_path="src/x.py", score=0.5)])

    seen = await read(turn(path_prefix="src/"), deps(model, search))

    assert [request.task for request in model.requests] == ["classify", "grade", "answer"]
    assert seen.phases == ["classifying", "retrieving", "grading", "generating"]
    assert search.searches == [
        Search(
            query="How does the app run?",
            tenant="acme",
            project_id="p1",
            generation=3,
            path_prefix="src/",
            limit=12,
            max_characters=24_000,
            timeout_s=10.0,
        )
    ]
    result = seen.result
    assert result.answer == seen.text == "It is in the first excerpt [1]."
    assert result.cited_indexes == (1,)
    assert [citation.cited for citation in result.citations] == [True, False]
    assert result.warnings == ()
    assert result.intent is Intent.CODEBASE_QUESTION
    assert result.retrieval_attempts == 1
    assert result.degraded == ()
    assert result.model == "scripted"


async def test_the_sources_are_shown_without_excerpt_and_with_their_link() -> None:
    seen = await read(turn(), deps(search=FakePassageSearch([passage(symbol="")])))

    assert seen.sources == [
        CitationsFound(
            citations=(
                Citation(
                    index=1,
                    file_path="src/app.py",
                    start_line=10,
                    end_line=12,
                    language="python",
                    symbol=None,
                    commit_sha=None,
                    score=1.0,
                    url="https://host/src/app.py",
                    cited=None,
                ),
            )
        )
    ]


async def test_the_classified_query_is_searched_and_the_question_is_answered() -> None:
    model = ScriptedModel(
        decisions={"classify": [{"intent": "codebase_question", "search_query": " app.run port "}]}
    )
    search = FakePassageSearch([passage()])

    await read(turn("E ele?"), deps(model, search))

    assert search.searches[0].query == "app.run port"
    assert model.calls("answer")[0].question == "E ele?"


async def test_a_conversational_message_is_answered_from_the_history_without_a_search() -> None:
    model = ScriptedModel(["You asked ", "where run is."], decisions={"classify": [THANKS]})
    search = FakePassageSearch()

    seen = await read(turn("Thanks!", history=PAST), deps(model, search))

    assert search.searches == []
    assert seen.phases == ["classifying", "generating"]
    assert seen.sources == [CitationsFound(citations=())]
    (request,) = model.calls("answer_from_history")
    assert request.history == PAST
    assert seen.result.answer == "You asked where run is."
    assert seen.result.intent is Intent.CONVERSATIONAL
    assert seen.result.retrieval_attempts == 0
    assert seen.result.citations == ()
    assert seen.result.warnings == ()


async def test_a_conversational_message_that_opens_a_thread_is_answered_with_no_history() -> None:
    model = ScriptedModel(["Hello."], decisions={"classify": [THANKS]})

    seen = await read(turn("Thanks!"), deps(model))

    assert model.calls("answer_from_history")[0].history == ()
    assert seen.result.answer == "Hello."


@pytest.mark.parametrize("language", ["en", "pt-BR", "es-419"])
async def test_what_is_out_of_scope_is_refused_in_the_reply_language_by_no_model(
    language: str,
) -> None:
    model = ScriptedModel(decisions={"classify": [OFF_TOPIC]})
    search = FakePassageSearch()

    seen = await read(turn(OFF_TOPIC["search_query"], reply_language=language), deps(model, search))

    assert [request.task for request in model.requests] == ["classify"]
    assert search.searches == []
    assert seen.phases == ["classifying"]
    assert seen.sources == [CitationsFound(citations=())]
    assert seen.text == fixed_text(FixedText.REFUSE, reply_language=language)
    assert sum(isinstance(event, TokenDelta) for event in seen.events) > 1
    assert seen.result.intent is Intent.OUT_OF_SCOPE
    assert seen.result.warnings == ()


@pytest.mark.parametrize("language", ["en", "pt-BR", "es-419"])
async def test_nothing_found_is_said_in_a_fixed_text_without_grading_or_a_model(
    language: str,
) -> None:
    model = ScriptedModel()

    seen = await read(turn(reply_language=language), deps(model, FakePassageSearch([])))

    assert [request.task for request in model.requests] == ["classify"]
    assert seen.phases == ["classifying", "retrieving"]
    assert seen.sources == [CitationsFound(citations=())]
    assert seen.text == fixed_text(FixedText.NO_CONTEXT, reply_language=language)
    assert sum(isinstance(event, TokenDelta) for event in seen.events) > 1
    assert seen.result.warnings == (GroundingWarning.NO_CONTEXT,)
    assert seen.result.retrieval_attempts == 1


async def test_insufficient_evidence_is_searched_for_once_more_with_the_better_query() -> None:
    model = ScriptedModel(decisions={"grade": [INSUFFICIENT, SUFFICIENT]})
    first, second = passage(), passage("PORT = 80", file_path="src/config.py")
    search = FakePassageSearch([first], [second])

    seen = await read(turn(), deps(model, search))

    assert [call.query for call in search.searches] == ["How does the app run?", "port config"]
    assert seen.phases == [
        "classifying",
        "retrieving",
        "grading",
        "retrieving",
        "grading",
        "generating",
    ]
    assert [citation.file_path for citation in seen.sources[0].citations] == ["src/app.py"]
    assert len(seen.sources) == 1
    assert [citation.file_path for citation in seen.result.citations] == ["src/config.py"]
    assert model.calls("answer")[0].gap == ""
    assert seen.result.retrieval_attempts == 2
    assert seen.result.warnings == ()


async def test_the_last_retrieval_is_judged_too_and_its_gap_is_told_and_warned_of() -> None:
    model = ScriptedModel(decisions={"grade": [INSUFFICIENT]})

    seen = await read(turn(), deps(model))

    assert len(model.calls("grade")) == 2
    (request,) = model.calls("answer")
    assert request.gap == "Where the port is read."
    assert "Evidence note" in request.messages[-1].content
    assert seen.result.warnings == (GroundingWarning.WEAK_EVIDENCE,)
    assert seen.result.retrieval_attempts == 2


@pytest.mark.parametrize("most", [1, 2, 5])
async def test_the_loop_ends_after_as_many_searches_as_the_project_allows(most: int) -> None:
    model = ScriptedModel(decisions={"grade": [INSUFFICIENT]})
    search = FakePassageSearch([passage()])

    seen = await read(
        turn(), deps(model, search, settings=ProjectSettings(max_retrieval_attempts=most))
    )

    assert len(search.searches) == len(model.calls("grade")) == most
    assert seen.result.retrieval_attempts == most


@pytest.mark.parametrize("better", ["", "   ", "x" * 513, None, 7])
async def test_a_better_query_that_is_empty_or_too_long_keeps_the_old(better: object) -> None:
    model = ScriptedModel(decisions={"grade": [{**INSUFFICIENT, "better_query": better}]})
    search = FakePassageSearch([passage()])

    await read(turn(), deps(model, search))

    assert [call.query for call in search.searches] == ["How does the app run?"] * 2


async def test_a_second_search_that_finds_nothing_ends_with_the_fixed_text() -> None:
    model = ScriptedModel(decisions={"grade": [INSUFFICIENT]})

    seen = await read(turn(), deps(model, FakePassageSearch([passage()], [])))

    assert len(model.calls("grade")) == 1
    assert model.calls("answer") == []
    assert seen.result.citations == ()
    assert seen.result.warnings == (GroundingWarning.NO_CONTEXT,)


async def test_both_helpers_off_leaves_one_search_and_one_call() -> None:
    model = ScriptedModel()

    seen = await read(
        turn(), deps(model, settings=ProjectSettings(classify_intent=False, grade_evidence=False))
    )

    assert [request.task for request in model.requests] == ["answer"]
    assert seen.phases == ["retrieving", "generating"]
    assert seen.result.degraded == ()


async def test_classify_off_searches_the_question_as_it_is() -> None:
    model = ScriptedModel(decisions={"classify": [OFF_TOPIC]})
    search = FakePassageSearch([passage()])

    seen = await read(turn(), deps(model, search, settings=ProjectSettings(classify_intent=False)))

    assert seen.phases == ["retrieving", "grading", "generating"]
    assert search.searches[0].query == "How does the app run?"


async def test_grade_off_never_warns_of_weak_evidence() -> None:
    model = ScriptedModel(decisions={"grade": [INSUFFICIENT]})

    seen = await read(turn(), deps(model, settings=ProjectSettings(grade_evidence=False)))

    assert seen.phases == ["classifying", "retrieving", "generating"]
    assert seen.result.warnings == ()


async def test_a_generation_that_is_gone_is_replaced_by_the_active_one_for_the_rest() -> None:
    model = ScriptedModel(decisions={"grade": [INSUFFICIENT]})
    search = FakePassageSearch(GenerationGone("generation 3"), [passage()])

    seen = await read(turn(), deps(model, search))

    assert [call.generation for call in search.searches] == [3, 4, 4]
    assert seen.error is None
    assert len(seen.sources) == 1
    assert seen.result.retrieval_attempts == 2


async def test_an_active_generation_that_is_gone_too_fails_the_turn() -> None:
    search = FakePassageSearch(GenerationGone("gone"))

    seen = await read(turn(), deps(search=search))

    assert len(search.searches) == 2
    assert isinstance(seen.error, GenerationGone)
    assert seen.results == []


@pytest.mark.parametrize(
    "error", [VectorStoreUnavailable("index"), OSError("disk"), ModelUnavailable("embedder")]
)
async def test_a_failed_search_is_the_turns_error_and_never_nothing_found(
    error: Exception,
) -> None:
    seen = await read(turn(), deps(search=FakePassageSearch(error)))

    assert seen.error is error
    assert seen.sources == []
    assert seen.text == ""
    assert seen.results == []


@pytest.mark.parametrize("at", [1, 2, 5])
async def test_a_model_that_breaks_off_leaves_exactly_what_it_said_before(at: int) -> None:
    model = ScriptedModel(["a ", "b ", "c ", "d ", "e "], fail_at_token=at)

    seen = await read(turn(), deps(model))

    assert seen.text == "a b c d e "[: 2 * (at - 1)]
    assert isinstance(seen.error, ModelUnavailable)
    assert seen.results == []


async def test_a_stream_that_stops_without_its_end_is_an_error() -> None:
    class Cut(ScriptedModel):
        async def stream(self, request: ModelRequest) -> AsyncIterator[TextDelta | ReplyEnd]:
            yield TextDelta(text=request.task)

    seen = await read(turn(), deps(Cut()))

    assert seen.text == "answer"
    assert isinstance(seen.error, ModelUnavailable)


@pytest.mark.parametrize("intent", ["codebase_question", "conversational"])
async def test_a_model_without_a_word_is_an_error(intent: str) -> None:
    class Silent(ScriptedModel):
        async def stream(self, request: ModelRequest) -> AsyncIterator[TextDelta | ReplyEnd]:
            yield ReplyEnd(input_tokens=None, output_tokens=len(request.task))

    model = Silent(decisions={"classify": [{"intent": intent, "search_query": "x"}]})

    seen = await read(turn(), deps(model))

    assert isinstance(seen.error, AnswerEmpty)
    assert len(seen.sources) == 1


async def test_an_iterator_that_is_no_generator_is_read_just_as_well() -> None:
    class Reply:
        def __init__(self, items: AsyncIterator[TextDelta | ReplyEnd]) -> None:
            self.items = items

        def __aiter__(self) -> "Reply":
            return self

        async def __anext__(self) -> TextDelta | ReplyEnd:
            return await anext(self.items)

    class Wrapped(ScriptedModel):
        def stream(self, request: ModelRequest) -> Reply:
            return Reply(super().stream(request))

    seen = await read(turn(), deps(Wrapped()))

    assert seen.result.answer == "It is in the first excerpt [1]."


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({"guardrails": True}, "guardrails"),
        ({"guardrails": True, "review": True}, "guardrails, review"),
        ({"propose_target": "checklist"}, "propose_target"),
    ],
)
def test_a_graph_with_nodes_that_do_not_exist_is_refused_by_their_names(
    arguments: dict[str, Any], named: str
) -> None:
    with pytest.raises(ValueError, match=f"no nodes for {named}$"):
        build_answer_graph(**arguments)


def test_the_topology_is_the_one_that_runs() -> None:
    drawn = GRAPH.get_graph()

    assert set(drawn.nodes) == {
        "__start__",
        "__end__",
        "classify",
        "retrieve",
        "grade",
        "generate",
        "answer_from_history",
        "refuse",
    }
    assert {(edge.source, edge.target) for edge in drawn.edges} == {
        ("__start__", "classify"),
        ("classify", "retrieve"),
        ("classify", "answer_from_history"),
        ("classify", "refuse"),
        ("retrieve", "grade"),
        ("retrieve", "generate"),
        ("grade", "retrieve"),
        ("grade", "generate"),
        ("generate", "__end__"),
        ("answer_from_history", "__end__"),
        ("refuse", "__end__"),
    }


async def test_the_input_names_every_key_and_the_state_stays_plain_json() -> None:
    start = first_state(turn(history=PAST))
    model = ScriptedModel(decisions={"grade": [INSUFFICIENT]}, fail_at_decision=1)

    end = await GRAPH.ainvoke(start, context=deps(model))

    assert set(start) == set(AnswerState.__annotations__) == set(end)
    assert json.loads(json.dumps(start)) == start
    assert json.loads(json.dumps(end)) == end


async def test_no_step_of_a_turn_takes_a_thread() -> None:
    before = set(threading.enumerate())

    await read(turn(), deps())

    assert set(threading.enumerate()) <= before


async def test_an_error_comes_out_as_it_went_in() -> None:
    class Unheard(IbidError):
        pass

    error = Unheard("x")

    seen = await read(turn(), deps(ScriptedModel(["a", error])))

    assert seen.error is error
    assert error.__cause__ is None
