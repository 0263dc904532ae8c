"""How a node speaks: every event goes through the graph's own stream writer."""

import re
from collections.abc import AsyncGenerator, Sequence

from langgraph.runtime import Runtime

from ibid.domain.errors import AnswerEmpty, ModelUnavailable
from ibid.domain.events import Phase, StatusChanged, TokenDelta
from ibid.domain.passages import Passage
from ibid.graphs.answer.citations import shown_citations
from ibid.graphs.answer.deps import AnswerDeps
from ibid.ports.models import ModelRequest, TextDelta

_WORD = re.compile(r"\S+\s*")


def enter(phase: Phase, runtime: Runtime[AnswerDeps]) -> None:
    """Say what the turn does from now on; never after its first token."""
    runtime.stream_writer(StatusChanged(phase=phase))


def show_sources(passages: Sequence[Passage], runtime: Runtime[AnswerDeps]) -> None:
    """Show what was found, once a turn, before its first token."""
    runtime.stream_writer(shown_citations(passages, runtime.context.permalink))


def say(text: str, runtime: Runtime[AnswerDeps]) -> str:
    """Stream a fixed text word by word, and return it."""
    for word in _WORD.findall(text):
        runtime.stream_writer(TokenDelta(text=word))
    return text


async def say_reply(request: ModelRequest, runtime: Runtime[AnswerDeps]) -> str:
    """Stream the model's reply piece by piece, and return it whole.

    Raises:
        AnswerEmpty: The reply has no text.
        ModelUnavailable: The stream stopped without saying that it had ended.
    """
    write = runtime.stream_writer
    pieces: list[str] = []
    ended = False
    stream = runtime.context.model.stream(request)
    try:
        async for item in stream:
            if isinstance(item, TextDelta):
                pieces.append(item.text)
                write(TokenDelta(text=item.text))
            else:
                ended = True
    finally:
        # A cancelled loop leaves its generator suspended, and its connection open, else.
        if isinstance(stream, AsyncGenerator):
            await stream.aclose()
    if not ended:
        raise ModelUnavailable("the model's stream stopped before its end")
    if not pieces:
        raise AnswerEmpty("the model ended without any text")
    return "".join(pieces)
