"""What one OpenAI-compatible server takes, learnt from what it rejects.

The servers differ: new OpenAI models want `max_completion_tokens` and no temperature, small local
ones know neither `stream_options` nor `json_schema`. Each 400 that names such a parameter drops it
for good, so the next call is right at once.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal

from ibid.adapters.models.schema_check import is_strict
from ibid.ports.models import ChatMessage, ModelRequest

Form = Literal["json_schema", "json_object", "text"]
FORMS: Final[Sequence[Form]] = ("json_schema", "json_object", "text")

_ASK_FOR_JSON: Final = "Reply with one JSON object and nothing else, of this JSON Schema: {schema}"


class Dialect:
    """One server's and model's dialect.

    Attributes:
        form: How decisions are asked for.
        form_works: A decision came in that form, so a bad one is the model's fault.
    """

    def __init__(self) -> None:
        self.form: Form = "json_schema"
        self.form_works = False
        self._limit = "max_tokens"
        self._takes_temperature = True
        self._takes_stream_options = True

    def arguments(self, request: ModelRequest, *, stream: bool) -> dict[str, Any]:
        """Build the request's body, the model's name left out."""
        body: dict[str, Any] = {
            "messages": self._messages(request),
            self._limit: request.max_output_tokens,
            "stream": stream,
        }
        if self._takes_temperature:
            body["temperature"] = request.temperature
        if stream and self._takes_stream_options:
            body["stream_options"] = {"include_usage": True}
        if request.schema is not None and self.form == "json_schema":
            body["response_format"] = {
                "type": "json_schema",
                "json_schema": {
                    "name": "decision",
                    "schema": dict(request.schema),
                    "strict": is_strict(request.schema),
                },
            }
        elif request.schema is not None and self.form == "json_object":
            body["response_format"] = {"type": "json_object"}
        return body

    def learn(self, rejection: str, sent: Mapping[str, Any]) -> bool:
        """Drop what a rejection names of what was sent; False if it names nothing of it."""
        if "response_format" in sent and (
            "response_format" in rejection or "json_schema" in rejection
        ):
            return self.next_form()
        if "stream_options" in sent and "stream_options" in rejection:
            self._takes_stream_options = False
        elif "max_tokens" in sent and "max_tokens" in rejection:
            self._limit = "max_completion_tokens"
        elif "temperature" in sent and "temperature" in rejection:
            self._takes_temperature = False
        else:
            return False
        return True

    def next_form(self) -> bool:
        """Ask for decisions in the next simpler form; False if there is none."""
        at = FORMS.index(self.form) + 1
        if at == len(FORMS):
            return False
        self.form = FORMS[at]
        return True

    def _messages(self, request: ModelRequest) -> list[dict[str, str]]:
        messages: Sequence[ChatMessage] = request.messages
        if request.schema is not None and self.form != "json_schema":
            ask = _ASK_FOR_JSON.format(schema=json.dumps(request.schema))
            messages = [ChatMessage(role="system", content=ask), *messages]
        return [{"role": each.role, "content": each.content} for each in messages]
