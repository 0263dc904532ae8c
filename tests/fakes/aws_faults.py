"""What no emulator does by itself: late reads, throttling, unprocessed items, lost replies."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, cast
from unittest.mock import patch

from botocore.client import BaseClient
from botocore.exceptions import ClientError

_CALL = "_make_api_call"  # where every call of every client passes

Call = Callable[[dict[str, Any]], Any]
Hook = Callable[[str, dict[str, Any], Call], Any]


@contextmanager
def intercepted(hook: Hook) -> Iterator[None]:
    """Hand every AWS call of this process to `hook(operation, parameters, call)`."""
    plain = vars(BaseClient)[_CALL]

    def passed(self: BaseClient, operation_name: str, api_params: Any) -> Any:  # noqa: ANN401 - botocore's own
        return hook(operation_name, api_params, lambda params: plain(self, operation_name, params))

    with patch.object(BaseClient, _CALL, passed):
        yield


def refused(operation: str, code: str, *, status: int = 400, message: str = "") -> ClientError:
    """Return a service's refusal."""
    return ClientError(
        {
            "Error": {"Code": code, "Message": message},
            "ResponseMetadata": {
                "HTTPStatusCode": status,
                "RequestId": "",
                "HostId": "",
                "HTTPHeaders": {},
                "RetryAttempts": 0,
            },
        },
        operation,
    )


def throttled(operations: frozenset[str], times: int) -> Hook:
    """Refuse the first `times` calls of these operations."""
    left = times

    def hook(operation: str, params: dict[str, Any], call: Call) -> Any:  # noqa: ANN401 - botocore's own
        nonlocal left
        if operation in operations and left > 0:
            left -= 1
            raise refused(operation, "ProvisionedThroughputExceededException")
        return call(params)

    return hook


def late(operation: str, params: dict[str, Any], call: Call) -> Any:  # noqa: ANN401 - botocore's own
    """Answer every read that is not strongly consistent as if nothing had been written yet."""
    if params.get("ConsistentRead") or "IndexName" in params:
        return call(params)
    if operation in {"Query", "Scan"}:
        return {"Items": [], "Count": 0}
    if operation == "GetItem":
        return {}
    return call(params)


def unprocessed(operation: str, params: dict[str, Any], call: Call) -> Any:  # noqa: ANN401 - botocore's own
    """Process one request of each batch and leave the others."""
    if operation != "BatchWriteItem":
        return call(params)
    ((table, requests),) = params["RequestItems"].items()
    found = call({**params, "RequestItems": {table: requests[:1]}})
    return {**found, "UnprocessedItems": {table: requests[1:]} if requests[1:] else {}}


def lost(operations: frozenset[str], times: int) -> Hook:
    """Do the first `times` calls of these operations and lose the reply."""
    left = times

    def hook(operation: str, params: dict[str, Any], call: Call) -> Any:  # noqa: ANN401 - botocore's own
        nonlocal left
        found = call(params)
        if operation in operations and left > 0:
            left -= 1
            raise refused(operation, "InternalServerError", status=500)
        return found

    return hook


def each_once(operations: frozenset[str], code: str, *, is_done: bool) -> Hook:
    """Fail the first try of every call of these operations; with `is_done`, only its reply."""
    tried: set[str] = set()

    def hook(operation: str, params: dict[str, Any], call: Call) -> Any:  # noqa: ANN401 - botocore's own
        is_first = operation in operations and repr(params) not in tried
        tried.add(repr(params))
        if is_first and is_done:
            call(params)
        if is_first:
            raise refused(operation, code, status=500 if is_done else 400)
        return call(params)

    return hook


def conflicting_once() -> Hook:
    """Cancel the first try of every transaction as another one's were in its way."""
    tried: set[str] = set()

    def hook(operation: str, params: dict[str, Any], call: Call) -> Any:  # noqa: ANN401 - botocore's own
        if operation == "TransactWriteItems" and repr(params) not in tried:
            tried.add(repr(params))
            error = refused(operation, "TransactionCanceledException")
            reasons = [{"Code": "None"} for _ in params["TransactItems"]]
            reasons[0] = {"Code": "TransactionConflict"}
            cast("dict[str, Any]", error.response)["CancellationReasons"] = reasons
            raise error
        return call(params)

    return hook
