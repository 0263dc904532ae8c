"""A real process that speaks DynamoDB's and S3's wire forms, in a virtual environment of its own.

ministack pins another botocore than ours and runs on its own interpreter; the environment lies in
the user's cache and is made once. `python -m tests.fakes.ministack` makes it ahead of the tests.
"""

import fcntl
import functools
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import uuid4

import boto3
from langgraph_checkpoint_dynamodb.saver import (  # type: ignore[import-untyped]  # it ships no types
    DynamoDBSaver,
)

from ibid.adapters.dynamodb.saver import DynamoSaver
from ibid.adapters.dynamodb.tables import create_bucket, create_tables

PINNED = ("ministack==1.5.33", "cryptography")
KEYS = {"aws_access_key_id": "test", "aws_secret_access_key": "test"}

_DEADLINE_S = 120
_PORTS = 5


def environment() -> Path:
    """Return the virtual environment, made if it is not there yet."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    folder = cache / "ibid-ministack" / "-".join(PINNED).replace("=", "")
    folder.parent.mkdir(parents=True, exist_ok=True)
    with (folder.parent / f"{folder.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # of several test processes one makes it
        if not (folder / ".ready").exists():
            shutil.rmtree(folder, ignore_errors=True)
            subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
            pip = [str(folder / "bin" / "python"), "-m", "pip", "install", "-q"]
            subprocess.run([*pip, "--disable-pip-version-check", *PINNED], check=True)
            (folder / ".ready").touch()
    return folder


@contextmanager
def ministack() -> Iterator[str]:
    """Run one on a free port of the loopback interface, and yield its URL."""
    folder = environment()
    with tempfile.TemporaryDirectory(prefix="ministack-", ignore_cleanup_errors=True) as state:
        process, url = _started(folder, state)
        try:
            yield url
        finally:
            _end(process)


def _started(folder: Path, state: str) -> tuple["subprocess.Popen[bytes]", str]:
    for _ in range(_PORTS):  # it takes no 0, and a port that is free now may be taken when it binds
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        process = subprocess.Popen(
            [str(folder / "bin" / "ministack")],
            cwd=state,
            env={
                **{name: os.environ[name] for name in ("HOME", "LANG") if name in os.environ},
                "PATH": f"{folder / 'bin'}:{os.environ['PATH']}",
                "BIND_HOST": "127.0.0.1",
                "GATEWAY_PORT": str(port),
                "IOT_MTLS_ENABLED": "0",
                "SFTP_ENABLED": "0",
                "LOG_LEVEL": "ERROR",
                "TMPDIR": state,
            },
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            if _is_healthy(process, port):
                return process, f"http://127.0.0.1:{port}"
        except BaseException:
            _end(process)
            raise
    raise RuntimeError(f"ministack ended {_PORTS} times before it served")


def _is_healthy(process: "subprocess.Popen[bytes]", port: int) -> bool:
    """Wait until it serves; say no if it ends before."""
    end = time.monotonic() + _DEADLINE_S
    while time.monotonic() < end:
        if process.poll() is not None:
            return False
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/_ministack/health", timeout=10):
                return True
        except OSError:
            time.sleep(0.05)
    raise RuntimeError("ministack did not start")


def _end(process: "subprocess.Popen[bytes]") -> None:
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(timeout=10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def client_config(url: str) -> dict[str, Any]:
    """Return the arguments of `boto3.client` for one that runs."""
    return {"endpoint_url": url, "region_name": "eu-central-1", **KEYS}


@dataclass(frozen=True, kw_only=True)
class Stack:
    """Two tables and a bucket that nobody else uses.

    `place` is what `tests.contract.saver_makers` take.
    """

    place: dict[str, Any]
    savers: list[DynamoSaver] = field(default_factory=list)

    @classmethod
    @contextmanager
    def made(cls, url: str) -> "Iterator[Stack]":
        """Make them; at the end close the savers that were made on them."""
        name = uuid4().hex[:12]
        place: dict[str, Any] = {
            "client": client_config(url),
            "checkpoints": f"checkpoints-{name}",
            "writes": f"writes-{name}",
            "bucket": f"bucket-{name}",
        }
        stack = cls(place=place)
        dynamodb, s3 = stack.boto("dynamodb"), stack.boto("s3")
        create_tables(dynamodb, checkpoints=place["checkpoints"], writes=place["writes"])
        create_bucket(s3, place["bucket"])
        for client in (dynamodb, s3):
            client.close()
        try:
            yield stack
        finally:
            for saver in stack.savers:
                saver.close()

    def saver(self, **options: Any) -> DynamoSaver:  # noqa: ANN401 - the saver's own
        """Return a saver on them, closed at the end."""
        arguments = {
            "checkpoints_table_name": self.place["checkpoints"],
            "writes_table_name": self.place["writes"],
            "bucket": self.place["bucket"],
            "client_config": self.place["client"],
            **options,
        }
        made = DynamoSaver(**arguments)
        self.savers.append(made)
        return made

    def unmodified(self) -> Any:  # noqa: ANN401 - it ships no types
        """Return the package's own saver on them."""
        return DynamoDBSaver(
            checkpoints_table_name=self.place["checkpoints"],
            writes_table_name=self.place["writes"],
            client_config=self.place["client"],
        )

    def boto(self, service: str) -> Any:  # noqa: ANN401 - boto3 makes its classes at run time
        """Return a client of its own."""
        return _session().client(service, **self.place["client"])

    def items(self, table: str) -> list[dict[str, Any]]:
        """Return all items of `checkpoints` or `writes`."""
        client = self.boto("dynamodb")
        pages = client.get_paginator("scan").paginate(
            TableName=self.place[table], ConsistentRead=True
        )
        found = [item for page in pages for item in page["Items"]]
        client.close()
        return found

    def objects(self) -> list[str]:
        """Return the keys of all objects."""
        client = self.boto("s3")
        pages = client.get_paginator("list_objects_v2").paginate(Bucket=self.place["bucket"])
        found = [one["Key"] for page in pages for one in page.get("Contents", [])]
        client.close()
        return found


@functools.cache
def _session() -> Any:  # noqa: ANN401 - its overloads know services by literals
    return boto3.session.Session()  # it reads botocore's models once, which takes 0.1 s or more


if __name__ == "__main__":
    environment()
