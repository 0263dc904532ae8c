"""Every value comes back from its JSON as it was."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone

from hypothesis import given
from hypothesis import strategies as st

from ibid.adapters.records import codec
from ibid.domain.answers import Clarification, FinishReason, GroundingWarning, Intent
from ibid.domain.conversations import Message
from ibid.domain.events import Done, Failed, Paused, Terminator
from ibid.domain.passages import Citation
from ibid.domain.projects import (
    FolderSource,
    GitSource,
    JobError,
    JobStatistics,
    ProjectSettings,
    Source,
    UploadSource,
)
from tests.fakes.samples import a_question, a_run

TEXT = st.text(st.characters(codec="utf-8"))
MAYBE_TEXT = st.none() | TEXT
COUNT = st.integers(0, 2**53)


CITATIONS = st.lists(
    st.builds(
        Citation,
        index=COUNT,
        file_path=TEXT,
        start_line=COUNT,
        end_line=COUNT,
        language=TEXT,
        symbol=MAYBE_TEXT,
        commit_sha=MAYBE_TEXT,
        score=st.floats(0, 1),
        url=MAYBE_TEXT,
        cited=st.none() | st.booleans(),
    ),
    max_size=3,
).map(tuple)
INDEXES = st.lists(COUNT, max_size=3).map(tuple)
WARNINGS = st.lists(st.sampled_from(GroundingWarning), max_size=3).map(tuple)
DEGRADED = st.lists(TEXT, max_size=3).map(tuple)
CLARIFICATIONS = st.builds(
    Clarification, question=TEXT, options=st.lists(TEXT, max_size=8).map(tuple)
)
DONE = st.builds(
    Done,
    message_id=MAYBE_TEXT,
    model=TEXT,
    finish_reason=st.sampled_from(FinishReason),
    cited_indexes=INDEXES,
    grounding_warnings=WARNINGS,
    intent=st.sampled_from(Intent),
    retrieval_attempts=COUNT,
    citations=CITATIONS,
    degraded=DEGRADED,
    clarification=st.none() | CLARIFICATIONS,
    assumptions=st.lists(TEXT, max_size=3).map(tuple),
    suggestions=st.lists(TEXT, max_size=3).map(tuple),
)
PAUSED = st.builds(
    Paused,
    message_id=MAYBE_TEXT,
    interrupt_id=TEXT,
    node=TEXT,
    clarification=CLARIFICATIONS,
    expires_at=st.datetimes(timezones=st.just(UTC)),
)
FAILED = st.builds(
    Failed,
    message_id=MAYBE_TEXT,
    code=TEXT,
    message=TEXT,
    finish_reason=st.sampled_from(FinishReason),
    kept_through_id=st.none() | COUNT,
)
MESSAGES = st.builds(
    Message,
    id=TEXT,
    conversation_id=TEXT,
    run_id=TEXT,
    role=st.just("assistant"),
    content=TEXT,
    created_at=st.just(datetime(2026, 1, 1, tzinfo=UTC)),
    finish_reason=st.none() | st.sampled_from(FinishReason),
    error_code=MAYBE_TEXT,
    model=MAYBE_TEXT,
    intent=st.none() | st.sampled_from(Intent),
    citations=CITATIONS,
    cited_indexes=INDEXES,
    grounding_warnings=WARNINGS,
    retrieval_attempts=COUNT,
    degraded=DEGRADED,
)
SOURCES = st.one_of(
    st.none(),
    st.builds(FolderSource, path=TEXT),
    st.builds(GitSource, url=TEXT, ref=MAYBE_TEXT, credential=MAYBE_TEXT),
    st.builds(UploadSource, upload_id=TEXT, file_name=TEXT),
)


@given(st.none() | DONE | FAILED | PAUSED)
def test_a_terminator_comes_back(terminator: Terminator | None) -> None:
    assert codec.terminator_from_json(codec.terminator_to_json(terminator)) == terminator


@given(DONE)
def test_lists_come_back_as_tuples(done: Done) -> None:
    loose = replace(done, citations=list(done.citations), degraded=list(done.degraded))

    assert codec.terminator_from_json(codec.terminator_to_json(loose)) == done


@given(MESSAGES)
def test_what_only_an_assistants_message_has_comes_back(message: Message) -> None:
    plain = a_question(a_run())

    kept = codec.outcome_from_json(codec.outcome_to_json(message))

    assert replace(plain, **kept) == replace(
        message,
        id=plain.id,
        conversation_id=plain.conversation_id,
        run_id=plain.run_id,
        role="user",
        content=plain.content,
        created_at=plain.created_at,
    )


@given(SOURCES)
def test_a_source_comes_back(source: Source | None) -> None:
    assert codec.source_from_json(codec.source_to_json(source)) == source


@given(st.builds(ProjectSettings))
def test_settings_come_back(settings: ProjectSettings) -> None:
    assert codec.settings_from_json(codec.settings_to_json(settings)) == settings


@given(st.builds(JobStatistics, skipped=st.dictionaries(TEXT, COUNT)))
def test_statistics_come_back(statistics: JobStatistics) -> None:
    assert codec.statistics_from_json(codec.statistics_to_json(statistics)) == statistics


@given(st.none() | st.builds(JobError, code=TEXT, message=TEXT))
def test_a_jobs_error_comes_back(error: JobError | None) -> None:
    assert codec.job_error_from_json(codec.job_error_to_json(error)) == error


ZONES = st.integers(-1439, 1439).map(lambda minutes: timezone(timedelta(minutes=minutes)))


@given(st.datetimes(timezones=ZONES), st.datetimes(timezones=ZONES))
def test_a_time_comes_back_in_utc_and_sorts_as_its_number(one: datetime, other: datetime) -> None:
    numbers = codec.moment_to_int(one), codec.moment_to_int(other)

    assert codec.moment_from_int(numbers[0]) == one
    assert codec.moment_from_int(numbers[0]).tzinfo is UTC
    assert (numbers[0] < numbers[1]) == (one < other)
    assert codec.optional_moment(numbers[1]) == other
    assert codec.optional_moment(None) is None


def test_a_terminator_that_an_older_version_wrote_is_read() -> None:
    older = (
        '{"kind":"done","message_id":"m","model":"x","finish_reason":"stop","cited_indexes":[1],'
        '"grounding_warnings":[],"intent":"conversational","retrieval_attempts":0,'
        '"citations":[],"degraded":["grade"]}'
    )

    assert codec.terminator_from_json(older) == Done(
        message_id="m",
        model="x",
        finish_reason=FinishReason.STOP,
        cited_indexes=(1,),
        grounding_warnings=(),
        intent=Intent.CONVERSATIONAL,
        retrieval_attempts=0,
        citations=(),
        degraded=("grade",),
    )
