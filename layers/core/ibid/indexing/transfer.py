"""One download over https, which ends in time and in size, and can be cut off from outside."""

import contextlib
import socket
import ssl
import time
from collections.abc import Callable, Iterator
from typing import Any

import urllib3
from dulwich.client import Urllib3HttpGitClient
from urllib3.connection import HTTPSConnection
from urllib3.connectionpool import HTTPSConnectionPool

from ibid.domain.errors import SourceRejected
from ibid.domain.git_urls import https_url
from ibid.indexing.addresses import AddressCheck, connect, is_public

MAX_BYTES = 500_000_000
TIMEOUT_S = 120.0
CONNECT_S = 10.0
READ_S = 30.0
MAX_REDIRECTS = 3


class Transfer:
    """The limits of one clone, and the connections that it holds.

    Args:
        allowed: Which addresses may be connected to.
        max_bytes: Of everything received.
        timeout_s: For everything.
        tls: Which certificates are trusted; None means the system's.
        monotonic: The clock of `timeout_s`.
    """

    def __init__(
        self,
        *,
        allowed: AddressCheck = is_public,
        max_bytes: int = MAX_BYTES,
        timeout_s: float = TIMEOUT_S,
        tls: ssl.SSLContext | None = None,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self.timeout_s = timeout_s
        self._tls = tls
        self._allowed = allowed
        self._max_bytes = max_bytes
        self._monotonic = monotonic
        self._deadline = monotonic() + timeout_s
        self._received = 0
        self._aborted = False
        self._handles: list[socket.socket] = []

    def check(self, received: int = 0) -> None:
        """Count bytes, and see if the clone may go on.

        Raises:
            SourceRejected: It took too long, is too large, or was cut off.
        """
        self._received += received
        if self._received > self._max_bytes:
            raise SourceRejected(f"The repository is larger than {self._max_bytes:,} bytes")
        if self._aborted or self._monotonic() > self._deadline:
            raise SourceRejected(f"The repository took longer than {self.timeout_s:g} s")

    def open_socket(self, host: str, port: int) -> socket.socket:
        """Connect to a checked address, and keep a handle to cut the connection by."""
        self.check()
        connection = connect(host, port, allowed=self._allowed, timeout_s=CONNECT_S)
        self._handles.append(connection.dup())
        return connection

    def abort(self) -> None:
        """Cut every connection, from any thread: whoever reads one gets an error at once."""
        self._aborted = True
        for handle in self._handles:
            with contextlib.suppress(OSError):
                handle.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Give the handles back."""
        while self._handles:
            self._handles.pop().close()

    def pool_manager(self) -> "HttpsOnly":
        """Make the one way out: https only, redirects included, to checked addresses only."""
        open_socket = self.open_socket

        class Connection(HTTPSConnection):
            def _new_conn(self) -> socket.socket:
                return open_socket(self.host, self.port)

        class Pool(HTTPSConnectionPool):
            ConnectionCls = Connection

        return HttpsOnly(
            Pool,
            retries=urllib3.Retry(MAX_REDIRECTS, connect=0, read=0, status=0, other=0),
            timeout=urllib3.Timeout(connect=CONNECT_S, read=READ_S),
            ssl_context=self._tls,
        )


class HttpsOnly(urllib3.PoolManager):
    """Follows no redirect to plain http, nor to a URL with a name and password in it."""

    def __init__(self, pool: type[HTTPSConnectionPool], **keywords: Any) -> None:  # noqa: ANN401 - the parent's
        super().__init__(**keywords)
        self.pool_classes_by_scheme = {"https": pool}
        self.responses: list[urllib3.BaseHTTPResponse] = []

    def urlopen(  # type: ignore[override]  # the parent's keywords are passed on as they come
        self,
        method: str,
        url: str,
        redirect: bool = True,  # noqa: FBT001, FBT002 - the parent's
        **keywords: Any,  # noqa: ANN401 - the parent's
    ) -> urllib3.BaseHTTPResponse:
        """Send a request, or follow a redirect, to a URL that may be cloned from."""
        https_url(url)
        response = super().urlopen(method, url, redirect, **keywords)
        self.responses.append(response)
        return response

    def close(self) -> None:
        """Close every connection, that of an answer which nobody read included."""
        while self.responses:
            self.responses.pop().close()
        self.clear()


class LimitedGitClient(Urllib3HttpGitClient):
    """Dulwich's client over a transfer's connections, with every byte counted."""

    def __init__(self, url: str, transfer: Transfer, *, secret: str | None) -> None:
        name, _, password = (secret or "").rpartition(":")
        self.way_out = transfer.pool_manager()
        super().__init__(
            url,
            pool_manager=self.way_out,
            username=(name or "x-access-token") if secret else None,
            password=password if secret else None,
            quiet=True,
        )
        self._transfer = transfer

    def _http_request(
        self,
        url: str,
        headers: dict[str, str] | None = None,
        data: bytes | Iterator[bytes] | None = None,
        raise_for_status: bool = True,  # noqa: FBT001, FBT002 - the parent's
    ) -> tuple[Any, Callable[[int], bytes]]:
        response, read = super()._http_request(url, headers, data, raise_for_status)

        def counted(size: int) -> bytes:
            piece = read(size)
            self._transfer.check(len(piece))
            return piece

        return response, counted
