"""Idempotency-Key on every POST, as plain ASGI: the same request gets the same answer, once made.

The first request claims the key and works; its answer is recorded before its first byte is sent.
The same request again gets that answer: a kept body, or the run that was started, told from its
journal as this request asks for it, also while it runs. What was refused or failed did nothing, so
its key may be tried again.
"""

import logging
from typing import NamedTuple

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ibid.domain.errors import IbidError, RunNotFound
from ibid.domain.principals import Principal
from ibid.ports.idempotency import KeyRecord, KeyScope, StoredAnswer
from ibid.web.access import principal_of
from ibid.web.claims import CLAIM, Claim, Claimant, RunPlan
from ibid.web.edges import is_upload_form
from ibid.web.errors import refusal, refuse_http
from ibid.web.idempotency_keys import KEY_HEADER, Likeness, checked_key
from ibid.web.run_answers import begun_answer, followed_answer
from ibid.web.services import Services

logger = logging.getLogger(__name__)

_KEPT_HEADERS = ("content-type", "location", "ibid-run-id")
_OK, _BEGUN = 200, 202


class _Asked(NamedTuple):
    """One request that carries a key."""

    request: Request
    principal: Principal
    place: KeyScope
    body: bytes
    likeness: Likeness


class Idempotency:
    """Answers requests with a key once; an upload's form is left out: it is taken once anyway."""

    def __init__(self, app: ASGIApp, services: Services) -> None:
        self._app = app
        self._services = services
        self._claimant = Claimant(services.idempotency, services.clock, services.key_limits)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection."""
        if (
            scope["type"] != "http"
            or scope["method"] != "POST"
            or is_upload_form(scope["path"])
            or KEY_HEADER not in Headers(scope=scope)
        ):
            await self._app(scope, receive, send)
            return
        request = Request(scope, receive)
        try:
            asked = await self._asked(request)
            if asked is None:
                return
            held = await self._claimant.claim(asked.place, fingerprint=asked.likeness.fingerprint)
            answer = await self._known_answer(held, asked)
        except IbidError as error:
            await refusal(error, path=scope["path"])(scope, receive, send)
        except HTTPException as error:
            await (await refuse_http(request, error))(scope, receive, send)
        else:
            if isinstance(held, Claim) and answer is None:
                await self._work(held, asked, send)
            elif answer is not None:
                await answer(scope, receive, send)

    async def _asked(self, request: Request) -> _Asked | None:
        """Read the request; None if its client has gone before its end.

        Raises:
            ValidationFailed: The key, or the development principal, is malformed.
        """
        scope = request.scope
        key = checked_key(request.headers.getlist(KEY_HEADER))
        principal = principal_of(request, self._services)
        body = await _body_of(request.receive)
        if body is None:
            return None
        place = KeyScope(
            tenant=principal.tenant,
            subject=principal.subject,
            method=scope["method"],
            path=scope["path"],
            key=key,
        )
        likeness = Likeness(key=key, query=scope["query_string"], body=body)
        return _Asked(request, principal, place, body, likeness)

    async def _known_answer(self, held: Claim | KeyRecord, asked: _Asked) -> Response | None:
        """Return the answer that is there already; None if the work is still to do."""
        if isinstance(held, Claim):
            run_id = await self._planned_run(held, asked.principal)
            if run_id is None:
                return None
            status = _BEGUN if asked.place.path.endswith("/runs") else _OK
            answer = StoredAnswer(status=status, run_id=run_id)
            await held.answer(answer)
        elif held.answer is None:
            return None
        else:
            answer = held.answer
        if answer.run_id is None:
            body = asked.likeness.seal(answer.body, nonce=held.owner)
            return Response(body, status_code=answer.status, headers=dict(answer.headers))
        if answer.status == _BEGUN:
            return begun_answer(answer.run_id)
        return await followed_answer(
            answer.run_id, asked.request, self._services, principal=asked.principal
        )

    async def _planned_run(self, claim: Claim, principal: Principal) -> str | None:
        """Return the run that a request before this one began and did not live to tell."""
        plan = RunPlan.read(claim.planned)
        if plan is None:
            return None
        try:
            run = await self._services.runs.get(plan.run_id, principal=principal)
        except RunNotFound:
            return None
        # of two requests that planned one number, only one began it
        return run.id if run.message_id == plan.message_id else None

    async def _work(self, claim: Claim, asked: _Asked, send: Send) -> None:
        limits = self._services.key_limits
        sending = _Recording(send, claim, asked.likeness, max_bytes=limits.max_answer_bytes)
        scope = {**asked.request.scope, CLAIM: claim}
        async with claim.kept_alive(limits.beat_s):
            await self._app(scope, _again(asked.body, asked.request.receive), sending)


class _Recording:
    """Puts an answer on record, then sends it; lets go of the key where there is none to keep."""

    def __init__(self, send: Send, claim: Claim, likeness: Likeness, *, max_bytes: int) -> None:
        self._send = send
        self._claim = claim
        self._likeness = likeness
        self._max_bytes = max_bytes
        self._start: Message | None = None
        self._body = b""

    async def __call__(self, message: Message) -> None:
        """Take in the application's next message."""
        if message["type"] == "http.response.start":
            status = message["status"]
            if not self._claim.is_answered and _OK <= status < 300:  # noqa: PLR2004 - successes
                self._start = message
                return
            if not self._claim.is_answered:
                await self._claim.let_go(has_failed=status >= 500)  # noqa: PLR2004 - faults of ours
        elif self._start is not None and message["type"] == "http.response.body":
            self._body += message.get("body", b"")
            if message.get("more_body", False):
                return
            await self._keep(self._start)
            await self._send(self._start)
            message = {"type": "http.response.body", "body": self._body}
            self._start = None
        await self._send(message)

    async def _keep(self, start: Message) -> None:
        if len(self._body) > self._max_bytes:  # no path has such an answer
            logger.error("answer too large for its key", extra={"bytes": len(self._body)})
            await self._claim.let_go(has_failed=True)
            return
        headers = Headers(raw=start["headers"])
        await self._claim.answer(
            StoredAnswer(
                status=start["status"],
                headers={name: headers[name] for name in _KEPT_HEADERS if name in headers},
                body=self._likeness.seal(self._body, nonce=self._claim.owner),
            )
        )


async def _body_of(receive: Receive) -> bytes | None:
    body = b""
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return None
        body += bytes(message.get("body", b""))
        if not message.get("more_body", False):
            return body


def _again(body: bytes, receive: Receive) -> Receive:
    """Give the body that was read, whole, then what comes after it."""
    is_given = False

    async def receive_again() -> Message:
        nonlocal is_given
        if is_given:
            return await receive()
        is_given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return receive_again
