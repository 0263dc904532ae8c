"""A ticket comes back as it was written, and nothing else is one."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ibid.domain.answers import REPLY_LANGUAGES, Style
from ibid.domain.principals import Principal
from ibid.domain.tickets import RunTicket

A_TICKET = RunTicket(tenant="acme", subject="ann", run_id="c1-1")

texts = st.text(min_size=1)
styles = st.builds(
    Style,
    detail=st.sampled_from([None, "brief", "thorough"]),
    familiarity=st.sampled_from([None, "new", "expert"]),
    format=st.sampled_from([None, "prose", "bullets"]),
)


@given(
    st.builds(
        RunTicket,
        tenant=texts,
        subject=texts,
        run_id=texts,
        style=styles,
        path_prefix=st.none() | texts,
        reply_language=st.sampled_from([None, *REPLY_LANGUAGES]),
        is_behind=st.booleans(),
    )
)
def test_whatever_it_holds_comes_back_by_way_of_ascii(ticket: RunTicket) -> None:
    written = ticket.to_json()

    assert written.isascii()
    assert RunTicket.from_json(written) == ticket


def test_it_names_who_asked() -> None:
    assert A_TICKET.principal == Principal(tenant="acme", subject="ann")


def _changed(**changes: Any) -> str:  # noqa: ANN401 - whatever JSON holds
    fields = {**json.loads(A_TICKET.to_json()), **changes}
    return json.dumps({name: value for name, value in fields.items() if value != "left out"})


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a secret",
        "[" * 100_000,
        "null",
        '"a secret"',
        "{}",
        _changed(version=2),
        _changed(version="left out"),
        _changed(tenant=""),
        _changed(tenant=7),
        _changed(subject=None),
        _changed(run_id=["c1-1"]),
        _changed(run_id="left out"),
        _changed(style=None),
        _changed(style="left out"),
        _changed(style={"detail": "secret"}),
        _changed(style={"detail": ["brief"]}),
        _changed(style={"colour": "red"}),
        _changed(path_prefix=7),
        _changed(reply_language="tlh"),
        _changed(reply_language=["en"]),
        _changed(is_behind=1),
        _changed(question="a secret"),
    ],
)
def test_nothing_else_is_read_and_none_of_it_told(text: str) -> None:
    with pytest.raises(ValueError, match="ticket") as refused:
        RunTicket.from_json(text)

    assert "secret" not in str(refused.value)
    assert refused.value.__cause__ is None
