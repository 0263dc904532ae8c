"""What boto3's failures become; it lets five kinds out, not all of them its own."""

from http import HTTPStatus
from typing import Final

from botocore.eventstream import ParserError
from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    EventStreamError,
    NoCredentialsError,
    NoRegionError,
    ParamValidationError,
    PartialCredentialsError,
)
from urllib3.exceptions import HTTPError

from ibid.adapters.models.attempts import TryAgain, retry_after_s
from ibid.domain.errors import ModelFaulty, ModelUnavailable

CAUGHT: Final = (ClientError, BotoCoreError, ParserError, HTTPError, OSError, ValueError)
"""ClientError holds EventStreamError; HTTPError is urllib3's, for stalls and cuts; OSError a
closed socket's; ParserError a bad frame's; ValueError a payload's that is no JSON."""

_FOR_GOOD: Final = (
    NoCredentialsError,
    NoRegionError,
    ParamValidationError,
    PartialCredentialsError,
    ParserError,
    ValueError,
)
_PASSING: Final = frozenset(
    {
        "InternalServerException",
        "ModelNotReadyException",
        "ModelStreamErrorException",
        "ModelTimeoutException",
        "ServiceUnavailableException",
        "ThrottlingException",
        "TooManyRequestsException",
    }
)


def failure(error: Exception, name: str) -> Exception:
    """Translate one; its own text may quote the prompt, so only its kind is told.

    Returns:
        TryAgain if it may pass, else ModelFaulty.
    """
    if isinstance(error, _FOR_GOOD):
        return ModelFaulty(f"{name}: {type(error).__name__}")
    if not isinstance(error, ClientError):
        return TryAgain(ModelUnavailable(f"the stream of {name} broke: {type(error).__name__}"))
    code = str(error.response.get("Error", {}).get("Code", "unknown"))
    metadata = error.response.get("ResponseMetadata", {})
    status = metadata.get("HTTPStatusCode", 0)
    passing = code[:1].upper() + code[1:] in _PASSING
    if not isinstance(error, EventStreamError):
        passing = passing or status >= HTTPStatus.INTERNAL_SERVER_ERROR
        passing = passing or status == HTTPStatus.TOO_MANY_REQUESTS
    if not passing:
        return ModelFaulty(f"Bedrock rejected the request for {name}: {_word(code)}")
    header = metadata.get("HTTPHeaders", {}).get("retry-after")
    return TryAgain(
        ModelUnavailable(f"Bedrock could not serve {name}: {_word(code)}"),
        after_s=retry_after_s(header),
    )


def _word(code: str) -> str:
    return code if code.isalnum() else "unknown"
