"""A real process that speaks DynamoDB's and S3's wire forms, in a virtual environment of its own.

ministack pins another botocore than ours and runs on its own interpreter; the environment lies in
the user's cache and is made once. `python -m tests.fakes.ministack` makes it ahead of the tests.
"""

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
from pathlib import Path
from typing import Any

PINNED = ("ministack==1.5.33", "cryptography")
KEYS = {"aws_access_key_id": "test", "aws_secret_access_key": "test"}

_DEADLINE_S = 60


def environment() -> Path:
    """Return the virtual environment, made if it is not there yet."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    folder = cache / "ibid-ministack" / "-".join(PINNED).replace("=", "")
    if (folder / ".ready").exists():
        return folder
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
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with tempfile.TemporaryDirectory(prefix="ministack-", ignore_cleanup_errors=True) as state:
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
            _wait(process, port)
            yield f"http://127.0.0.1:{port}"
        finally:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(timeout=10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def client_config(url: str) -> dict[str, Any]:
    """Return the arguments of `boto3.client` for one that runs."""
    return {"endpoint_url": url, "region_name": "eu-central-1", **KEYS}


def _wait(process: "subprocess.Popen[bytes]", port: int) -> None:
    end = time.monotonic() + _DEADLINE_S
    while time.monotonic() < end:
        if process.poll() is not None:
            raise RuntimeError(f"ministack ended with {process.returncode}")
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/_ministack/health", timeout=2):
                return
        except OSError:
            time.sleep(0.05)
    raise RuntimeError("ministack did not start")


if __name__ == "__main__":
    environment()
