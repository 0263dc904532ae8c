"""Tickets on a stand-in of SQS: sent, taken, left, and taken again."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import Any
from uuid import uuid4

import boto3
import pytest

from ibid.adapters.sqs import SqsRunQueue
from ibid.domain.answers import Style
from ibid.domain.errors import QueueUnavailable
from ibid.domain.tickets import RunTicket
from tests.fakes.ministack import client_config

pytestmark = pytest.mark.ministack


@pytest.fixture
def sqs(ministack_url: str) -> Iterator[Any]:
    session: Any = boto3.session.Session()
    client = session.client("sqs", **client_config(ministack_url))
    yield client
    client.close()


@pytest.fixture
def url(sqs: Any) -> str:  # noqa: ANN401 - boto3 makes its classes at run time
    made: str = sqs.create_queue(QueueName=f"runs-{uuid4().hex[:12]}")["QueueUrl"]
    return made


@pytest.fixture
async def queue(ministack_url: str, url: str) -> AsyncIterator[SqsRunQueue]:
    queue = SqsRunQueue(url, client_config=client_config(ministack_url))
    yield queue
    await queue.close()


def _taken(sqs: Any, url: str) -> list[dict[str, str]]:  # noqa: ANN401 - boto3 makes its classes at run time
    """What the queue hands out until it is empty."""
    taken: list[dict[str, str]] = []
    while found := sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10).get("Messages"):
        taken.extend(found)
    return taken


async def test_tickets_come_out_as_they_went_in(sqs: Any, url: str, queue: SqsRunQueue) -> None:  # noqa: ANN401 - boto3 makes its classes at run time
    tickets = [
        RunTicket(
            tenant="acme",
            subject="änn \U0001f4a1",
            run_id=f"c1-{number}",
            style=Style(format="bullets"),
            path_prefix="src/\x01\uffff" + "\U0001f4a1" * 1_000,
            reply_language="pt-BR",
            is_behind=True,
        )
        for number in range(20)
    ]

    await asyncio.gather(*(queue.send(ticket) for ticket in tickets))

    taken = [RunTicket.from_json(one["Body"]) for one in await asyncio.to_thread(_taken, sqs, url)]
    assert sorted(taken, key=tickets.index) == tickets


async def test_a_ticket_that_nobody_says_is_through_comes_again(
    sqs: Any,  # noqa: ANN401 - boto3 makes its classes at run time
    url: str,
    queue: SqsRunQueue,
) -> None:
    ticket = RunTicket(tenant="acme", subject="ann", run_id="c1-1")
    await queue.send(ticket)
    (first,) = await asyncio.to_thread(_taken, sqs, url)

    sqs.change_message_visibility(
        QueueUrl=url, ReceiptHandle=first["ReceiptHandle"], VisibilityTimeout=0
    )

    (again,) = await asyncio.to_thread(_taken, sqs, url)
    assert RunTicket.from_json(again["Body"]) == ticket


async def test_a_queue_that_does_not_exist_is_told(ministack_url: str) -> None:
    queue = SqsRunQueue(
        f"{ministack_url}/000000000000/none", client_config=client_config(ministack_url)
    )

    with pytest.raises(QueueUnavailable, match="refused"):
        await queue.send(RunTicket(tenant="acme", subject="ann", run_id="c1-1"))
    await queue.close()
