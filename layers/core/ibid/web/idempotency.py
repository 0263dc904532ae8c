"""Idempotency-Key on every POST, as plain ASGI: the same request gets the same answer, once made.

The first request claims the key and works; its answer is recorded before its first byte is sent.
The same request again gets that answer: a kept body, or the run that was started, told from its
journal as this request asks for it, also while it runs. What was refused or failed did nothing, so
its key may be tried again.
"""

import logging
from functools import partial
from typing import NamedTuple

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ibid.domain.errors import IbidError, RunNotFound
from ibid.domain.principals import Principal
from ibid.ports.idempotency import KeyScope, StoredAnswer
from ibid.web.access import principal_of
from ibid.web.claimant import Answered, Claimant
from ibid.web.claims import CLAIM, Claim, RunPlan
from ibid.web.edges import is_upload_form
from ibid.web.errors import internal_error, refusal, refuse_http
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
        handle: ASGIApp
        try:
            handle = await self._handler(await self._asked(request))
        except ClientDisconnect:
            return
        except IbidError as error:
            handle = refusal(error, path=scope["path"])
        except HTTPException as error:
            handle = await refuse_http(request, error)
        except Exception:
            await internal_error()(scope, receive, send)
            raise
        await handle(scope, receive, send)

    async def _asked(self, request: Request) -> _Asked:
        """Read the request.

        Raises:
            ValidationFailed: The key, or the development principal, is malformed.
            ClientDisconnect: Its client has gone before its end.
        """
        scope = request.scope
        key = checked_key(request.headers.getlist(KEY_HEADER))
        principal = principal_of(request, self._services)
        body = await request.body()
        place = KeyScope(
            tenant=principal.tenant,
            subject=principal.subject,
            method=scope["method"],
            path=scope["path"],
            key=key,
        )
        likeness = Likeness(key=key, query=scope["query_string"], body=body)
        return _Asked(request, principal, place, body, likeness)

    async def _handler(self, asked: _Asked) -> ASGIApp:
        """Return the answer that is there already, or else what does the work."""
        held = await self._claimant.claim(asked.place, fingerprint=asked.likeness.fingerprint)
        if isinstance(held, Answered):
            return await self._kept_answer(held, asked)
        run_id = await self._planned_run(held, asked.principal)
        if run_id is None:
            return partial(self._work, held, asked)
        status = _BEGUN if asked.place.path.endswith("/runs") else _OK
        answer = StoredAnswer(status=status, run_id=run_id)
        await held.answer(answer)
        return await self._kept_answer(Answered(held.owner, answer), asked)

    async def _kept_answer(self, kept: Answered, asked: _Asked) -> Response:
        answer = kept.answer
        if answer.run_id is None:
            body = asked.likeness.seal(answer.body, nonce=kept.owner)
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

    async def _work(
        self, claim: Claim, asked: _Asked, scope: Scope, receive: Receive, send: Send
    ) -> None:
        limits = self._services.key_limits
        sending = _Recording(send, claim, asked.likeness, max_bytes=limits.max_answer_bytes)
        async with claim.kept_alive(limits.beat_s):
            await self._app({**scope, CLAIM: claim}, _again(asked.body, receive), sending)


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
