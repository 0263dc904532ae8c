"""A chat model that says what a test or a bench tells it to, and remembers what it was asked.

ScriptedModel(["Hello ", gate.wait, "world [1]."])          # awaits between pieces
ScriptedModel(["Hello ", ModelUnavailable("broke off")])    # fails in place of piece 2
ScriptedModel(replies=[["first"], ["second"]])              # one a call, the last one stays
ScriptedModel(decisions={"grade": [bad_verdict, good_verdict]})
ScriptedModel(fail_at_token=3, fail_at_decision=1)          # from 1, over all calls
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from typing import Any

from ibid.domain.errors import AnswerEmpty, ModelUnavailable
from ibid.ports.models import ModelRequest, ReplyEnd, Task, TextDelta

Pause = Callable[[], Awaitable[object]]
Step = str | BaseException | Pause
Decision = Mapping[str, Any] | BaseException | Callable[[ModelRequest], Mapping[str, Any]]

REPLY: Sequence[Step] = ("It is ", "in the ", "first excerpt ", "[1].")


class ScriptedModel:
    """Says each step of its script: text is a piece, an exception is raised, a call is awaited.

    Args:
        reply: The script of every `stream`; with `replies`, unused.
        replies: A script a call, in order of the calls; the last one stays.
        decisions: By task, a decision a call; the last one stays. A task without any gets a
            sensible one: the question as search query, evidence sufficient.
        fail_at_token: Raise `error` in place of the k-th piece over all calls, from 1.
        fail_at_decision: Raise `error` in place of the k-th decision over all calls, from 1.
        error: What those two raise.
        before_decision: Awaited at the start of every decision.
    """

    def __init__(
        self,
        reply: Sequence[Step] = REPLY,
        *,
        replies: Sequence[Sequence[Step]] | None = None,
        decisions: Mapping[Task, Sequence[Decision]] | None = None,
        fail_at_token: int | None = None,
        fail_at_decision: int | None = None,
        error: BaseException | None = None,
        before_decision: Pause | None = None,
        name: str = "scripted",
        context: int = 100_000,
    ) -> None:
        self.requests: list[ModelRequest] = []
        self.open_streams = 0
        self.closed_early = 0
        self._replies = [reply] if replies is None else replies
        self._decisions: Mapping[Task, Sequence[Decision]] = decisions or {}
        self._fail_at_token = fail_at_token
        self._fail_at_decision = fail_at_decision
        self._error = error or ModelUnavailable("the script says so")
        self._before_decision = before_decision
        self._name = name
        self._context = context
        self._streams = 0
        self._tokens = 0
        self._decided: dict[Task, int] = {}

    @property
    def name(self) -> str:
        return self._name

    async def context_tokens(self) -> int:
        return self._context

    def count_tokens(self, text: str) -> int:
        return len(text.encode())

    def calls(self, task: Task) -> list[ModelRequest]:
        """The requests of one task, in order."""
        return [request for request in self.requests if request.task == task]

    async def stream(self, request: ModelRequest) -> AsyncIterator[TextDelta | ReplyEnd]:
        self.requests.append(request)
        script = self._replies[min(self._streams, len(self._replies) - 1)]
        self._streams += 1
        self.open_streams += 1
        ended = False
        try:
            said = 0
            for step in script:
                if isinstance(step, str):
                    self._tokens += 1
                    if self._tokens == self._fail_at_token:
                        raise self._error
                    said += 1
                    yield TextDelta(text=step)
                elif isinstance(step, BaseException):
                    raise step
                else:
                    await step()
            if not said:
                raise AnswerEmpty("the script holds no text")
            ended = True
            yield ReplyEnd(input_tokens=None, output_tokens=said)
        finally:
            self.open_streams -= 1
            self.closed_early += not ended

    async def decide(self, request: ModelRequest) -> Mapping[str, Any]:
        self.requests.append(request)
        await asyncio.sleep(0)
        if self._before_decision is not None:
            await self._before_decision()
        if sum(self._decided.values()) + 1 == self._fail_at_decision:
            self._decided[request.task] = self._decided.get(request.task, 0) + 1
            raise self._error
        scripted = self._decisions.get(request.task, ())
        turn = self._decided.get(request.task, 0)
        self._decided[request.task] = turn + 1
        if not scripted:
            return _usual(request)
        decision = scripted[min(turn, len(scripted) - 1)]
        if isinstance(decision, BaseException):
            raise decision
        return decision(request) if callable(decision) else decision


def _usual(request: ModelRequest) -> Mapping[str, Any]:
    """What a task without a script gets."""
    if request.task == "classify":
        return {"intent": "codebase_question", "search_query": request.question}
    return {"sufficient": True, "gap": "", "better_query": ""}
