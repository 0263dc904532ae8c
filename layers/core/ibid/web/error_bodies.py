"""The one form of every answer that is no success, in both cases."""

from collections.abc import Mapping

from pydantic import Field

from ibid.web.wire import SnakeWire, Wire, is_absent


class ErrorDetail(Wire):
    """What went wrong; `code` is stable and for programs, `fields` names what was wrong.

    `runId` is the run that is in the way: under way, waiting, or the one that goes on after a
    pause, and then `state` is its state; `interruptId` is the pause that waits.
    """

    code: str
    message: str
    fields: Mapping[str, str] | None = Field(default=None, exclude_if=is_absent)
    run_id: str | None = Field(default=None, exclude_if=is_absent)
    interrupt_id: str | None = Field(default=None, exclude_if=is_absent)
    state: str | None = Field(default=None, exclude_if=is_absent)


class ErrorBody(Wire):
    """Every answer that is no success."""

    detail: ErrorDetail


class SnakeErrorDetail(SnakeWire):
    """What went wrong, on a surface in snake_case.

    `run_id` is the run that is in the way: under way, waiting, or the one that goes on after a
    pause, and then `state` is its state; `interrupt_id` is the pause that waits.
    """

    code: str
    message: str
    fields: Mapping[str, str] | None = Field(default=None, exclude_if=is_absent)
    run_id: str | None = Field(default=None, exclude_if=is_absent)
    interrupt_id: str | None = Field(default=None, exclude_if=is_absent)
    state: str | None = Field(default=None, exclude_if=is_absent)


class SnakeErrorBody(SnakeWire):
    """Every answer that is no success, on a surface in snake_case."""

    detail: SnakeErrorDetail
