"""What a check of the stores may find wrong."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum


class FindingKind(StrEnum):
    """Each names one invariant that does not hold."""

    STORE_FAULT = "store_fault"  # the store's own check of its files
    ROW_UNREADABLE = "row_unreadable"
    CONVERSATION_MISSING = "conversation_missing"  # other rows name it
    PROJECT_MISSING = "project_missing"
    RUN_NUMBERS = "run_numbers"  # not 1 to `runs_begun`, each once
    RUN_ID = "run_id"  # not that of its conversation and number
    RUN_OWNER = "run_owner"  # another tenant, subject or project than its conversation's
    RUNNING_TWICE = "running_twice"
    PAUSED_TWICE = "paused_twice"  # more than one pause is pending
    TURN = "turn"  # not the turn of the run that it resumes, nor its own
    RESUMPTION = "resumption"  # `resumes` and `resumed_by` are not each other's
    DECISION = "decision"  # an answer without a resumption, or the other way round
    PAUSE_STATE = "pause_state"  # expired and resumed, or resumed and never paused
    TERMINATOR_MISSING = "terminator_missing"
    TERMINATOR_EARLY = "terminator_early"  # of a live run
    TERMINATOR_TWICE = "terminator_twice"
    TERMINATOR_STATE = "terminator_state"  # another end than the state's
    TERMINATOR_ID = "terminator_id"  # does not follow what is kept
    JOURNAL_UNREADABLE = "journal_unreadable"
    JOURNAL_GAP = "journal_gap"  # ids are not 1 to the last one
    JOURNAL_LENGTH = "journal_length"  # of a live run: not as many as it says
    JOURNAL_ORDER = "journal_order"  # of phases, citations and tokens
    JOURNAL_LEFT = "journal_left"  # of a run that is not there, or after its removal
    QUESTION_MISSING = "question_missing"
    QUESTION_TWICE = "question_twice"
    ANSWER_MISSING = "answer_missing"
    ANSWER_TWICE = "answer_twice"
    ANSWER_EARLY = "answer_early"  # of a live run
    ANSWER_ID = "answer_id"  # not the one that run and terminator name
    ANSWER_TEXT = "answer_text"  # not the tokens of the journal
    ANSWER_OUTCOME = "answer_outcome"  # not the terminator's
    MESSAGE_LEFT = "message_left"  # of a run that is not there
    FEEDBACK_LEFT = "feedback_left"
    KEY_LEFT = "key_left"
    CHECKPOINT_LEFT = "checkpoint_left"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One invariant that does not hold at one place.

    Attributes:
        ids: What the place is called, by kind of name; never a text that anybody wrote.
    """

    kind: FindingKind
    ids: Mapping[str, str] = field(default_factory=dict)
