"""The queue of runs in Amazon SQS."""

import asyncio
import threading
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError, HTTPClientError

from ibid.domain.errors import QueueUnavailable
from ibid.domain.tickets import RunTicket

_BOUNDS = Config(
    connect_timeout=2,
    read_timeout=3,
    retries={"mode": "standard", "total_max_attempts": 3},  # what is sent twice does no harm
)


class SqsRunQueue:
    """Implements RunQueue on a standard queue; credentials are found as boto3 finds them.

    A ticket is in the queue within some 15 seconds, or the sending has failed.

    Args:
        url: The queue's.
        client_config: Arguments of `boto3.client("sqs")`.
        workers: Most tickets that are sent at the same time; more wait for a thread.
    """

    def __init__(
        self, url: str, *, client_config: Mapping[str, Any] | None = None, workers: int = 8
    ) -> None:
        self._url = url
        self._config = dict(client_config or {})
        self._workers = ThreadPoolExecutor(workers, thread_name_prefix="sqs")
        self._lock = threading.Lock()
        self._made: Any = None  # boto3 makes its classes at run time

    async def send(self, ticket: RunTicket) -> None:
        """Put a ticket into the queue; if the caller is cancelled it may get there all the same."""
        body = ticket.to_json()
        await asyncio.get_running_loop().run_in_executor(self._workers, self._send, body)

    async def close(self) -> None:
        """Wait for what is being sent and close the sockets; nothing can be sent afterwards."""
        await asyncio.to_thread(self._workers.shutdown)
        if self._made is not None:
            self._made.close()

    def _send(self, body: str) -> None:
        try:
            self._client().send_message(QueueUrl=self._url, MessageBody=body)
        except ClientError as error:
            code = error.response.get("Error", {}).get("Code", "")
            raise QueueUnavailable(f"the queue refused a message: {code}") from error
        except (BotoCoreError, HTTPClientError) as error:
            name = type(error).__name__
            raise QueueUnavailable(f"the queue gave no answer: {name}") from error

    def _client(self) -> Any:  # noqa: ANN401 - boto3 makes its classes at run time
        with self._lock:
            if self._made is None:
                session: Any = boto3.session.Session()  # its overloads know services by literals
                given = self._config.get("config")
                config = _BOUNDS if given is None else _BOUNDS.merge(given)
                self._made = session.client("sqs", **{**self._config, "config": config})
            return self._made
