import pytest

from ibid.adapters.models.openai_dialect import Dialect
from ibid.ports.models import ChatMessage, ModelRequest

SCHEMA = {
    "type": "object",
    "properties": {"ok": {"type": "boolean"}},
    "required": ["ok"],
    "additionalProperties": False,
}
ASK = ModelRequest(
    task="answer",
    messages=[ChatMessage(role="user", content="q")],
    question="q",
    temperature=0.1,
    max_output_tokens=9,
)
DECIDE = ModelRequest(
    task="grade", messages=ASK.messages, question="q", schema=SCHEMA, max_output_tokens=9
)


def test_the_first_request_asks_for_everything() -> None:
    assert Dialect().arguments(ASK, stream=True) == {
        "messages": [{"role": "user", "content": "q"}],
        "max_tokens": 9,
        "stream": True,
        "temperature": 0.1,
        "stream_options": {"include_usage": True},
    }


def test_a_decision_is_asked_for_by_schema() -> None:
    assert Dialect().arguments(DECIDE, stream=False)["response_format"] == {
        "type": "json_schema",
        "json_schema": {"name": "decision", "schema": SCHEMA, "strict": True},
    }


def test_simpler_forms_put_the_schema_into_the_prompt() -> None:
    dialect = Dialect()

    assert dialect.next_form()
    as_object = dialect.arguments(DECIDE, stream=False)
    assert dialect.next_form()
    as_text = dialect.arguments(DECIDE, stream=False)

    assert as_object["response_format"] == {"type": "json_object"}
    assert "response_format" not in as_text
    assert '"ok"' in as_text["messages"][0]["content"]
    assert as_object["messages"] == as_text["messages"]
    assert not dialect.next_form()


@pytest.mark.parametrize(
    ("rejection", "gone", "there"),
    [
        ("stream_options", "stream_options", "max_tokens"),
        ("Unsupported parameter: 'max_tokens'", "max_tokens", "max_completion_tokens"),
        ("temperature does not support 0.1", "temperature", "max_tokens"),
    ],
)
def test_what_is_rejected_is_not_sent_again(rejection: str, gone: str, there: str) -> None:
    dialect = Dialect()

    assert dialect.learn(rejection, dialect.arguments(ASK, stream=True))
    body = dialect.arguments(ASK, stream=True)

    assert gone not in body
    assert there in body
    assert not dialect.learn(rejection.replace("max_tokens'", "x'"), body)


def test_a_rejected_form_is_followed_by_the_next_until_none_is_left() -> None:
    dialect = Dialect()
    forms: list[str] = []

    while dialect.learn("response_format", dialect.arguments(DECIDE, stream=False)):
        forms.append(dialect.form)

    assert forms == ["json_object", "text"]


def test_another_rejection_teaches_nothing() -> None:
    dialect = Dialect()

    assert not dialect.learn("the prompt is too long", dialect.arguments(DECIDE, stream=True))
