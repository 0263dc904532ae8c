"""Questions, answers, excerpts and secrets reach no log, at any level, whatever fails."""

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest
from rich.console import Console

from ibid.adapters.models import attempts
from ibid.bootstrap.runtime import open_runtime
from ibid.cli.index import begin_indexing, watch_job
from ibid.cli.logs import log_to_stderr
from ibid.cli.workspace import ask
from ibid.domain.events import Done, Failed, TokenDelta
from ibid.domain.projects import JobState
from ibid.settings import read_settings
from tests.fakes.model_server import Reply, model_server

QUESTION, ANSWER, EXCERPT, KEY = "zzquestion", "zzanswer", "zzexcerpt", "zzsecretkey"


@pytest.fixture(autouse=True)
def loggers_as_they_were() -> Iterator[None]:
    handlers, level = logging.root.handlers[:], logging.root.level
    yield
    logging.root.handlers[:] = handlers
    logging.root.setLevel(level)


@pytest.mark.parametrize(
    "reply",
    [
        Reply(pieces=(f"It is {ANSWER} ", "[1].")),
        Reply(pieces=(f"It is {ANSWER} ", "and more"), fault="cut", after=1),
        Reply(pieces=(f"It is {ANSWER}",), fault="garbage", after=1),
        Reply(pieces=(f"It is {ANSWER}",), stop="length"),
        Reply(pieces=(f"It is {ANSWER}",), stop="refusal"),
        Reply(status=400),
    ],
    ids=["well", "cut", "garbage", "length", "refusal", "rejected"],
)
async def test_nothing_that_was_said_is_logged(
    tmp_path: Path,
    reply: Reply,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(attempts, "_LONGEST_DELAY_S", 0.001)
    corpus = tmp_path / "corpus"
    corpus.mkdir()
    (corpus / "a.py").write_text(f'def handler():\n    """The handler of {EXCERPT}."""\n')
    with model_server() as server:
        server.replies.append(reply)
        monkeypatch.setenv("OPENAI_BASE_URL", server.openai_url)
        monkeypatch.setenv("OPENAI_API_KEY", KEY)
        settings = read_settings(
            {}, data=tmp_path / "data", embedder="none", model="openai:stand-in"
        )
        log_to_stderr(logging.DEBUG)
        async with open_runtime(settings) as runtime:
            project, job_id = await begin_indexing(runtime, str(corpus), name=None, force=False)
            job = await watch_job(runtime, project, job_id, Console(quiet=True))
            project = await runtime.records.projects.get(project.id, tenant=project.tenant)

            run = await ask(
                runtime,
                project,
                f"Where is handler() of {QUESTION}?",
                path_prefix=None,
                reply_language=None,
            )
            events = [entry.event async for entry in run.events(30) if entry is not None]

    logged = capsys.readouterr().err
    assert job.state is JobState.SUCCEEDED
    assert isinstance(events[-1], Done | Failed)
    assert "run_ended" in logged
    assert not [word for word in (QUESTION, ANSWER, EXCERPT, KEY) if word in logged]
    if isinstance(events[-1], Failed):
        assert not [w for w in (QUESTION, ANSWER, EXCERPT, KEY) if w in events[-1].message]
    else:
        shown = "".join(event.text for event in events if isinstance(event, TokenDelta))
        assert ANSWER in shown
