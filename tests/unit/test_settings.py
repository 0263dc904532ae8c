"""Settings are read once, checked by name, and never show a value."""

from pathlib import Path

import pytest

from ibid.domain.errors import Misconfigured
from ibid.settings import is_loopback, read_settings


@pytest.fixture(autouse=True)
def bare_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("IBID_PORT", "IBID_MODEL", "IBID_DEV_PRINCIPALS", "IBID_FOLDERS", "IBID_DATA"):
        monkeypatch.delenv(name, raising=False)


def test_the_defaults_need_nothing() -> None:
    settings = read_settings({})

    assert (settings.model, settings.embedder, settings.store) == ("extractive", "minilm", "sqlite")
    assert settings.folders == ()


def test_what_the_command_line_gives_goes_before_the_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("IBID_PORT", "9001")
    monkeypatch.setenv("IBID_DATA", "/srv/there")

    settings = read_settings({}, port=9002, data=None)

    assert (settings.port, settings.data) == (9002, Path("/srv/there"))


def test_folders_are_a_search_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IBID_FOLDERS", "/srv/a:/srv/b:")

    settings = read_settings({})

    assert settings.folders == (Path("/srv/a"), Path("/srv/b"))


def test_a_misspelt_variable_stops_the_start_and_names_its_neighbour() -> None:
    with pytest.raises(Misconfigured, match=r"no setting IBID_MODLE; did you mean IBID_MODEL\?"):
        read_settings({"IBID_MODLE": "extractive"})


def test_a_foreign_variable_without_a_neighbour_is_named() -> None:
    with pytest.raises(Misconfigured, match=r"no setting IBID_QQQQQQQQQ$"):
        read_settings({"IBID_QQQQQQQQQ": "1"})


def test_the_data_of_benches_is_no_setting() -> None:
    assert read_settings({"IBID_SHARED": "/somewhere", "PATH": "/bin"}).port == 8000


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("IBID_PORT", "65536"),
        ("IBID_MODEL", "sk-secret-as-a-model"),
        ("IBID_EMBEDDER", "onnx:"),
        ("IBID_PING_S", "0"),
        ("IBID_MAX_RUNS", "0"),
        ("IBID_STORE", "dynamo-secret"),
        ("IBID_QUEUE_RUNS", "secret"),
        ("IBID_QUEUE_RUNS", "https://secret"),
    ],
)
def test_an_absurd_value_is_refused_by_name_and_never_shown(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    monkeypatch.setenv(name, value)

    with pytest.raises(Misconfigured) as raised:
        read_settings({name: value})

    assert name in str(raised.value)
    assert "secret" not in str(raised.value)


@pytest.mark.parametrize("host", ["0.0.0.0", "10.1.2.3", "::", "example.org"])  # noqa: S104 - refused here
def test_development_principals_are_refused_off_loopback(
    monkeypatch: pytest.MonkeyPatch, host: str
) -> None:
    monkeypatch.setenv("IBID_DEV_PRINCIPALS", "true")

    with pytest.raises(Misconfigured, match="IBID_DEV_PRINCIPALS"):
        read_settings({}, host=host)


def test_a_queue_s_events_are_refused_off_loopback() -> None:
    with pytest.raises(Misconfigured, match="IBID_QUEUE_EVENTS"):
        read_settings({}, host="10.1.2.3", queue_events=True)


def test_a_queue_is_named_by_its_url() -> None:
    url = "https://sqs.eu-central-1.amazonaws.com/000000000000/runs"

    settings = read_settings({}, queue_runs=url, queue_events=True)

    assert (settings.queue_runs, settings.queue_events) == (url, True)
    assert read_settings({}).queue_runs is None


@pytest.mark.parametrize("host", ["127.0.0.1", "127.9.9.9", "::1", "localhost"])
def test_loopback_is_known_in_all_its_forms(host: str) -> None:
    assert is_loopback(host)


def test_two_heartbeats_may_be_late_within_a_term() -> None:
    settings = read_settings({})

    assert settings.beat_s * 3 == pytest.approx(settings.lease_term_s)
