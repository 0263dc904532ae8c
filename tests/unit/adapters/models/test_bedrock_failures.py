import pytest
from botocore.eventstream import ChecksumMismatch
from botocore.exceptions import (
    ClientError,
    EndpointConnectionError,
    EventStreamError,
    NoCredentialsError,
)
from urllib3.exceptions import ProtocolError

from ibid.adapters.models.attempts import TryAgain
from ibid.adapters.models.bedrock_failures import CAUGHT, failure
from ibid.domain.errors import ModelFaulty


def rejected(code: str, status: int, headers: dict[str, str] | None = None) -> ClientError:
    return ClientError(
        {
            "Error": {"Code": code, "Message": "SECRET"},
            "ResponseMetadata": {  # type: ignore[typeddict-item]  # botocore leaves fields out too
                "HTTPStatusCode": status,
                "HTTPHeaders": headers or {},
            },
        },
        "ConverseStream",
    )


def streamed(code: str) -> EventStreamError:
    return EventStreamError({"Error": {"Code": code, "Message": "SECRET"}}, "ConverseStream")


PASSING = [
    rejected("ThrottlingException", 429),
    rejected("ServiceUnavailableException", 503),
    rejected("ModelTimeoutException", 408),
    rejected("SomethingNew", 500),
    rejected("SomethingNew", 429),
    streamed("throttlingException"),
    streamed("modelStreamErrorException"),
    streamed("internalServerException"),
    EndpointConnectionError(endpoint_url="http://SECRET"),
    ProtocolError("SECRET"),
    ConnectionResetError("SECRET"),
]
FOR_GOOD = [
    rejected("ValidationException", 400),
    rejected("AccessDeniedException", 403),
    rejected("ResourceNotFoundException", 404),
    rejected("<html>", 400),
    streamed("validationException"),
    NoCredentialsError(),
    ChecksumMismatch(1, 2),
    ValueError("SECRET"),
]


@pytest.mark.parametrize("error", PASSING)
def test_what_may_pass_is_worth_another_try(error: Exception) -> None:
    assert isinstance(error, CAUGHT)
    became = failure(error, "m")

    assert isinstance(became, TryAgain)
    assert "SECRET" not in f"{became} {became.failure}"


@pytest.mark.parametrize("error", FOR_GOOD)
def test_what_will_not_pass_is_faulty(error: Exception) -> None:
    assert isinstance(error, CAUGHT)
    became = failure(error, "m")

    assert isinstance(became, ModelFaulty)
    assert "SECRET" not in str(became)
    assert "<html>" not in str(became)


def test_the_wait_that_bedrock_asks_for_is_kept() -> None:
    became = failure(rejected("ThrottlingException", 429, {"retry-after": "3"}), "m")

    assert isinstance(became, TryAgain)
    assert became.after_s == 3
