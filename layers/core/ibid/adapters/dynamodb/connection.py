"""The clients and threads of one process; a fork makes its own."""

import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, TypeVar, cast

import boto3
from botocore.awsrequest import AWSResponse
from botocore.config import Config
from botocore.exceptions import BotoCoreError, NoRegionError

from ibid.adapters.dynamodb.retries import RetryBudget
from ibid.domain.errors import Misconfigured, StoreUnavailable

_REMEMBERED = 4_096
_REDIRECTION = 300  # and above: botocore makes errors of those

T = TypeVar("T")


class _Process:
    """What must not be shared with a parent process: sockets, threads, locks."""

    def __init__(self) -> None:
        self.pid = os.getpid()
        self.lock = threading.RLock()
        self.clients: dict[str, Any] = {}
        self.executor: ThreadPoolExecutor | None = None
        self.under_way: dict[tuple[str, int], int] = {}
        self.in_doubt: set[tuple[str, int]] = set()
        self.idle = threading.Condition(self.lock)
        self.stored: OrderedDict[tuple[str, ...], None] = OrderedDict()
        self.seen: OrderedDict[tuple[str, ...], None] = OrderedDict()


class _ForeignAnswerError(BotoCoreError):
    fmt = "an answer that is not the service's"


def _refuse_page(http_response: AWSResponse, **_: object) -> None:
    """Refuse a success that is a page of somebody between: botocore reads that as empty.

    Raises:
        _ForeignAnswerError: It is one.
    """
    is_page = http_response.headers.get("content-type", "").startswith("text/html")
    if is_page and http_response.status_code < _REDIRECTION:
        raise _ForeignAnswerError


