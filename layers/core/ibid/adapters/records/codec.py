"""Domain values as JSON text and back; what comes back equals what went in, sequences as tuples."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from typing import Any, assert_never

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

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def moment_to_int(moment: datetime) -> int:
    """Turn an aware time into microseconds since 1970, which sort as times do."""
    return (moment - _EPOCH) // _MICROSECOND


def moment_from_int(microseconds: int) -> datetime:
    """Turn `moment_to_int`'s number back, in UTC."""
    return _EPOCH + timedelta(microseconds=microseconds)


def optional_moment(microseconds: int | None) -> datetime | None:
    """Do as `moment_from_int`, and keep None."""
    return None if microseconds is None else moment_from_int(microseconds)


def source_to_json(source: Source | None) -> str | None:
    """Write a source with its kind."""
    match source:
        case None:
            return None
        case FolderSource():
            kind = "folder"
        case GitSource():
            kind = "git"
        case UploadSource():
            kind = "upload"
        case _:
            assert_never(source)
    return _dump({"kind": kind, **asdict(source)})


def source_from_json(text: str | None) -> Source | None:
    """Read what `source_to_json` wrote."""
    if text is None:
        return None
    fields = json.loads(text)
    kinds: Mapping[str, type[Source]] = {
        "folder": FolderSource,
        "git": GitSource,
        "upload": UploadSource,
    }
    return kinds[fields.pop("kind")](**fields)


def settings_to_json(settings: ProjectSettings) -> str:
    """Write a project's settings."""
    return _dump(asdict(settings))


def settings_from_json(text: str) -> ProjectSettings:
    """Read what `settings_to_json` wrote."""
    return ProjectSettings(**json.loads(text))


def statistics_to_json(statistics: JobStatistics) -> str:
    """Write a job's counts."""
    return _dump(asdict(statistics))


def statistics_from_json(text: str) -> JobStatistics:
    """Read what `statistics_to_json` wrote."""
    return JobStatistics(**json.loads(text))


def job_error_to_json(error: JobError | None) -> str | None:
    """Write why a job failed."""
    return None if error is None else _dump(asdict(error))


def job_error_from_json(text: str | None) -> JobError | None:
    """Read what `job_error_to_json` wrote."""
    return None if text is None else JobError(**json.loads(text))


def terminator_to_json(terminator: Terminator | None) -> str | None:
    """Write a run's last event with its kind."""
    match terminator:
        case None:
            return None
        case Done():
            kind = "done"
        case Failed():
            kind = "failed"
        case Paused():
            fields = asdict(terminator) | {"expires_at": moment_to_int(terminator.expires_at)}
            return _dump({"kind": "paused", **fields})
        case _:
            assert_never(terminator)
    return _dump({"kind": kind, **asdict(terminator)})


def terminator_from_json(text: str | None) -> Terminator | None:
    """Read what `terminator_to_json` wrote, or what a version before pauses wrote."""
    if text is None:
        return None
    fields = json.loads(text)
    kind = fields.pop("kind")
    if kind == "paused":
        fields["clarification"] = _read_clarification(fields["clarification"])
        fields["expires_at"] = moment_from_int(fields["expires_at"])
        return Paused(**fields)
    fields["finish_reason"] = FinishReason(fields["finish_reason"])
    if kind == "failed":
        return Failed(**fields)
    fields["intent"] = Intent(fields["intent"])
    fields["clarification"] = _read_clarification(fields.get("clarification"))
    fields["assumptions"] = tuple(fields.get("assumptions", ()))
    fields["suggestions"] = tuple(fields.get("suggestions", ()))
    return Done(**_read_answer(fields))


def outcome_to_json(message: Message) -> str:
    """Write the fields of a message that only an assistant's has."""
    return _dump(
        {
            "finish_reason": message.finish_reason,
            "error_code": message.error_code,
            "model": message.model,
            "intent": message.intent,
            "citations": [asdict(citation) for citation in message.citations],
            "cited_indexes": list(message.cited_indexes),
            "grounding_warnings": list(message.grounding_warnings),
            "retrieval_attempts": message.retrieval_attempts,
            "degraded": list(message.degraded),
        }
    )


def outcome_from_json(text: str) -> dict[str, Any]:
    """Read what `outcome_to_json` wrote, as arguments of Message."""
    fields = json.loads(text)
    finish_reason, intent = fields["finish_reason"], fields["intent"]
    return _read_answer(fields) | {
        "finish_reason": None if finish_reason is None else FinishReason(finish_reason),
        "intent": None if intent is None else Intent(intent),
    }


def _read_clarification(fields: Mapping[str, Any] | None) -> Clarification | None:
    if fields is None:
        return None
    return Clarification(question=fields["question"], options=tuple(fields["options"]))


def _read_answer(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Turn lists into tuples of the values that they stand for."""
    citations: Iterable[Mapping[str, Any]] = fields["citations"]
    return {
        **fields,
        "citations": tuple(Citation(**citation) for citation in citations),
        "cited_indexes": tuple(fields["cited_indexes"]),
        "grounding_warnings": tuple(map(GroundingWarning, fields["grounding_warnings"])),
        "degraded": tuple(fields["degraded"]),
    }


def _dump(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
