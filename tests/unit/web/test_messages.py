"""The Messages surface: one question, streamed or whole."""

from httpx_sse import aconnect_sse

from tests.fakes.app import FakeApp

SSE = {"Accept": "text/event-stream"}


async def test_an_answer_streams_its_events_in_order_with_rising_ids() -> None:
    app = FakeApp()
    conversation = await app.conversation()

    async with (
        app.client() as ann,
        aconnect_sse(
            ann, "POST", f"/conversations/{conversation.id}/messages", json={"question": "Where?"}
        ) as stream,
    ):
        events = [event async for event in stream.aiter_sse()]

    assert [event.event for event in events] == ["status", "citations", "token", "token", "done"]
    assert [event.id for event in events] == ["1", "2", "3", "4", "5"]
    assert stream.response.headers["content-type"].startswith("text/event-stream")
    assert stream.response.headers["cache-control"] == "no-cache"
    assert stream.response.headers["x-accel-buffering"] == "no"
    run_id = stream.response.headers["ibid-run-id"]
    assert stream.response.headers["location"] == f"/runs/{run_id}"
