"""The model calls of a turn, each rendered within the model's context."""

from collections.abc import Mapping, Sequence
from typing import Any

from ibid.domain.answers import HistoryTurn
from ibid.domain.passages import Passage
from ibid.graphs.answer.deps import AnswerDeps
from ibid.graphs.answer.excerpts import excerpt_key, one_line, render_excerpts
from ibid.graphs.answer.prompt_budget import Prompt, fit_prompt
from ibid.graphs.answer.prompts import (
    ANSWER_RULES,
    CLASSIFY_OR_ASK_RULES,
    CLASSIFY_OR_ASK_SCHEMA,
    CLASSIFY_RULES,
    CLASSIFY_SCHEMA,
    EARLIER_TURNS,
    EVIDENCE_NOTE,
    GRADE_RULES,
    GRADE_SCHEMA,
    HISTORY_RULES,
    KEY_LINE,
    MESSAGE,
    QUESTION,
    answering_rules,
)
from ibid.graphs.answer.state import AnswerState, history_of, passages_of, style_of
from ibid.ports.models import ChatMessage, ModelRequest, Task

_HELPER_OUTPUT_TOKENS = 1_000  # a model that thinks first thinks within it
_EARLIER_ANSWER_CHARACTERS = 1_000
_TEMPERATURE = 0.1


async def classify_request(
    state: AnswerState, deps: AnswerDeps, *, may_ask: bool = False
) -> ModelRequest:
    """Ask what kind of message it is, and for a search query; perhaps also if it is clear.

    Earlier answers are cut to their beginning: they only tell what the message refers to.
    """
    question = state["question"]
    rules = CLASSIFY_OR_ASK_RULES if may_ask else CLASSIFY_RULES
    schema = CLASSIFY_OR_ASK_SCHEMA if may_ask else CLASSIFY_SCHEMA

    def render(_: Sequence[Passage], history: Sequence[HistoryTurn]) -> Sequence[ChatMessage]:
        parts = [EARLIER_TURNS, *map(_earlier_turn, history)] if history else []
        return (
            ChatMessage(role="system", content=rules),
            ChatMessage(
                role="user", content="\n\n".join([*parts, MESSAGE.format(question=question)])
            ),
        )

    prompt = await fit_prompt(
        deps.model,
        render,
        history=history_of(state),
        max_output_tokens=_HELPER_OUTPUT_TOKENS,
    )
    return _helper_request("classify", prompt, schema, state, deps)


async def grade_request(state: AnswerState, deps: AnswerDeps) -> ModelRequest:
    """Ask if the passages suffice."""
    question = state["question"]

    def render(passages: Sequence[Passage], _: Sequence[HistoryTurn]) -> Sequence[ChatMessage]:
        return (
            ChatMessage(role="system", content=GRADE_RULES),
            ChatMessage(role="user", content=_with_excerpts(passages, question=question, gap="")),
        )

    prompt = await fit_prompt(
        deps.model,
        render,
        passages=passages_of(state),
        max_output_tokens=_HELPER_OUTPUT_TOKENS,
    )
    return _helper_request("grade", prompt, GRADE_SCHEMA, state, deps)


async def answer_request(state: AnswerState, deps: AnswerDeps) -> ModelRequest:
    """Ask for the answer; the request's passages are those that fit.

    Raises:
        PromptTooLong: The question and the best passage alone do not fit.
    """
    question, gap = state["question"], one_line(state["gap"])
    rules = answering_rules(
        ANSWER_RULES, style=style_of(state), reply_language=state["reply_language"]
    )

    def render(
        passages: Sequence[Passage], history: Sequence[HistoryTurn]
    ) -> Sequence[ChatMessage]:
        return (
            ChatMessage(role="system", content=rules),
            *_dialogue(history),
            ChatMessage(role="user", content=_with_excerpts(passages, question=question, gap=gap)),
        )

    prompt = await fit_prompt(
        deps.model,
        render,
        passages=passages_of(state),
        history=history_of(state),
        max_output_tokens=deps.max_output_tokens,
    )
    return _answering_request("answer", prompt, state, deps, gap=gap)


async def history_request(state: AnswerState, deps: AnswerDeps) -> ModelRequest:
    """Ask for an answer from the earlier turns alone.

    Raises:
        PromptTooLong: The message and the newest turn alone do not fit.
    """
    question = state["question"]
    history = history_of(state)
    rules = answering_rules(
        HISTORY_RULES, style=style_of(state), reply_language=state["reply_language"]
    )

    def render(_: Sequence[Passage], turns: Sequence[HistoryTurn]) -> Sequence[ChatMessage]:
        return (
            ChatMessage(role="system", content=rules),
            *_dialogue(turns),
            ChatMessage(role="user", content=question),
        )

    prompt = await fit_prompt(
        deps.model,
        render,
        history=history,
        max_output_tokens=deps.max_output_tokens,
        least_history=min(1, len(history)),
    )
    return _answering_request("answer_from_history", prompt, state, deps)


def _helper_request(
    task: Task, prompt: Prompt, schema: Mapping[str, Any], state: AnswerState, deps: AnswerDeps
) -> ModelRequest:
    """Make the call of a helper: an object, and as little left to chance as the model lets."""
    return ModelRequest(
        task=task,
        messages=prompt.messages,
        question=state["question"],
        passages=prompt.passages,
        history=prompt.history,
        reply_language=state["reply_language"],
        schema=schema,
        temperature=0.0,
        max_output_tokens=prompt.max_output_tokens,
        timeout_s=deps.helper_timeout_s,
    )


def _answering_request(
    task: Task, prompt: Prompt, state: AnswerState, deps: AnswerDeps, *, gap: str = ""
) -> ModelRequest:
    """Make a call whose reply the asker reads."""
    return ModelRequest(
        task=task,
        messages=prompt.messages,
        question=state["question"],
        passages=prompt.passages,
        history=prompt.history,
        gap=gap,
        reply_language=state["reply_language"],
        style=style_of(state),
        temperature=_TEMPERATURE,
        max_output_tokens=prompt.max_output_tokens,
        timeout_s=deps.answer_timeout_s,
    )


def _with_excerpts(passages: Sequence[Passage], *, question: str, gap: str) -> str:
    """Render the message that holds the excerpts, the note on what they lack, the question."""
    key = excerpt_key(passages, question, gap)
    parts = [KEY_LINE.format(key=key), render_excerpts(passages, key)]
    if gap:
        parts.append(EVIDENCE_NOTE.format(gap=gap))
    parts.append(QUESTION.format(question=question))
    return "\n\n".join(parts)


def _dialogue(history: Sequence[HistoryTurn]) -> list[ChatMessage]:
    """Render earlier turns as the messages that they were."""
    return [
        message
        for turn in history
        for message in (
            ChatMessage(role="user", content=turn.question),
            ChatMessage(role="assistant", content=turn.answer),
        )
    ]


def _earlier_turn(turn: HistoryTurn) -> str:
    """Render one earlier turn for classify."""
    answer = turn.answer
    if len(answer) > _EARLIER_ANSWER_CHARACTERS:
        answer = answer[:_EARLIER_ANSWER_CHARACTERS] + " ..."
    return f"Asked: {turn.question}\nAnswered: {answer}"
