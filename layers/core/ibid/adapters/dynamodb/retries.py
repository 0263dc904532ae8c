"""Calls to AWS that are tried again, with jitter, for as long as a budget lasts."""

import random
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError, HTTPClientError

from ibid.domain.errors import Misconfigured, StoreUnavailable

_AGAIN = frozenset(
    {
        "ExpiredToken",  # its successor may be there by the next try
        "ExpiredTokenException",
        "InternalError",
        "InternalServerError",
        "LimitExceededException",
        "ProvisionedThroughputExceededException",
        "RequestLimitExceeded",
        "RequestTimeout",
        "ServiceUnavailable",
        "SlowDown",
        "ThrottlingException",
        "Throttling",
        "TransactionConflictException",
    }
)
_SETTINGS = frozenset(
    {
        "AccessDenied",
        "AccessDeniedException",
        "NoSuchBucket",
        "ResourceNotFoundException",
        "UnrecognizedClientException",
    }
)
_SERVER_ERROR = 500


def code_of(error: ClientError) -> str:
    """Return the service's code of an error; empty when it gave none."""
    return str(error.response.get("Error", {}).get("Code", ""))


@dataclass(frozen=True, slots=True)
class RetryBudget:
    """How long a call and its repetitions may take.

    Every call that is made through it must be safe to make twice.

    Attributes:
        seconds: From the first try to the last one's start, above 0.
        first_s: The longest wait before the second try; it doubles up to `most_s`.
        most_s: The longest wait.
        clock: Monotonic seconds.
        sleep: Waits.
        jitter: Draws from 0 to 1.
    """

    seconds: float = 20.0
    first_s: float = 0.05
    most_s: float = 1.0
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    jitter: Callable[[], float] = field(default=random.random)

    def call(self, operation: Callable[..., Any], **params: Any) -> Any:  # noqa: ANN401 - botocore's own
        """Call, and call again while the service or the network says "not now".

        Raises:
            StoreUnavailable: It went on past the budget, or failed in an unforeseen way.
            Misconfigured: No such table, index or bucket, or no right to it.
            ClientError: The service's answer to what was asked: a condition that does not hold,
                an item too large, an object that is not there.
        """
        waits = self.waits()
        while True:
            try:
                return operation(**params)
            except ClientError as error:
                code, name = code_of(error), operation.__name__
                status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
                if code in _SETTINGS:
                    raise Misconfigured(f"{name}{_of(params)} was refused: {code}") from error
                if code not in _AGAIN and status < _SERVER_ERROR:
                    raise
                if not waits.wait():
                    raise StoreUnavailable(f"{name} gave no answer: {code}") from error
            except (BotoCoreError, HTTPClientError) as error:
                if not waits.wait():
                    name = type(error).__name__
                    raise StoreUnavailable(f"{operation.__name__} failed: {name}") from error

    def waits(self) -> "Waits":
        """Start a budget."""
        return Waits(self)


def _of(params: Mapping[str, Any]) -> str:
    """Name what a call is about: its tables or its bucket."""
    names = [params[key] for key in ("TableName", "IndexName", "Bucket") if key in params]
    names += params.get("RequestItems", ())
    return f" of {', '.join(map(repr, names))}" if names else ""


class Waits:
    """One budget being used up."""

    def __init__(self, budget: RetryBudget) -> None:
        self._budget = budget
        self._end = budget.clock() + budget.seconds
        self._longest = budget.first_s

    def wait(self) -> bool:
        """Wait before another try; False, without a wait, once the budget is used up."""
        budget = self._budget
        pause = self._longest * budget.jitter()
        if budget.clock() + pause > self._end:
            return False
        budget.sleep(pause)
        self._longest = min(self._longest * 2, budget.most_s)
        return True
