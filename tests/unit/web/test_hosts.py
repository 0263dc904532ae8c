"""A page of another site can't reach the server by making its own name point here."""

import httpx
import pytest
from starlette.responses import PlainTextResponse
from starlette.types import Receive, Scope, Send

from ibid.web.edges import HostCheck


async def application(scope: Scope, receive: Receive, send: Send) -> None:
    await PlainTextResponse("served")(scope, receive, send)


async def answer(host: str, hosts: tuple[str, ...]) -> httpx.Response:
    transport = httpx.ASGITransport(app=HostCheck(application, hosts))
    async with httpx.AsyncClient(transport=transport, base_url="http://any") as client:
        return await client.get("/", headers={"Host": host})


async def status(host: str, hosts: tuple[str, ...]) -> int:
    return (await answer(host, hosts)).status_code


LOOPBACK = ("localhost", "127.0.0.1", "[::1]")


@pytest.mark.parametrize(
    "host", ["localhost", "localhost:8000", "127.0.0.1:1", "[::1]", "[::1]:80", "LOCALHOST:8000"]
)
async def test_the_server_is_reached_by_its_own_names(host: str) -> None:
    assert await status(host, LOOPBACK) == 200


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:8000", "127.0.0.1.evil.example", "", "[::2]:80", ":80"]
)
async def test_a_foreign_name_is_refused(host: str) -> None:
    assert await status(host, LOOPBACK) == 400


async def test_a_refusal_names_the_servers_names_and_not_the_callers() -> None:
    told = (await answer("evil.example", LOOPBACK)).json()["detail"]["message"]

    assert told == "This server is named 127.0.0.1 or [::1] or localhost only."


async def test_without_names_any_will_do() -> None:
    assert await status("evil.example", ()) == 200
