"""Keys, lives, retries and sizes: the saver's small parts, without a store."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from botocore.awsrequest import AWSResponse, HTTPHeaders
from botocore.exceptions import EndpointConnectionError
from hypothesis import given
from hypothesis import strategies as st

from ibid.adapters.dynamodb.connection import Connection, make_client
from ibid.adapters.dynamodb.expiry import GRACE, Expiry
from ibid.adapters.dynamodb.keys import thread_folder, writes_partition
from ibid.adapters.dynamodb.retries import RetryBudget
from ibid.adapters.dynamodb.rows import size_of
from ibid.domain.errors import Misconfigured, StoreUnavailable
from tests.fakes.aws_faults import refused


def test_a_partition_is_the_packages_until_it_would_be_too_long() -> None:
    assert writes_partition("a:::b", "1", "") == "a:::b:::1:::"
    long = writes_partition("x" * 2_040, "1", "child:1")
    assert long.startswith("sha256:::")
    assert long != writes_partition("x" * 2_040, "1", "child:2")


@given(st.text(min_size=1), st.text(min_size=1))
def test_folders_of_two_threads_never_lie_in_each_other(one: str, two: str) -> None:
    folders = [thread_folder("p/", name.encode("utf-8", "replace").decode()) for name in (one, two)]

    assert all(folder.count("/") == 2 and len(folder) < 420 for folder in folders)


def test_a_life_ends_for_readers_a_day_before_it_does_for_the_table() -> None:
    now = [0.0]
    expiry = Expiry(timedelta(days=30), lambda: now[0])
    item = expiry.attribute()
    day = timedelta(days=1).total_seconds()

    assert item == {"ttl": {"N": str(int(31 * day))}}
    assert timedelta(days=1) == GRACE
    for at, due, over in ((0, False, False), (15.1, True, False), (30, True, True)):
        now[0] = at * day
        assert (expiry.is_due(item), expiry.is_over(item)) == (due, over)
    assert Expiry().attribute() == {}
    assert not Expiry().is_over({})


def budget(waits: list[float]) -> RetryBudget:
    return RetryBudget(seconds=1, clock=lambda: sum(waits), sleep=waits.append, jitter=lambda: 1.0)


def failing(error: Exception, times: int) -> Any:  # noqa: ANN401 - an operation
    left = times

    def operation(**params: object) -> object:
        nonlocal left
        left -= 1
        if left >= 0:
            raise error
        return params

    return operation


@pytest.mark.parametrize(
    "error",
    [
        refused("PutItem", "ThrottlingException"),
        refused("PutItem", "Odd", status=503),
        EndpointConnectionError(endpoint_url="x"),
    ],
)
def test_a_call_is_made_again_with_longer_waits_until_the_budget_ends(error: Exception) -> None:
    waits: list[float] = []

    assert budget(waits).call(failing(error, 4), key=1) == {"key": 1}
    assert waits == [0.05, 0.1, 0.2, 0.4]
    with pytest.raises(StoreUnavailable):
        budget([]).call(failing(error, 100))


def test_a_missing_table_is_a_setting_and_is_not_tried_again() -> None:
    waits: list[float] = []

    with pytest.raises(Misconfigured):
        budget(waits).call(failing(refused("PutItem", "ResourceNotFoundException"), 1))
    assert waits == []


@pytest.mark.parametrize(
    ("params", "named"),
    [
        ({"TableName": "app", "IndexName": "due", "Key": {"pk": "secret"}}, "of 'app', 'due' was"),
        ({"RequestItems": {"app": [{"secret": 1}], "log": []}}, "of 'app', 'log' was"),
        ({"Bucket": "parts", "Key": "secret"}, "of 'parts' was"),
        ({"TransactItems": [{"secret": 1}]}, "operation was"),
    ],
)
def test_what_is_missing_is_named_and_nothing_of_what_was_sent(
    params: dict[str, Any], named: str
) -> None:
    with pytest.raises(Misconfigured, match=named) as error:
        budget([]).call(failing(refused("PutItem", "ResourceNotFoundException"), 1), **params)

    assert "secret" not in str(error.value)


@pytest.mark.parametrize("service", ["dynamodb", "s3"])
def test_settings_of_aws_that_make_no_client_are_named(
    service: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in ("AWS_DEFAULT_REGION", "AWS_REGION", "AWS_PROFILE", "AWS_ENDPOINT_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))

    if service == "dynamodb":
        with pytest.raises(Misconfigured, match="AWS_DEFAULT_REGION"):
            make_client(service)
    with pytest.raises(Misconfigured, match=f"settings for {service} are wrong") as error:
        make_client(service, region_name="us-east-1", endpoint_url="no url:sesame")
    assert "sesame" not in str(error.value)


def test_a_size_is_that_of_names_and_values() -> None:
    assert size_of({"ab": {"S": "é"}, "c": {"L": [{"B": b"123"}]}}) == 2 + 3 + 1 + 3 + 2 + (
        1 + 3 + 1 + 3 + 1 + 3 + 3 + 1
    )


def test_a_page_of_somebody_between_is_no_answer_of_dynamodb(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "test")
    waits: list[float] = []
    connection = Connection(
        {"dynamodb": {"region_name": "eu-west-1"}}, workers=1, budget=budget(waits)
    )
    page = AWSResponse("", 200, HTTPHeaders(), None)
    page.headers["content-type"] = "text/html; charset=utf-8"
    vars(page)["_content"] = b"<html>Sign in</html>"
    connection.client("dynamodb").meta.events.register("before-send", lambda **_: page)

    with pytest.raises(StoreUnavailable, match="get_item failed"):
        connection.dynamodb("get_item", TableName="t", Key={"pk": {"S": "a"}})

    assert waits
    connection.close()
