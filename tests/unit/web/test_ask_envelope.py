"""The envelope: what kind it is, how sure, and its one headline, by rules alone."""

import json
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ibid.domain.answers import Clarification, FinishReason, GroundingWarning, Intent
from ibid.domain.events import Done, Paused
from ibid.web.ask_envelope import HEADLINE_CHARACTERS, confidence, envelope_of, headline
from tests.fakes.samples import a_citation, a_run

LATER = datetime(2026, 1, 2, 12, 0, 7, tzinfo=UTC)
RUN = replace(a_run(), id="c1-2", graph="ask", turn_id="c1-1", ended_at=LATER)
DONE = Done(
    message_id="m",
    model="scripted",
    finish_reason=FinishReason.STOP,
    cited_indexes=(1,),
    grounding_warnings=(),
    intent=Intent.CODEBASE_QUESTION,
    retrieval_attempts=1,
    citations=(a_citation(),),
    degraded=(),
)
CLARIFICATION = Clarification(question="Which `Cart`?", options=("the shop's", "the API's"))
PAUSED = Paused(
    message_id="m",
    interrupt_id="i1",
    node="clarify",
    clarification=CLARIFICATION,
    expires_at=LATER,
)


def test_an_answer_has_every_field_in_its_case() -> None:
    envelope = envelope_of(RUN, DONE, "In `Cart.total` [1]. It adds tax.")

    assert json.loads(envelope.model_dump_json()) == {
        "envelope_version": "1",
        "kind": "answer",
        "headline": "In Cart.total.",
        "narration": "In `Cart.total` [1]. It adds tax.",
        "values": [],
        "rows": [],
        "citations": [
            {
                "index": 1,
                "file_path": "src/é [1].py",
                "start_line": 3,
                "end_line": 9,
                "language": "python",
                "symbol": None,
                "commit_sha": "0" * 40,
                "score": 0.123456789,
                "url": None,
                "cited": True,
            }
        ],
        "confidence": 1.0,
        "assumptions": [],
        "suggestions": [],
        "resumable": False,
        "trace_id": "c1-1",
        "thread_id": "c1",
        "run_id": "c1-2",
        "created_at": "2026-01-02T12:00:07Z",
    }


def test_a_pause_is_a_clarification_that_can_be_resumed() -> None:
    envelope = json.loads(envelope_of(RUN, PAUSED, "").model_dump_json())

    assert envelope["kind"] == "clarification"
    assert envelope["headline"] == "Which Cart?"
    assert envelope["clarification"] == {
        "question": "Which `Cart`?",
        "options": ["the shop's", "the API's"],
    }
    assert (envelope["resumable"], envelope["interrupt_id"]) == (True, "i1")
    assert (envelope["confidence"], envelope["citations"]) == (0.0, [])


def test_a_plain_clarification_has_ended() -> None:
    plain = replace(DONE, clarification=CLARIFICATION)

    envelope = json.loads(envelope_of(RUN, plain, "Which `Cart`?").model_dump_json())

    assert (envelope["kind"], envelope["resumable"]) == ("clarification", False)
    assert "interrupt_id" not in envelope
    assert envelope["confidence"] == 0.0


@pytest.mark.parametrize(
    "done",
    [
        replace(DONE, grounding_warnings=(GroundingWarning.NO_CONTEXT,), citations=()),
        replace(DONE, intent=Intent.OUT_OF_SCOPE, retrieval_attempts=0, citations=()),
    ],
)
def test_what_was_not_found_or_is_out_of_scope_is_an_abstention(done: Done) -> None:
    envelope = envelope_of(RUN, replace(done, suggestions=("Where is tax?",)), "I found nothing.")

    assert (envelope.kind, envelope.confidence) == ("abstention", 0.0)
    assert envelope.suggestions == ("Where is tax?",)


def test_what_was_taken_for_granted_is_told() -> None:
    envelope = envelope_of(RUN, replace(DONE, assumptions=("the shop's cart",)), "Here.")

    assert envelope.assumptions == ("the shop's cart",)


@pytest.mark.parametrize(
    ("done", "sure"),
    [
        (DONE, 1.0),
        (replace(DONE, grounding_warnings=(GroundingWarning.UNCITED_ANSWER,)), 0.4),
        (replace(DONE, grounding_warnings=(GroundingWarning.WEAK_EVIDENCE,)), 0.5),
        (
            replace(
                DONE,
                grounding_warnings=(
                    GroundingWarning.UNKNOWN_PATHS,
                    GroundingWarning.UNKNOWN_SYMBOLS,
                ),
            ),
            0.56,
        ),
        (replace(DONE, degraded=("classify", "grade")), 0.81),
        (replace(DONE, retrieval_attempts=0), 0.5),
    ],
)
def test_confidence_follows_its_rule(done: Done, sure: float) -> None:
    assert confidence(done) == sure


@given(
    warnings=st.lists(st.sampled_from(GroundingWarning), max_size=9),
    degraded=st.lists(st.text(), max_size=9),
    attempts=st.integers(0, 5),
)
def test_confidence_is_never_outside_its_range(
    warnings: list[GroundingWarning], degraded: list[str], attempts: int
) -> None:
    done = replace(
        DONE, grounding_warnings=warnings, degraded=degraded, retrieval_attempts=attempts
    )

    assert 0.0 <= confidence(done) <= 1.0


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("", ""),
        ("\n\n", ""),
        ("## The cart\n\nIt adds.", "The cart"),
        ("- **Total**: `Cart.total` [1][2]. More.", "Total: Cart.total."),
        ("> 1. It is here! Or there?", "It is here!"),
        ("```python\ncart = 1\n```\nThat is the cart.", "That is the cart."),
        ("```\nnever closed. really", ""),
        ("version 1.2 of it is used", "version 1.2 of it is used"),
    ],
)
def test_a_headline_is_the_first_sentence_in_plain_words(text: str, shown: str) -> None:
    assert headline(text) == shown


@given(st.text())
def test_a_headline_is_one_short_line(text: str) -> None:
    shown = headline(text)

    assert len(shown) <= HEADLINE_CHARACTERS
    assert len(shown.splitlines()) <= 1


def test_a_long_headline_is_cut_at_a_word() -> None:
    shown = headline("word " * 100)

    assert shown.endswith("word…")
    assert headline("x" * 500) == "x" * (HEADLINE_CHARACTERS - 1) + "…"


def test_a_line_that_leads_up_to_others_is_no_headline() -> None:
    assert headline("Quoted by rules:\n\n`load` is at `a.py:1-2` [1]:\n\n```\nx\n```") == (
        "load is at a.py:1-2"
    )
    assert headline("As follows:\n\n```\nx\n```") == "As follows"
