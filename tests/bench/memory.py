"""Resident memory of `ibid serve` after it has indexed 10,000 chunks."""

import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import httpx
import psutil

from tests.bench.streams import free_port

CHUNKS = 10_000
LIMIT_S = 3_600.0
BLOCK = '''def {name}(request, limit={limit}):
    """Handle {word} number {number} of the {other} queue, and return what is left of it."""
    waiting = [item for item in request.{word} if item.age > limit]
    for item in waiting:
        item.{other} = transform(item.payload, key="{name}", retries={limit})
        if item.{other} is None:
            raise LookupError("nothing is known of {word} {number}")
    return sorted(waiting, key=lambda item: item.{other}.created_at)[:limit]


'''
WORDS = [
    "session",
    "cookie",
    "route",
    "header",
    "token",
    "cursor",
    "lease",
    "journal",
    "passage",
    "vector",
    "worker",
    "signal",
]


def write_corpus(folder: Path, chunks: int) -> None:
    """Write source files of 50 functions each: a chunk a function."""
    number = 0
    for file in range(chunks // 50):
        lines = []
        for _ in range(50):
            word, other = WORDS[number % 12], WORDS[(number * 7 + 5) % 12]
            name = f"{word}_{other}_{number}"
            lines.append(
                BLOCK.format(name=name, word=word, other=other, number=number, limit=number % 97)
            )
            number += 1
        (folder / f"part_{file:04d}.py").write_text("".join(lines))


def measure(chunks: int = CHUNKS) -> dict[str, float]:
    """Serve, index the corpus with vectors, ask once, and read the process's memory."""
    with tempfile.TemporaryDirectory() as work:
        corpus = Path(work, "corpus")
        corpus.mkdir()
        write_corpus(corpus, chunks)
        port = free_port()
        base = f"http://127.0.0.1:{port}"
        command = [str(Path(sys.executable).with_name("ibid")), "serve", "--port", str(port)]
        command += ["--data", str(Path(work, "data")), "--index", str(corpus)]
        process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
        try:
            watched = psutil.Process(process.pid)
            project = _wait_indexed(base, watched)
            conversation = _call(f"{base}/conversations", {"projectId": project["id"]})
            question = {"question": "Where is the session cookie handled?"}
            _call(f"{base}/conversations/{conversation['id']}/messages", question)
            memory = watched.memory_info()
            return {
                "chunks": project["chunkCount"],
                "rss_mb": memory.rss / 1e6,
                "peak_mb": _peak_mb(process.pid),
            }
        finally:
            process.terminate()
            process.wait(timeout=30)


def _peak_mb(pid: int) -> float:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) / 1_000
    raise LookupError("no VmHWM")


def _wait_indexed(base: str, watched: psutil.Process) -> dict[str, Any]:
    deadline = time.monotonic() + LIMIT_S
    while time.monotonic() < deadline and watched.is_running():
        time.sleep(1)
        try:
            projects = _call(f"{base}/projects")["items"]
        except httpx.TransportError:
            continue
        if projects and projects[0]["embeddingSignature"] and not projects[0]["reindexInProgress"]:
            return dict(projects[0])
    raise TimeoutError("the corpus was not indexed in time")


def _call(url: str, body: dict[str, str] | None = None) -> dict[str, Any]:
    answer = httpx.request("GET" if body is None else "POST", url, json=body, timeout=60)
    answer.raise_for_status()
    return dict(answer.json())
