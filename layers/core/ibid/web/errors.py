"""One form for every refusal: `{"detail": {"code", "message", "fields"?}}`, no input in it.

What a refusal names (a run, an interrupt, a state) stands in `detail` too, in the case of the
surface that was asked.
"""

import re
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse
from starlette.routing import Match, Route

from ibid.domain.errors import (
    GenerationGone,
    IbidError,
    KeyInUse,
    NotFound,
    PausePending,
    PauseResolved,
    Refused,
    ShuttingDown,
    SourceRejected,
    ThreadBusy,
    Unavailable,
    ValidationFailed,
)
from ibid.web.error_bodies import ErrorBody, ErrorDetail, SnakeErrorBody, SnakeErrorDetail
from ibid.web.wire import Wire

RETRY_AFTER_S = 5
"""Seconds after which a client may try again what was refused with 503."""

_FIELD_NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}")
_HTTP_CODES = {
    404: ("NOT_FOUND", "There is nothing here."),
    405: ("METHOD_NOT_ALLOWED", "This path has no such method; `Allow` has those that it has."),
    413: ("BODY_TOO_LARGE", None),  # who refuses it says how large it may be
}
_INVALID = "The request is not valid; `fields` says where."
_SNAKE_CASE = frozenset({"ask", "datasets", "feedback", "resume"})


def is_snake_case(path: str) -> bool:
    """Say if what is asked of a path, and answered, has its names in snake_case."""
    return path.lstrip("/").partition("/")[0] in _SNAKE_CASE


def error_response(
    status: int,
    code: str,
    message: str,
    *,
    fields: Mapping[str, str] | None = None,
    headers: Mapping[str, str] | None = None,
) -> JSONResponse:
    """Make the one form."""
    detail = ErrorDetail(code=code, message=message, fields=fields or None)
    body = ErrorBody(detail=detail).model_dump(mode="json")
    return JSONResponse(body, status_code=status, headers=headers)


def documented(*statuses: int, body: type[Wire] = ErrorBody) -> dict[int | str, dict[str, Any]]:
    """Describe the refusals of a path for the schema; 500 and 503 are every path's."""
    return {
        status: {"model": body, "description": HTTPStatus(status).phrase}
        for status in sorted({*statuses, 500, 503})
    }


async def refuse(request: Request, error: Exception) -> JSONResponse:
    """Answer one of our own errors, raised before the first byte."""
    return refusal(error, path=request.url.path)


def refusal(error: Exception, *, path: str) -> JSONResponse:
    """Make the answer to one of our own errors, in the case of the path that was asked."""
    match error:
        case ValidationFailed():
            return error_response(error.status, error.code, str(error), fields=error.fields)
        case NotFound():
            # One text a code, so that a stranger's answer is that of an id that never was.
            thing = error.code.removesuffix("NOT_FOUND").strip("_").lower().replace("_", " ")
            return error_response(error.status, error.code, f"There is no such {thing or 'thing'}.")
        case ThreadBusy():
            return _naming(error, path, run_id=error.run_id)
        case PausePending():
            return _naming(error, path, run_id=error.run_id, interrupt_id=error.interrupt_id)
        case PauseResolved():
            return _naming(error, path, run_id=error.run_id, state=error.state)
        case KeyInUse():
            return error_response(
                error.status, error.code, str(error), headers={"Retry-After": str(RETRY_AFTER_S)}
            )
        case ShuttingDown() | Unavailable() | GenerationGone():
            return error_response(
                503, error.code, str(error), headers={"Retry-After": str(RETRY_AFTER_S)}
            )
        case Refused():
            return error_response(error.status, error.code, str(error))
        case SourceRejected():
            return error_response(422, error.code, str(error), fields={"source": str(error)})
        case _:
            return internal_error()


def _naming(error: Refused, path: str, **named: str) -> JSONResponse:
    """Answer with what the error names beside its text."""
    text = {"code": error.code, "message": str(error)}
    body: Wire
    if is_snake_case(path):
        body = SnakeErrorBody(detail=SnakeErrorDetail(**text, **named))
    else:
        body = ErrorBody(detail=ErrorDetail(**text, **named))
    return JSONResponse(body.model_dump(mode="json"), status_code=error.status)


def internal_error() -> JSONResponse:
    """Answer a fault of ours without a word about it."""
    return error_response(500, "INTERNAL_ERROR", "The server failed to answer.")


async def refuse_invalid(_: Request, error: Exception) -> JSONResponse:
    """Answer FastAPI's own validation; values are never echoed."""
    problems = error.errors() if isinstance(error, RequestValidationError) else []
    return error_response(422, "VALIDATION_ERROR", _INVALID, fields=_fields(problems))


async def refuse_http(request: Request, error: Exception) -> JSONResponse:
    """Answer what the framework refuses: unknown paths, methods, bodies that can't be read."""
    status, told = 500, ""
    if isinstance(error, HTTPException):
        status, told = error.status_code, error.detail
    if status == 400:  # noqa: PLR2004 - the framework's word for a body that it can't read
        fields = {"body": "is no JSON in UTF-8 that can be read"}
        return error_response(422, "VALIDATION_ERROR", _INVALID, fields=fields)
    if status not in _HTTP_CODES:
        return internal_error()
    code, message = _HTTP_CODES[status]
    headers = {"Allow": _allowed(request)} if status == 405 else None  # noqa: PLR2004 - RFC 9110
    return error_response(status, code, message or told, headers=headers)


async def refuse_unforeseen(_: Request, error: Exception) -> JSONResponse:
    """Answer what nobody foresaw; the outermost layer logs its type."""
    del error
    return internal_error()


def add_error_handlers(app: FastAPI) -> None:
    """Give every failure of the application the one form."""
    app.add_exception_handler(IbidError, refuse)
    app.add_exception_handler(RequestValidationError, refuse_invalid)
    app.add_exception_handler(HTTPException, refuse_http)
    app.add_exception_handler(Exception, refuse_unforeseen)


def _allowed(request: Request) -> str:
    """List the methods of every route on the path, which the framework's answer leaves out."""
    methods: set[str] = set()
    for route in request.app.routes:
        if isinstance(route, Route) and route.matches(request.scope)[0] is not Match.NONE:
            methods |= route.methods or set()
    return ", ".join(sorted(methods))


def _fields(problems: Sequence[Any]) -> dict[str, str]:
    fields: dict[str, str] = {}
    for problem in problems:
        where = [str(part) for part in problem["loc"]]
        name = ".".join(where[1:] if len(where) > 1 else where)
        if problem["type"] == "json_invalid":
            name = "body"
        elif not _FIELD_NAME.fullmatch(name):
            name = "(unnamed)"  # a field's name is the caller's text, too
        fields.setdefault(name, _message(problem))
    return fields


def _message(problem: Mapping[str, Any]) -> str:
    match problem["type"]:
        case "union_tag_invalid":  # pydantic's own text repeats the tag that was given
            return f"Input should be one of {problem['ctx']['expected_tags']}"
        case "json_invalid":
            return "is not valid JSON"
        case "model_attributes_type" if problem["loc"] == ("body",):
            return "must be a JSON object, sent as Content-Type: application/json"
        case "value_error":
            return str(problem["ctx"]["error"])
        case _:
            return str(problem["msg"])
