"""Turns that ask back, wait to be let go, or ask before each model call if they may go on."""

import asyncio
from collections.abc import AsyncIterator, Callable

from ibid.domain.answers import Clarification, TurnInput, TurnPause, TurnResult
from ibid.domain.events import CitationsFound, Phase, StatusChanged, TokenDelta, TurnEvent
from ibid.runs.turns import Proceed, Work
from tests.fakes.samples import a_citation, a_result

ASKED = Clarification(question="Which one?", options=("the first", "the second"))


def asking_work(*tokens: str, seen: list[TurnInput] | None = None) -> Work:
    """Work that pauses before these tokens until it is answered; it proceeds before each part."""

    async def work(
        turn: TurnInput, proceed: Proceed
    ) -> AsyncIterator[TurnEvent | TurnResult | TurnPause]:
        if seen is not None:
            seen.append(turn)
        found = a_citation(cited=None)
        await proceed()
        yield StatusChanged(phase=Phase.RETRIEVING)
        if turn.resumption is None:
            await proceed()
            yield TurnPause(
                interrupt_id=f"interrupt of {turn.turn_id}", node="clarify", clarification=ASKED
            )
            return
        yield CitationsFound(citations=(found,))
        await proceed()
        for token in tokens:
            await asyncio.sleep(0)
            yield TokenDelta(text=token)
        yield a_result("".join(tokens), citations=(found,))

    return work


def stepped_work(*steps: str | Callable[[], object], calls: list[str] | None = None) -> Work:
    """Work that says each text as a model call would, after it was let proceed.

    A callable among the steps is called, and awaited if it gives a future.
    """

    async def work(_: TurnInput, proceed: Proceed) -> AsyncIterator[TurnEvent | TurnResult]:
        said = ""
        for step in steps:
            if isinstance(step, str):
                await proceed()
                if calls is not None:
                    calls.append(step)
                said += step
                yield TokenDelta(text=step)
            else:
                given = step()
                if isinstance(given, asyncio.Future):
                    await given
        yield a_result(said)

    return work