class Connection:
    """Shared by every copy of a saver; belongs to no event loop.

    Args:
        configs: Arguments of `boto3.client` by service name.
        workers: Most calls under way at once, at least 1; also the size of the socket pool.
        budget: For every call.
    """

    def __init__(
        self, configs: Mapping[str, Mapping[str, Any]], *, workers: int, budget: RetryBudget
    ) -> None:
        self._configs = configs
        self._workers = workers
        self.budget = budget
        self._process = _Process()

    def _own(self) -> _Process:
        if self._process.pid != os.getpid():
            self._process = _Process()
        return self._process

    def client(self, service: str) -> Any:  # noqa: ANN401 - boto3 makes its classes at run time
        """Return this process's client of a service, made at first use.

        Raises:
            Misconfigured: As for `make_client`.
        """
        own = self._own()
        with own.lock:
            if service not in own.clients:
                arguments = client_arguments(self._configs.get(service, {}), self._workers)
                client = own.clients[service] = make_client(service, **arguments)
                client.meta.events.register("after-call.dynamodb", _refuse_page)
            return own.clients[service]

    def dynamodb(self, operation: str, **params: Any) -> Any:  # noqa: ANN401 - botocore's own
        """Call DynamoDB within the budget; `operation` is a client's method."""
        return self.budget.call(getattr(self.client("dynamodb"), operation), **params)

    def s3(self, operation: str, **params: Any) -> Any:  # noqa: ANN401 - botocore's own
        """Call S3 within the budget; `operation` is a client's method."""
        return self.budget.call(getattr(self.client("s3"), operation), **params)

    def s3_body(self, **params: Any) -> bytes:  # noqa: ANN401 - botocore's own
        """Get an object whole within the budget: a body that breaks off is got again."""

        def get_object(**params: Any) -> bytes:  # noqa: ANN401 - botocore's own
            return bytes(self.client("s3").get_object(**params)["Body"].read())

        return cast("bytes", self.budget.call(get_object, **params))

    def submit(self, work: Callable[[], T]) -> "Future[T]":
        """Run work in one of the threads."""
        own = self._own()
        with own.lock:
            if own.executor is None:
                own.executor = ThreadPoolExecutor(self._workers, thread_name_prefix="checkpoints")
            return own.executor.submit(work)

    def close(self) -> None:
        """Wait for the calls under way and close the sockets; a later call opens them again."""
        own = self._own()
        with own.lock:
            executor, own.executor = own.executor, None
            clients, own.clients = own.clients, {}
        if executor is not None:
            executor.shutdown(wait=True)
        for client in clients.values():
            client.close()

    # What a writer knows of its own writes.

    def begin(self, thread_id: str, token: int) -> None:
        """Count a write of a lease that is under way."""
        own = self._own()
        with own.lock:
            own.under_way[thread_id, token] = own.under_way.get((thread_id, token), 0) + 1

    def end(self, thread_id: str, token: int) -> None:
        """Count it out."""
        own = self._own()
        with own.lock:
            left = own.under_way.get((thread_id, token), 0) - 1
            if left > 0:
                own.under_way[thread_id, token] = left
            else:
                own.under_way.pop((thread_id, token), None)
                own.idle.notify_all()

    def settled(self, thread_id: str, token: int, *, timeout_s: float) -> bool:
        """Wait until no write of a lease is under way in this process; False: some still are."""
        own = self._own()
        with own.lock:
            return own.idle.wait_for(
                lambda: (thread_id, token) not in own.under_way, timeout=timeout_s
            )

    @contextmanager
    def writing(self, thread_id: str, token: int) -> Iterator[None]:
        """Count a write for as long as it takes; one without an answer may still arrive later."""
        self.begin(thread_id, token)
        try:
            yield
        except StoreUnavailable:
            own = self._own()
            with own.lock:
                own.in_doubt.add((thread_id, token))
            raise
        finally:
            self.end(thread_id, token)

    def is_in_doubt(self, thread_id: str, token: int) -> bool:
        """Whether a write of a lease had no answer in this process."""
        return (thread_id, token) in self._own().in_doubt

    def settle(self, thread_id: str, token: int) -> None:
        """Forget that a write had no answer: its lease is over."""
        own = self._own()
        with own.lock:
            own.in_doubt.discard((thread_id, token))

    def remember(self, thread_id: str, checkpoint_ns: str, checkpoint_id: str) -> None:
        """Note that this checkpoint is stored."""
        own = self._own()
        with own.lock:
            own.stored[thread_id, checkpoint_ns, checkpoint_id] = None
            own.stored.move_to_end((thread_id, checkpoint_ns, checkpoint_id))
            if len(own.stored) > _REMEMBERED:
                own.stored.popitem(last=False)

    def first_time(self, *key: str) -> bool:
        """Whether this process is asked about a key for the first time in a while."""
        own = self._own()
        with own.lock:
            known = key in own.seen
            own.seen[key] = None
            own.seen.move_to_end(key)
            if len(own.seen) > _REMEMBERED:
                own.seen.popitem(last=False)
        return not known

    def forget(self, thread_id: str) -> None:
        """Know nothing of a thread any more."""
        own = self._own()
        with own.lock:
            for known in (own.stored, own.seen):
                for key in [key for key in known if key[0] == thread_id]:
                    del known[key]

    def remembers(self, thread_id: str, checkpoint_ns: str, checkpoint_id: str) -> bool:
        """Whether the checkpoint is known to be stored; False says nothing."""
        return (thread_id, checkpoint_ns, checkpoint_id) in self._own().stored


def make_client(service: str, **arguments: Any) -> Any:  # noqa: ANN401 - boto3 makes its classes at run time
    """Return a client of its own session.

    Raises:
        Misconfigured: The usual AWS variables, or what is given, are not enough for one.
    """
    session: Any = boto3.session.Session()  # its overloads know services by literals
    try:
        return session.client(service, **arguments)
    except NoRegionError as error:
        raise Misconfigured("AWS has no region: set AWS_DEFAULT_REGION") from error
    except (BotoCoreError, ValueError) as error:  # the text may hold an endpoint's password
        name = type(error).__name__
        raise Misconfigured(f"AWS's settings for {service} are wrong: {name}") from error


def client_arguments(given: Mapping[str, Any], workers: int) -> dict[str, Any]:
    """Return the arguments of `boto3.client`: short time-outs, one try a call, sockets enough.

    botocore's own check of parameters is off: it takes a fifth of a call's time, and what is sent
    is made here. What the caller's own `config` says goes before it.
    """
    ours = Config(
        max_pool_connections=workers,
        connect_timeout=2,
        read_timeout=5,
        parameter_validation=False,
        retries={"mode": "standard", "total_max_attempts": 1},
    )
    theirs = given.get("config")
    return {**given, "config": ours if theirs is None else ours.merge(theirs)}
