"""Keeping a prompt within the model's context: what is dropped first, and when it is an error.

A small local server drops the beginning of what is too long, and answers from the rest; so what
does not fit is left out here, by rank, or refused.
"""

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ibid.domain.answers import HistoryTurn
from ibid.domain.errors import PromptTooLong
from ibid.domain.passages import Passage
from ibid.ports.models import ChatMessage, ChatModel

MESSAGE_TOKENS = 8
"""What a chat template spends around one message, at most."""

_OUTPUT_SHARE = 4

Render = Callable[[Sequence[Passage], Sequence[HistoryTurn]], Sequence[ChatMessage]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """A prompt that fits, and what of the facts is in it.

    Attributes:
        passages: The best ones, in their order; a marker's number counts in these.
        history: The newest turns, oldest first.
        max_output_tokens: What the context leaves for the reply.
    """

    messages: Sequence[ChatMessage]
    passages: Sequence[Passage]
    history: Sequence[HistoryTurn]
    max_output_tokens: int


async def fit_prompt(
    model: ChatModel,
    render: Render,
    *,
    passages: Sequence[Passage] = (),
    history: Sequence[HistoryTurn] = (),
    max_output_tokens: int,
    least_history: int = 0,
) -> Prompt:
    """Render the most that fits: worst passages go first, down to the best; then oldest turns.

    Args:
        model: Whose context and count of tokens hold.
        render: Makes the messages of some passages and some turns.
        passages: Best first; one always stays where there is any.
        history: Oldest first.
        max_output_tokens: Kept free for the reply, but at most a quarter of the context.
        least_history: Newest turns that always stay.

    Raises:
        PromptTooLong: Not even the least fits.
        ModelUnavailable: The model did not tell its context.
    """
    context = await model.context_tokens()
    output = max(1, min(max_output_tokens, context // _OUTPUT_SHARE))
    spare_passages = max(0, len(passages) - 1)
    spare_turns = max(0, len(history) - least_history)

    def kept(dropped: int) -> tuple[Sequence[Passage], Sequence[HistoryTurn]]:
        worst = min(dropped, spare_passages)
        return passages[: len(passages) - worst], history[dropped - worst :]

    def fits(dropped: int) -> bool:
        return _count(model, render(*kept(dropped))) <= context - output

    choices = range(spare_passages + spare_turns + 1)
    dropped = bisect_left(choices, 1, key=fits)
    if dropped == len(choices):
        raise PromptTooLong(
            f"the question and the least that must stand with it do not fit {context} tokens "
            f"with {output} left for the answer"
        )
    best, newest = kept(dropped)
    return Prompt(
        messages=render(best, newest), passages=best, history=newest, max_output_tokens=output
    )


def _count(model: ChatModel, messages: Sequence[ChatMessage]) -> int:
    """Count a prompt's tokens, rather too high."""
    return sum(model.count_tokens(message.content) + MESSAGE_TOKENS for message in messages)
