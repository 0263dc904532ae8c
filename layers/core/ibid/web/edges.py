"""The application's outer edges, as plain ASGI: nothing escapes, and no body is without an end."""

import logging
from collections.abc import Collection

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ibid.web.errors import error_response

logger = logging.getLogger(__name__)


class CatchAll:
    """Ends every exception of the application here; only its type is logged."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        try:
            await self._app(scope, receive, send)
        except Exception as error:  # noqa: BLE001 - the outermost edge; the answer has been sent
            logger.error("request failed", extra={"error": type(error).__name__})


class HostCheck:
    """Refuses a request whose `Host` names none of the hosts; none at all means that any will do.

    A page of a foreign site can make a browser's name for itself point to loopback (DNS
    rebinding); its requests then still carry that name.
    """

    def __init__(self, app: ASGIApp, hosts: Collection[str]) -> None:
        self._app = app
        self._hosts = frozenset(hosts)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection."""
        if scope["type"] != "http" or not self._hosts or self._is_ours(scope):
            await self._app(scope, receive, send)
            return
        refusal = error_response(
            400,
            "HOST_NOT_ALLOWED",
            f"This server is named {' or '.join(sorted(self._hosts))} only.",
        )
        await refusal(scope, receive, send)

    def _is_ours(self, scope: Scope) -> bool:
        host = Headers(scope=scope).get("host", "")
        name = host if host.endswith("]") else host.rpartition(":")[0] or host
        return name.lower() in self._hosts


class BodyLimit:
    """Refuses a body that is larger than `max_bytes`, as it is announced or as it comes."""

    def __init__(self, app: ASGIApp, max_bytes: int, max_upload_bytes: int) -> None:
        self._app = app
        self._max_bytes = max_bytes
        self._max_upload_bytes = max_upload_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        limit = self._limit(scope)
        announced = Headers(scope=scope).get("content-length", "")
        if announced.isdecimal() and int(announced) > limit:
            await error_response(413, "BODY_TOO_LARGE", _too_large(limit))(scope, receive, send)
            return
        received = 0

        async def receive_within() -> Message:
            nonlocal received
            message = await receive()
            received += len(message.get("body", b""))
            if received > limit:
                raise HTTPException(413, _too_large(limit))
            return message

        await self._app(scope, receive_within, send)

    def _limit(self, scope: Scope) -> int:
        return self._max_upload_bytes if is_upload_form(scope["path"]) else self._max_bytes


def _too_large(limit: int) -> str:
    return f"The body is larger than the {limit:,} bytes that this path takes."


def is_upload_form(path: str) -> bool:
    """Say if a path takes the form of an upload: /projects/{id}/uploads/{uploadId}."""
    parts = path.split("/")
    return len(parts) == 5 and parts[1] == "projects" and parts[3] == "uploads"  # noqa: PLR2004 - as the docstring counts
