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


def test_a_proper_name_that_no_passage_holds_is_missing_and_its_plural_is_none() -> None:
    assert judge("Where is the Kubernetes policy?", [PASSAGE]).missing == ["Kubernetes"]
    assert judge("Where are delays of Policies?", [PASSAGE]).sufficient


def test_passages_in_another_language_need_but_one_word() -> None:
    assert judge("¿Cómo se calculan los attempts de la clase?", [PASSAGE]).sufficient
    assert not judge("¿Cómo se calculan los intentos de la clase?", [PASSAGE]).sufficient


def test_an_overview_needs_a_passage_that_describes_the_project() -> None:
    readme = replace(
        PASSAGE, file_path="README.md", language="markdown", content="It retries all that fails."
    )

    assert judge("What does this project do?", [PASSAGE, readme]).sufficient
    verdict = judge("What does this project do?", [PASSAGE])
    assert not verdict.sufficient
    assert verdict.better_query.startswith("`README`")
