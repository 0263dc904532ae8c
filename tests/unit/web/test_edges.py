"""What the application does where nothing else can: at its very edges."""

import asyncio
import json
import logging
from collections.abc import AsyncGenerator

import pytest
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.types import Message, Receive, Scope, Send

from ibid.domain.answers import FinishReason
from ibid.domain.events import Entry, Failed, TokenDelta
from ibid.web.edges import BodyLimit, CatchAll
from ibid.web.errors import refuse_http
from ibid.web.framing import message_event
from ibid.web.run_answers import run_answer
from ibid.web.streaming import Readable, run_frames
from tests.fakes.samples import a_run

FAILED = Failed(message_id=None, code="X", message="a\udcff.py", finish_reason=FinishReason.ERROR)


class Breaking(Readable):
    """A run whose events break off, which no run of the engine does."""

    run = a_run()

    def __init__(self) -> None:
        self.closed = False

    async def events(self, ping_s: float) -> AsyncGenerator[Entry | None, None]:
        assert ping_s > 0
        try:
            yield Entry(id=1, event=TokenDelta(text="It is"))
            raise RuntimeError("the secret answer")
        finally:
            self.closed = True


async def test_no_exception_leaves_the_frames_and_what_was_sent_stays_sent(
    caplog: pytest.LogCaptureFixture,
) -> None:
    run = Breaking()

    with caplog.at_level(logging.ERROR):
        frames = [frame async for frame in run_frames(run, ping_s=1.0)]

    assert frames == [b'event: token\ndata: {"text":"It is"}\nid: 1\n\n']
    assert run.closed
    (record,) = caplog.records
    assert (record.message, record.__dict__["error"]) == ("stream failed", "RuntimeError")
    assert "secret" not in caplog.text


class Hesitant(Readable):
    """A run that is silent for a while before it fails."""

    run = a_run()

    async def events(self, ping_s: float) -> AsyncGenerator[Entry | None, None]:
        assert ping_s > 0
        yield None
        yield Entry(id=1, event=TokenDelta(text="It is"))
        yield None
        yield Entry(id=2, event=FAILED)


async def test_silence_is_no_part_of_a_json_answer() -> None:
    async def receive() -> Message:
        await asyncio.Event().wait()
        raise AssertionError

    request = Request({"type": "http", "headers": []}, receive)

    answer = await run_answer(Hesitant(), request, ping_s=1.0)

    body = json.loads(bytes(answer.body))
    assert (body["content"], body["finishReason"]) == ("It is", "error")
    assert body["message"] == "a\ufffd.py"


@pytest.mark.parametrize("kind", ["lifespan", "websocket"])
async def test_what_is_no_request_passes_the_edges_untouched(kind: str) -> None:
    passed: list[Scope] = []

    async def app(scope: Scope, _receive: Receive, _send: Send) -> None:
        passed.append(scope)

    async def receive() -> Message:
        return {"type": f"{kind}.disconnect"}

    async def send(message: Message) -> None:
        pytest.fail(f"sent {message['type']}")

    edges = CatchAll(BodyLimit(app, max_bytes=1, max_upload_bytes=1))
    await edges({"type": kind}, receive, send)

    assert passed == [{"type": kind}]


async def test_a_status_that_nobody_foresaw_is_an_internal_error() -> None:
    answer = await refuse_http(Request({"type": "http"}), HTTPException(418, "the secret answer"))

    assert answer.status_code == 500
    assert b"secret" not in bytes(answer.body)


def test_an_error_whose_message_is_no_text_is_still_an_event() -> None:
    name, data = message_event(FAILED)

    assert (name, "a\ufffd.py" in data) == ("error", True)
