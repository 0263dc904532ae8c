"""A ticket is sent as it is, within bounds, and what goes wrong is told without any of it."""

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from botocore.config import Config
from botocore.exceptions import ClientError, ConnectTimeoutError, NoCredentialsError

from ibid.adapters.sqs import SqsRunQueue
from ibid.domain.errors import QueueUnavailable
from ibid.domain.tickets import RunTicket
from tests.fakes.aws_faults import intercepted, refused
from tests.fakes.ministack import client_config

URL = "http://127.0.0.1:9/000000000000/runs"
TICKET = RunTicket(tenant="acme", subject="ann", run_id="c1-1", path_prefix="secret/")


@pytest.fixture
async def queue() -> AsyncIterator[SqsRunQueue]:
    # no test gets as far as the address
    queue = SqsRunQueue(URL, client_config=client_config("http://127.0.0.1:9"))
    yield queue
    await queue.close()


async def test_a_ticket_is_the_message(queue: SqsRunQueue) -> None:
    calls: list[tuple[str, dict[str, Any]]] = []

    def hook(operation: str, params: dict[str, Any], _: object) -> object:
        calls.append((operation, params))
        return {"MessageId": "m1"}

    with intercepted(hook):
        await queue.send(TICKET)
        await asyncio.gather(*(queue.send(TICKET) for _ in range(20)))

    assert calls == [("SendMessage", {"QueueUrl": URL, "MessageBody": TICKET.to_json()})] * 21


@pytest.mark.parametrize(
    ("error", "named"),
    [
        (refused("SendMessage", "AccessDenied", message="secret"), "AccessDenied"),
        (refused("SendMessage", "ThrottlingException"), "ThrottlingException"),
        (ClientError({}, "SendMessage"), "refused"),
        (ConnectTimeoutError(endpoint_url="secret"), "ConnectTimeoutError"),
        (NoCredentialsError(), "NoCredentialsError"),
    ],
)
async def test_a_failure_is_told_by_its_name_alone(
    queue: SqsRunQueue, error: Exception, named: str
) -> None:
    def hook(_: str, __: dict[str, Any], ___: Callable[..., object]) -> object:
        raise error

    with intercepted(hook), pytest.raises(QueueUnavailable, match=named) as failed:
        await queue.send(TICKET)

    assert "secret" not in str(failed.value)


async def test_a_queue_that_is_not_there_is_told_within_the_bounds() -> None:
    bounds = Config(connect_timeout=0.2, retries={"total_max_attempts": 1})
    config = {**client_config("http://127.0.0.1:9"), "config": bounds}
    queue = SqsRunQueue(URL, client_config=config)

    with pytest.raises(QueueUnavailable, match="EndpointConnectionError"):
        await queue.send(TICKET)

    await queue.close()
