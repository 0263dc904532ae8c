"""The commands, in this process, on one data folder."""

import json
import logging
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from ibid.cli.main import app


@pytest.fixture(autouse=True)
def lexical(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("IBID_EMBEDDER", "none")
    handlers, level = logging.root.handlers[:], logging.root.level
    yield
    logging.root.handlers[:] = handlers  # the commands send logs to stderr
    logging.root.setLevel(level)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return tmp_path / "data"


def ibid(data: Path, *words: str) -> Result:
    return CliRunner().invoke(app, [*words, "--data", str(data)])


def corpus(folder: Path, function: str) -> Path:
    folder.mkdir(parents=True)
    (folder / "code.py").write_text(
        f'def {function}(route):\n    """Find the {function} of a route."""\n    return route\n'
    )
    return folder


def names(data: Path) -> list[str]:
    return [project["name"] for project in json.loads(ibid(data, "projects", "--json").stdout)]


def test_a_second_source_of_the_same_name_leaves_the_first_project_alone(
    tmp_path: Path, data: Path
) -> None:
    first, second = (corpus(tmp_path / side / "src", f"handler_{side}") for side in "ab")
    assert ibid(data, "index", str(first)).exit_code == 0

    refused = ibid(data, "index", str(second))
    named = ibid(data, "index", str(second), "--name", "other")
    again = ibid(data, "index", str(first), "--json")

    assert (refused.exit_code, "'src' has another source" in refused.stderr) == (1, True)
    assert named.exit_code == 0
    assert json.loads(again.stdout)["statistics"]["unchanged"] == 1
    assert sorted(names(data)) == ["other", "src"]


def test_a_name_that_is_given_replaces_the_source(tmp_path: Path, data: Path) -> None:
    first, second = (corpus(tmp_path / side / "src", f"handler_{side}") for side in "ab")
    ibid(data, "index", str(first))

    replaced = ibid(data, "index", str(second), "--name", "src", "--json")

    assert json.loads(replaced.stdout)["statistics"]["modified"] == 1
    assert names(data) == ["src"]


@pytest.mark.parametrize(
    ("source", "told"),
    [
        ("/nope", "There is no '/nope'"),
        ("http://example.org/a/flask", "https only"),
        ("https://user:sesame@example.org/a/b", "name or password"),
        ("https://user:sesame@[bad/x", "can't be read"),
        ("https://example.org/a/b?token=sesame", "no query"),
        ("https://example.org/a/b#sesame", "no fragment"),
        ("github.com/pallets/flask", "begins with https://"),
        ("git@github.com:pallets/flask", "begins with https://"),
        (__file__, "is neither a folder nor one of"),
    ],
)
def test_a_source_that_cant_be_read_leaves_nothing_behind(
    data: Path, source: str, told: str
) -> None:
    refused = ibid(data, "index", source)

    assert (refused.exit_code, told in refused.stderr) == (1, True)
    assert "sesame" not in refused.output
    assert names(data) == []


def test_serving_stops_before_it_starts_if_the_source_is_not_there(data: Path) -> None:
    refused = ibid(data, "serve", "--index", "/nope", "--port", "0")

    assert (refused.exit_code, "There is no '/nope'" in refused.stderr) == (1, True)
    assert not data.exists()


def test_asking_says_which_projects_there_are(tmp_path: Path, data: Path) -> None:
    for side in "ab":
        ibid(data, "index", str(corpus(tmp_path / side, f"handler_{side}")))

    unclear = ibid(data, "ask", "Where is handler_a?")
    unknown = ibid(data, "ask", "Where is handler_a?", "--project", "c")
    clear = ibid(data, "ask", "Where is handler_a?", "--project", "a")

    assert (unclear.exit_code, "--project: b, a" in unclear.stderr) == (1, True)
    assert (unknown.exit_code, "no project 'c'" in unknown.stderr) == (1, True)
    assert (clear.exit_code, "code.py:1-3" in clear.stdout) == (0, True)


def test_a_reply_language_is_one_that_has_texts(tmp_path: Path, data: Path) -> None:
    ibid(data, "index", str(corpus(tmp_path / "a", "handler")))

    refused = ibid(data, "ask", "hola", "--reply-language", "fr")
    answered = ibid(data, "ask", "¿Dónde está handler?", "--reply-language", "es-419")

    assert (refused.exit_code, "es-419" in refused.stderr) == (1, True)
    assert answered.exit_code == 0


@pytest.mark.parametrize("question", ["", "   ", "x" * 4_001, "what \udcff is"])
def test_a_question_has_one_to_four_thousand_characters(data: Path, question: str) -> None:
    refused = ibid(data, "ask", question)

    assert (refused.exit_code, "4000 characters" in refused.stderr) == (1, True)


@pytest.mark.parametrize("name", ["", "x" * 201, "a\udcff"])
def test_a_name_has_one_to_two_hundred_characters(tmp_path: Path, data: Path, name: str) -> None:
    refused = ibid(data, "index", str(corpus(tmp_path / "a", "handler")), "--name", name)

    assert (refused.exit_code, "200 characters" in refused.stderr) == (1, True)
    assert names(data) == []


def test_openai_without_key_or_server_is_refused_by_name(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("IBID_MODEL", "openai:any")
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)

    refused = ibid(data, "ask", "hello")

    assert (refused.exit_code, "OPENAI_API_KEY" in refused.stderr) == (2, True)


AWS = {"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "sesame", "AWS_CONFIG_FILE": "none"}
IN_DYNAMODB = {
    "IBID_STORE": "dynamodb",
    "IBID_APP_TABLE": "app",
    "IBID_CHECKPOINTS_TABLE": "checkpoints",
    "IBID_WRITES_TABLE": "writes",
}


@pytest.mark.parametrize(
    ("environ", "exit_code", "told"),
    [
        ({"IBID_STORE": "dynamodb"}, 2, "ibid: IBID_STORE=dynamodb needs IBID_APP_TABLE, "),
        (IN_DYNAMODB, 2, "ibid: AWS has no region: set AWS_DEFAULT_REGION"),
        (
            {**IN_DYNAMODB, "IBID_CREATE_TABLES": "true"},
            2,
            "ibid: AWS has no region: set AWS_DEFAULT_REGION",
        ),
        (
            {
                **IN_DYNAMODB,
                "IBID_CREATE_TABLES": "true",
                "AWS_DEFAULT_REGION": "us-east-1",
                "AWS_ENDPOINT_URL": "http://127.0.0.1:1",
                "AWS_MAX_ATTEMPTS": "1",
            },
            1,
            "ibid: IBID_CREATE_TABLES=true: AWS gave no answer: EndpointConnectionError (",
        ),
        (
            {**IN_DYNAMODB, "AWS_DEFAULT_REGION": "us-east-1", "AWS_ENDPOINT_URL": "sesame"},
            2,
            "ibid: AWS's settings for dynamodb are wrong: ValueError",
        ),
    ],
)
def test_what_is_wrong_with_a_store_in_the_cloud_is_one_line(
    data: Path, monkeypatch: pytest.MonkeyPatch, environ: dict[str, str], exit_code: int, told: str
) -> None:
    for name in ("AWS_DEFAULT_REGION", "AWS_REGION", "AWS_PROFILE", "AWS_ENDPOINT_URL"):
        monkeypatch.delenv(name, raising=False)
    for name, value in {**AWS, **environ}.items():
        monkeypatch.setenv(name, value)

    refused = ibid(data, "projects")

    assert refused.exit_code == exit_code
    assert refused.stderr.startswith(told)
    assert refused.stderr.count("\n") == 1
    assert "sesame" not in refused.stderr
