"""`ibid ask`: one question, streamed into the terminal."""

import json
import sys
from contextlib import aclosing
from pathlib import Path
from typing import NamedTuple

from rich.console import Console
from rich.markup import escape

from ibid.bootstrap.runtime import Runtime, open_runtime
from ibid.cli.environment import settings_for
from ibid.cli.running import run
from ibid.cli.terminal import is_text, printable
from ibid.cli.workspace import all_projects, ask
from ibid.domain.answers import REPLY_LANGUAGES, FinishReason
from ibid.domain.errors import ProjectNotFound, ValidationFailed
from ibid.domain.events import (
    CitationsFound,
    Done,
    Failed,
    Paused,
    StatusChanged,
    Terminator,
    TokenDelta,
)
from ibid.domain.passages import Citation
from ibid.domain.projects import FolderSource, Project

MAX_QUESTION = 4_000
NO_PING_S = 3_600.0


def ask_question(
    question: str,
    *,
    data: Path | None,
    project: str | None,
    path_prefix: str | None,
    reply_language: str | None,
    as_json: bool,
) -> bool:
    """Ask, print the answer as it comes and its citations; True if it ended with `stop`."""
    if not 1 <= len(question.strip()) <= MAX_QUESTION or not is_text(question):
        raise ValidationFailed(f"A question has 1 to {MAX_QUESTION} characters of Unicode text")
    if reply_language not in {None, *REPLY_LANGUAGES}:
        raise ValidationFailed(f"A reply language is one of {', '.join(REPLY_LANGUAGES)}")
    asked = _Asked(question.strip(), project, path_prefix, reply_language)
    return run(_ask(asked, data, as_json=as_json))


class _Asked(NamedTuple):
    question: str
    project: str | None
    path_prefix: str | None
    reply_language: str | None


async def _ask(asked: _Asked, data: Path | None, *, as_json: bool) -> bool:
    async with open_runtime(settings_for(data=data)) as runtime:
        project = await _project(runtime, asked.project)
        live = await ask(
            runtime,
            project,
            asked.question,
            path_prefix=asked.path_prefix,
            reply_language=asked.reply_language,
        )
        notes = Console(stderr=True, quiet=as_json)
        shown: list[str] = []
        end: Terminator | None = None
        async with aclosing(live.events(NO_PING_S)) as entries:
            async for entry in entries:
                match entry.event if entry is not None else None:
                    case StatusChanged(phase=phase):
                        notes.print(f"[dim]{phase} …[/dim]")
                    case TokenDelta(text=text):
                        shown.append(text)
                        if not as_json:
                            sys.stdout.write(printable(text))
                            sys.stdout.flush()
                    case Done() | Failed() | Paused() as end:
                        pass
                    case CitationsFound() | None:
                        pass
    if as_json:
        print(json.dumps(_outcome("".join(shown), end), ensure_ascii=False))  # noqa: T201 - a script reads it
    else:
        _tell_end(end, project)
    return isinstance(end, Done)


async def _project(runtime: Runtime, named: str | None) -> Project:
    """Find the project by id or name; without a name, the only one there is.

    Raises:
        ProjectNotFound: There is none, or several that could be meant.
    """
    projects = await all_projects(runtime)
    if named is not None:
        projects = [project for project in projects if named in {project.id, project.name}]
        if not projects:
            raise ProjectNotFound(f"There is no project {named!r}: see `ibid projects`")
    if not projects:
        raise ProjectNotFound("There is no project yet: ibid index PATH")
    meant = [project for project in projects if project.active_generation] or projects
    if len(meant) == 1:
        return meant[0]
    known = ", ".join(project.name if named is None else project.id for project in meant)
    raise ProjectNotFound(f"Say which project with --project: {known}")


def _tell_end(end: Terminator | None, project: Project) -> None:
    sys.stdout.write("\n")
    sys.stdout.flush()
    console = Console(highlight=False, soft_wrap=True)
    match end:
        case Done(citations=citations, grounding_warnings=warnings):
            cited = [citation for citation in citations if citation.cited]
            if cited:
                console.print()
            for citation in cited:
                console.print(_line(citation, project))
            if warnings:
                note = f"warning: {', '.join(warnings)}"
                Console(stderr=True).print(note, style="yellow", markup=False)
        case Failed(code=code, message=message):
            Console(stderr=True).print(f"{message} ({code})", style="red", markup=False)
        case Paused(clarification=clarification):
            asked = [clarification.question, *(f"- {option}" for option in clarification.options)]
            Console(stderr=True).print(printable("\n".join(asked)), markup=False)
        case None:
            pass


def _line(citation: Citation, project: Project) -> str:
    """Show a citation as `path:start-end`, relative to here where the source is a folder."""
    path = citation.file_path
    if isinstance(project.source, FolderSource):
        whole = Path(project.source.path) / path
        here = Path.cwd()
        path = str(whole.relative_to(here) if whole.is_relative_to(here) else whole)
    place = f"{printable(path)}:{citation.start_line}-{citation.end_line}"
    symbol = f"  {escape(printable(citation.symbol))}" if citation.symbol else ""
    return rf"\[{citation.index}] {escape(place)}[dim]{symbol}[/dim]"


def _outcome(answer: str, end: Terminator | None) -> dict[str, object]:
    match end:
        case Done():
            return {
                "answer": answer,
                "finishReason": str(end.finish_reason),
                "model": end.model,
                "intent": str(end.intent),
                "groundingWarnings": [str(warning) for warning in end.grounding_warnings],
                "degraded": list(end.degraded),
                "citations": [
                    {
                        "index": citation.index,
                        "filePath": citation.file_path,
                        "startLine": citation.start_line,
                        "endLine": citation.end_line,
                        "symbol": citation.symbol,
                        "commitSha": citation.commit_sha,
                        "score": citation.score,
                        "url": citation.url,
                        "cited": citation.cited,
                    }
                    for citation in end.citations
                ],
            }
        case Failed():
            return {
                "answer": answer,
                "finishReason": str(end.finish_reason),
                "code": end.code,
                "message": end.message,
            }
        case Paused():
            return {
                "answer": answer,
                "finishReason": str(FinishReason.PAUSED),
                "question": end.clarification.question,
                "options": list(end.clarification.options),
            }
        case None:
            return {"answer": answer, "finishReason": "error", "code": "INTERNAL_ERROR"}
