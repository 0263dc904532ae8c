"""The real composition root, over HTTP, stopped and killed and started again on one folder."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from queue import Queue
from typing import Any

import httpx
import pytest
from httpx_sse import ServerSentEvent, connect_sse

from tests.fakes.model_server import Reply, model_server

pytestmark = pytest.mark.timeout(600)  # some start six processes

IBID = str(Path(sys.executable).with_name("ibid"))
WAIT_S = 120.0
BASE = re.compile(r"serves on (http://[0-9.:]+)")
SOURCE = '''"""Sessions in a signed cookie."""


def sign_session(cookie: str, key: str) -> str:
    """Sign the session cookie, so that a client can't change it."""
    return f"{cookie}.{key}"
'''
QUESTION = "Where is the session cookie signed?"


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    folder = tmp_path / "corpus"
    folder.mkdir()
    (folder / "sessions.py").write_text(SOURCE)
    (folder / "README.md").write_text("# Sessions\n\nA library for signed sessions.\n")
    return folder


@pytest.fixture
def model_server_url() -> Iterator[str]:
    """A model that says two pieces, then nothing more until its client goes."""
    with model_server() as server:
        server.replies.append(Reply(fault="stall", after=2))
        yield server.openai_url


class Server:
    """One `ibid serve` process and a client for it."""

    def __init__(self, process: subprocess.Popen[str], base: str) -> None:
        self.process = process
        self.base = base
        self.http = httpx.Client(base_url=base, timeout=WAIT_S)

    def project(self) -> dict[str, Any]:
        """Wait until the one project can be asked and is not being indexed."""
        deadline = time.monotonic() + WAIT_S
        while time.monotonic() < deadline:
            projects = self.http.get("/projects").json()["items"]
            if (
                projects
                and projects[0]["status"] == "ready"
                and not projects[0]["reindexInProgress"]
            ):
                return dict(projects[0])
            time.sleep(0.05)
        raise TimeoutError

    def conversation(self) -> str:
        switches = {"classifyIntent": False, "gradeEvidence": False}
        patched = self.http.patch(f"/projects/{self.project()['id']}", json={"settings": switches})
        assert patched.status_code == 200, patched.text
        made = self.http.post("/conversations", json={"projectId": self.project()["id"]})
        return str(made.json()["id"])

    def ask(self, conversation: str) -> list[ServerSentEvent]:
        with connect_sse(
            self.http,
            "POST",
            f"/conversations/{conversation}/messages",
            json={"question": QUESTION},
            headers={"Accept": "text/event-stream"},
        ) as source:
            assert source.response.status_code == 200, source.response.read()
            return list(source.iter_sse())

    def messages(self, conversation: str) -> list[dict[str, Any]]:
        return list(self.http.get(f"/conversations/{conversation}/messages").json()["items"])


@contextmanager
def serving(data: Path, corpus: Path | None = None, **env: str) -> Iterator[Server]:
    command = [IBID, "serve", "--data", str(data), "--port", "0"]
    if corpus is not None:
        command += ["--index", str(corpus), "--name", "sessions"]
    environ = {name: value for name, value in os.environ.items() if not name.startswith("IBID_")}
    environ |= {"IBID_EMBEDDER": "none", "TERM": "dumb"} | env
    process = subprocess.Popen(command, env=environ, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    bases: Queue[str] = Queue()
    drained = threading.Thread(target=_drain, args=(process.stderr, bases), daemon=True)
    drained.start()
    try:
        server = Server(process, bases.get(timeout=WAIT_S))
        with server.http:
            yield server
    finally:
        process.kill()
        process.wait()
        drained.join()
        process.stderr.close()


def _drain(lines: Iterator[str], bases: Queue[str]) -> None:
    for line in lines:
        if found := BASE.search(line):
            bases.put(found[1])


def read_to_a_token(events: Iterator[ServerSentEvent]) -> list[ServerSentEvent]:
    seen = []
    for event in events:
        seen.append(event)
        if event.event == "token":
            break
    return seen


def shown(events: list[ServerSentEvent]) -> str:
    return "".join(event.json()["text"] for event in events if event.event == "token")


def test_an_answer_streams_and_a_reload_shows_the_same(tmp_path: Path, corpus: Path) -> None:
    with serving(tmp_path / "data", corpus) as server:
        conversation = server.conversation()

        events = server.ask(conversation)

        assert [int(event.id) for event in events] == list(range(1, len(events) + 1))
        assert events[-1].event == "done"
        done = events[-1].json()
        question, answer = server.messages(conversation)
        assert (question["role"], question["content"]) == ("user", QUESTION)
        assert answer["content"] == shown(events)
        assert answer["messageId"] == done["messageId"]
        assert answer["citations"] == done["citations"]
        cited = [citation for citation in done["citations"] if citation["cited"]]
        assert cited
        for citation in cited:
            lines = (corpus / citation["filePath"]).read_text().split("\n")
            assert 1 <= citation["startLine"] <= citation["endLine"] <= len(lines)
        assert "sign_session" in shown(events)


def test_after_sigterm_the_same_folder_goes_on(tmp_path: Path, corpus: Path) -> None:
    data = tmp_path / "data"
    with serving(data, corpus) as server:
        conversation = server.conversation()
        before = server.ask(conversation)

        server.process.send_signal(signal.SIGTERM)

        assert server.process.wait(timeout=WAIT_S) == 0
    with serving(data) as server:
        assert [m["content"] for m in server.messages(conversation)] == [QUESTION, shown(before)]
        assert server.ask(conversation)[-1].event == "done"


def test_after_sigkill_nothing_acknowledged_is_lost_and_the_thread_is_free_again(
    tmp_path: Path, corpus: Path
) -> None:
    data = tmp_path / "data"
    with serving(data, corpus) as server:
        conversation = server.conversation()
        before = server.ask(conversation)

        server.process.kill()
        server.process.wait()
    with serving(data) as server:
        assert [m["content"] for m in server.messages(conversation)] == [QUESTION, shown(before)]
        assert server.ask(conversation)[-1].event == "done"


def test_a_run_whose_process_was_killed_ends_once_and_frees_its_thread(
    tmp_path: Path, corpus: Path, model_server_url: str
) -> None:
    data = tmp_path / "data"
    slow = {
        "IBID_MODEL": "openai:slow",
        "OPENAI_BASE_URL": model_server_url,
        "OPENAI_API_KEY": "unused",
    }
    with serving(data, corpus, IBID_LEASE_TERM_S="3", **slow) as server:
        conversation = server.conversation()
        with connect_sse(
            server.http,
            "POST",
            f"/conversations/{conversation}/messages",
            json={"question": QUESTION},
            headers={"Accept": "text/event-stream"},
        ) as source:
            events = source.iter_sse()  # held on to: dropping it would close the stream
            read_to_a_token(events)
            busy = server.http.post(
                f"/conversations/{conversation}/messages", json={"question": QUESTION}
            )
            server.process.kill()
            server.process.wait()
    assert (busy.status_code, busy.json()["detail"]["code"]) == (409, "THREAD_BUSY")
    with serving(data, IBID_LEASE_TERM_S="3") as server:
        deadline = time.monotonic() + WAIT_S
        while len(server.messages(conversation)) < 2 and time.monotonic() < deadline:
            time.sleep(0.05)

        question, answer = server.messages(conversation)

        assert question["content"] == QUESTION
        assert (answer["finishReason"], answer["role"]) == ("error", "assistant")
        assert server.ask(conversation)[-1].event == "done"


@pytest.mark.parametrize("stop", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_a_running_answer_with_its_terminator(
    tmp_path: Path, corpus: Path, model_server_url: str, stop: signal.Signals
) -> None:
    data = tmp_path / "data"
    slow = {
        "IBID_MODEL": "openai:slow",
        "OPENAI_BASE_URL": model_server_url,
        "OPENAI_API_KEY": "unused",
    }
    with serving(data, corpus, **slow) as server:
        conversation = server.conversation()
        with connect_sse(
            server.http,
            "POST",
            f"/conversations/{conversation}/messages",
            json={"question": QUESTION},
            headers={"Accept": "text/event-stream"},
        ) as source:
            events = source.iter_sse()
            seen = read_to_a_token(events)
            server.process.send_signal(stop)
            seen += list(events)
        assert server.process.wait(timeout=WAIT_S) == 0
    assert [event.event for event in seen].count("error") == 1
    assert seen[-1].event == "error"
    assert seen[-1].json()["code"] == "SHUTTING_DOWN"
    with serving(data) as server:
        answer = server.messages(conversation)[-1]
        assert answer["content"] == shown(seen)
        assert answer["messageId"] == seen[-1].json()["messageId"]


@pytest.mark.parametrize("stop", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_ask_keeps_what_it_has_shown_when_it_is_stopped(
    tmp_path: Path, corpus: Path, model_server_url: str, stop: signal.Signals
) -> None:
    data = tmp_path / "data"
    slow = {
        "IBID_EMBEDDER": "none",
        "IBID_MODEL": "openai:slow",
        "OPENAI_BASE_URL": model_server_url,
        "OPENAI_API_KEY": "unused",
    }
    with serving(data, corpus) as server:
        server.conversation()  # the project is there, its helpers are off
    asking = subprocess.Popen(
        [IBID, "ask", QUESTION, "--data", str(data)],
        env=os.environ | slow,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        bufsize=0,  # what is read ahead here would be missing below
    )
    assert asking.stdout is not None
    first = asking.stdout.read(1)

    asking.send_signal(stop)
    rest, told = asking.communicate(timeout=WAIT_S)

    assert asking.returncode == 128 + stop
    assert b"Traceback" not in told
    with serving(data) as server:
        asked = server.http.get("/conversations").json()["items"][0]["id"]
        answer = server.messages(asked)[-1]
    assert (answer["role"], answer["finishReason"]) == ("assistant", "disconnected")
    assert (first + rest).decode().strip() == answer["content"].strip()


def test_output_that_nobody_takes_is_no_traceback(tmp_path: Path, corpus: Path) -> None:
    data = str(tmp_path / "data")
    env = os.environ | {"IBID_EMBEDDER": "none"}
    subprocess.run([IBID, "index", str(corpus), "--data", data], env=env, check=True)

    def piped(words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["bash", "-c", words, "bash", IBID, data],  # noqa: S607 - whichever bash is there
            env=env,
            capture_output=True,
            text=True,
            timeout=WAIT_S,
            check=False,
        )

    left = piped(f'"$1" ask "{QUESTION}" --data "$2" | true')
    full = piped(f'"$1" ask "{QUESTION}" --json --data "$2" > /dev/full')
    closed = piped('"$1" projects --data "$2" >&-')

    assert "Traceback" not in left.stderr + full.stderr + closed.stderr
    assert "destroyed" not in left.stderr + full.stderr
    assert (full.returncode, "can't write" in full.stderr) == (1, True)


def test_a_data_folder_that_is_a_file_is_told_in_one_line(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    for path in (file, file / "below"):
        done = subprocess.run(
            [IBID, "projects", "--data", str(path)],
            capture_output=True,
            text=True,
            timeout=WAIT_S,
            check=False,
        )

        assert (done.returncode, str(path) in done.stderr) == (2, True)
        assert "Traceback" not in done.stderr


def test_ask_in_the_terminal_exits_with_zero_only_on_stop(tmp_path: Path, corpus: Path) -> None:
    data = str(tmp_path / "data")
    env = os.environ | {"IBID_EMBEDDER": "none"}

    def ibid(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [IBID, *words, "--data", data],
            env=env,
            capture_output=True,
            text=True,
            timeout=WAIT_S,
            check=False,
        )

    early = ibid("ask", QUESTION)
    indexed = ibid("index", str(corpus), "--json")
    answered = ibid("ask", QUESTION)
    as_json = ibid("ask", QUESTION, "--json")
    listed = ibid("projects", "--json")
    again = ibid("index", str(corpus), "--json")

    assert (early.returncode, "no project" in early.stderr) == (1, True)
    assert json.loads(indexed.stdout)["statistics"]["new"] == 2
    assert (answered.returncode, "sessions.py:" in answered.stdout) == (0, True)
    outcome = json.loads(as_json.stdout)
    assert (outcome["finishReason"], as_json.returncode) == ("stop", 0)
    assert [project["name"] for project in json.loads(listed.stdout)] == ["corpus"]
    assert json.loads(again.stdout)["statistics"]["unchanged"] == 2


@pytest.mark.parametrize(
    ("env", "port", "names"),
    [
        ({"IBID_MODLE": "x"}, ["--port", "0"], "IBID_MODLE"),
        ({"IBID_PORT": "x"}, [], "IBID_PORT"),
        ({"IBID_EMBEDDER": "onnx:/nowhere"}, ["--port", "0"], "/nowhere"),
    ],
)
def test_a_bad_setting_stops_the_start_with_its_name(
    tmp_path: Path, env: dict[str, str], port: list[str], names: str
) -> None:
    done = subprocess.run(
        [IBID, "serve", "--data", str(tmp_path), *port],
        env=os.environ | env,
        capture_output=True,
        text=True,
        timeout=WAIT_S,
        check=False,
    )

    assert (done.returncode, names in done.stderr) == (2, True)
    assert "Traceback" not in done.stderr


def test_a_taken_port_is_told_in_one_line(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]

        done = subprocess.run(
            [IBID, "serve", "--data", str(tmp_path), "--port", str(port)],
            env=os.environ | {"IBID_EMBEDDER": "none"},
            capture_output=True,
            text=True,
            timeout=WAIT_S,
            check=False,
        )

    assert done.returncode == 2
    assert str(port) in done.stderr
    assert "Traceback" not in done.stderr
