"""The order of a turn's events, whatever the models and the search do."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from ibid.domain.errors import GenerationGone, ModelUnavailable, VectorStoreUnavailable
from ibid.domain.events import CitationsFound, StatusChanged, TokenDelta
from ibid.domain.passages import Passage
from ibid.domain.projects import ProjectSettings
from tests.fakes.scripted_model import ScriptedModel, Step
from tests.fakes.search import FakePassageSearch
from tests.unit.graphs.answer.turns import Seen, deps, passage, read, turn

ERRORS = st.sampled_from(
    [ModelUnavailable("down"), ValueError("bug"), VectorStoreUnavailable("away")]
)
CLASSIFICATIONS = st.one_of(
    st.fixed_dictionaries(
        {
            "intent": st.sampled_from(["codebase_question", "conversational", "out_of_scope"]),
            "search_query": st.text(max_size=20),
        }
    ),
    ERRORS,
)
VERDICTS = st.one_of(
    st.fixed_dictionaries(
        {
            "sufficient": st.booleans(),
            "gap": st.text(max_size=20),
            "better_query": st.text(max_size=20),
        }
    ),
    ERRORS,
)
PASSAGES = st.lists(
    st.builds(passage, st.text(max_size=40), file_path=st.text(max_size=10)), max_size=4
)
FOUND = st.one_of(PASSAGES, ERRORS, st.just(GenerationGone("gone")))
PIECES = st.one_of(st.text(min_size=1, max_size=8), st.just("[1]"), st.just("[2]"), ERRORS)


async def _yield() -> None:
    await asyncio.sleep(0)


def _in_order(seen: Seen) -> None:
    kinds = [type(event) for event in seen.events]
    shows_text = TokenDelta in kinds
    assert kinds.count(CitationsFound) <= 1
    if shows_text or seen.results:
        first_token = kinds.index(TokenDelta)
        assert CitationsFound in kinds[:first_token]
        assert StatusChanged not in kinds[first_token:]
        assert set(kinds[first_token:]) == {TokenDelta}
    assert all(event.text for event in seen.events if isinstance(event, TokenDelta))
    assert (seen.error is None) == (len(seen.results) == 1)


def _true_to_what_was_shown(seen: Seen) -> None:
    result = seen.result
    assert result.answer == seen.text
    assert [citation.index for citation in result.citations] == [
        *range(1, len(result.passages) + 1)
    ]
    cited = tuple(citation.index for citation in result.citations if citation.cited)
    assert cited == tuple(result.cited_indexes)
    assert all(f"[{index}]" in seen.text for index in cited)
    assert result.retrieval_attempts == seen.phases.count("retrieving")
    assert len(set(result.degraded)) == len(result.degraded)
    if result.retrieval_attempts == 0:
        assert result.warnings == ()
        assert result.citations == ()


@given(
    classify=CLASSIFICATIONS,
    grade=st.lists(VERDICTS, min_size=1, max_size=3),
    found=st.lists(FOUND, min_size=1, max_size=3),
    pieces=st.lists(PIECES, min_size=1, max_size=6),
    classify_intent=st.booleans(),
    grade_evidence=st.booleans(),
    attempts=st.integers(min_value=1, max_value=3),
    slow=st.booleans(),
    pending=st.sampled_from([1, 2, 256]),
)
@settings(max_examples=150, deadline=None)
def test_events_keep_their_order_and_the_result_is_what_was_shown(
    *,
    classify: Mapping[str, Any] | BaseException,
    grade: Sequence[Mapping[str, Any] | BaseException],
    found: Sequence[Sequence[Passage] | BaseException],
    pieces: Sequence[Step],
    classify_intent: bool,
    grade_evidence: bool,
    attempts: int,
    slow: bool,
    pending: int,
) -> None:
    given_deps = deps(
        ScriptedModel(pieces, decisions={"classify": [classify], "grade": grade}),
        FakePassageSearch(*found),
        settings=ProjectSettings(
            classify_intent=classify_intent,
            grade_evidence=grade_evidence,
            max_retrieval_attempts=attempts,
        ),
        pending_events=pending,
    )

    seen = asyncio.run(read(turn(), given_deps, _yield if slow else None))

    _in_order(seen)
    if seen.results:
        _true_to_what_was_shown(seen)


@given(
    count=st.integers(min_value=0, max_value=40),
    pending=st.sampled_from([1, 3, 256]),
    slow=st.booleans(),
)
@settings(max_examples=60, deadline=None)
def test_no_piece_that_came_before_a_failure_is_lost(
    *, count: int, pending: int, slow: bool
) -> None:
    pieces = [f"piece{number} " for number in range(count)]
    error = ModelUnavailable("broke off")
    model = ScriptedModel([*pieces, error])

    seen = asyncio.run(read(turn(), deps(model, pending_events=pending), _yield if slow else None))

    assert seen.text == "".join(pieces)
    assert seen.error is error
