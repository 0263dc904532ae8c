"""The answerer that needs no model: it chooses by rules what to quote, and says so."""

import asyncio
import re
from collections.abc import AsyncIterator, Mapping
from typing import Any, Final

from ibid.adapters.models.bullets import quote_in_a_bullet
from ibid.adapters.models.cutting import Size
from ibid.adapters.models.evidence_rules import judge, missing_names
from ibid.adapters.models.excerpt_choice import choose
from ibid.adapters.models.history_rules import answer_from_history
from ibid.adapters.models.phrases import phrases
from ibid.adapters.models.question_rules import intent_of, search_query
from ibid.adapters.models.question_terms import question_terms
from ibid.adapters.models.quoting import code_span, quote
from ibid.ports.models import ModelRequest, ReplyEnd, TextDelta

CONTEXT_TOKENS: Final = 1_000_000
"""Far more than a turn can hold: rules read passages of any number."""

_SIZES: Final[Mapping[str | None, tuple[Size, int]]] = {
    "brief": (Size(excerpts=2, code_lines=8, prose_characters=300), 1_500),
    None: (Size(excerpts=4, code_lines=16, prose_characters=600), 4_000),
    "thorough": (Size(excerpts=8, code_lines=30, prose_characters=1_200), 9_000),
}
_PIECE: Final = re.compile(r"\s*\S+\s*|\s+")


class ExtractiveModel:
    """Quotes the passages' own lines that answer, each with its marker; deterministic.

    `decide` classifies and grades by rules and fails on no input; `stream` fails on no input
    either. Nothing leaves the process.
    """

    @property
    def name(self) -> str:
        """Always `extractive`."""
        return "extractive"

    async def context_tokens(self) -> int:
        """Return a context that no turn fills."""
        return CONTEXT_TOKENS

    def count_tokens(self, text: str) -> int:
        """Count characters: rules have no tokens, and no fewer characters than words."""
        return len(text)

    async def stream(self, request: ModelRequest) -> AsyncIterator[TextDelta | ReplyEnd]:
        """Quote word by word, giving way to other tasks at each."""
        if request.task == "answer_from_history":
            text = answer_from_history(
                request.question, request.history, reply_language=request.reply_language
            )
        else:
            text = answer(request)
        for piece in _PIECE.findall(text):
            yield TextDelta(text=piece)
            await asyncio.sleep(0)
        yield ReplyEnd(input_tokens=None, output_tokens=None)

    async def decide(self, request: ModelRequest) -> Mapping[str, Any]:
        """Classify or grade by rules.

        Returns:
            For `classify` intent and search_query, for `grade` sufficient, gap and better_query.
        """
        await asyncio.sleep(0)
        if request.task == "classify":
            intent = intent_of(request.question, request.history)
            query = search_query(request.question, request.history)
            return {"intent": intent.value, "search_query": query}
        verdict = judge(request.question, request.passages)
        return {
            "sufficient": verdict.sufficient,
            "gap": verdict.gap,
            "better_query": verdict.better_query,
        }


def answer(request: ModelRequest) -> str:
    """Write the whole answer: what no passage mentions, a lead sentence, and the quotes."""
    say = phrases(request.reply_language)
    size, most = _SIZES[request.style.detail]
    asked = question_terms(request.question)
    units = choose(request.question, asked, request.passages, size)
    bullets = request.style.format == "bullets"
    quotes: list[str] = []
    for unit in units:
        path = request.passages[unit.number - 1].file_path
        quoted = quote_in_a_bullet(unit, path, asked) if bullets else quote(unit, path, say)
        if quotes and sum(map(len, quotes)) + len(quoted) > most:
            break
        quotes.append(quoted)
    blocks = [say.lead, ("\n" if bullets else "\n\n").join(quotes)]
    missing = missing_names(asked, request.passages)
    if missing and units:
        blocks.insert(0, say.missing.format(terms=", ".join(map(code_span, missing))))
    elif request.gap or not units:
        blocks.append(say.gap)
    return "\n\n".join(block for block in blocks if block)
