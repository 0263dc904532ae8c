from dataclasses import replace

from ibid.adapters.models.evidence_rules import NEAR, judge
from ibid.domain.passages import Passage

PASSAGE = Passage(
    file_path="src/retry_policy.py",
    start_line=1,
    end_line=2,
    language="python",
    symbol="Policy.delays",
    content="def delays(attempts):\n    return [2 ** n for n in range(attempts)]",
    commit_sha=None,
    score=1.0,
    cosine=None,
)


def test_passages_that_hold_what_is_asked_about_suffice() -> None:
    verdict = judge("Where are the delays between attempts?", [PASSAGE])

    assert verdict.sufficient
    assert (verdict.missing, verdict.gap, verdict.better_query) == ((), "", "")


def test_an_identifier_in_the_path_or_symbol_is_there() -> None:
    assert judge("What is in retry_policy.py?", [PASSAGE]).sufficient
    assert judge("What does Policy.delays do?", [PASSAGE]).sufficient


def test_a_dotted_name_is_there_when_its_last_part_is() -> None:
    assert judge("What does retry.delays() do?", [PASSAGE]).sufficient
    assert not judge("What does retry.jitter() do?", [PASSAGE]).sufficient


def test_a_missing_identifier_is_named_however_near_the_passages_are() -> None:
    verdict = judge("Where does delays call max_jitter?", [replace(PASSAGE, cosine=0.9)])

    assert not verdict.sufficient
    assert verdict.gap == "`max_jitter`"
    assert verdict.better_query == "max_jitter max jitter delays"


def test_missing_words_are_the_gap_unless_a_passage_is_near() -> None:
    question = "How are invoices rendered as documents?"

    far, near = (judge(question, [replace(PASSAGE, cosine=cosine)]) for cosine in (0.1, NEAR))

    assert not far.sufficient
    assert far.gap == "`invoic`, `render`, `document`"
    assert far.better_query == "invoices rendered documents"
    assert near.sufficient


def test_a_better_query_that_is_the_question_is_none() -> None:
    assert judge("invoices rendered", [PASSAGE]).better_query == ""


def test_a_question_without_words_is_satisfied() -> None:
    assert judge("?", [PASSAGE]).sufficient
