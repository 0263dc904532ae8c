"""When the product asks back, measured where people have said when it should.

Each row of `routing/mtragun_even` is a conversation whose last question people have judged, with
the passages that they had before them. Its passages become an index of their own, each under its
document's name, and the product's graph `ask` runs the question on it, with the turns before as
its history, up to its first pause. On the code of `swe-qa` every question has an answer, so each
one that is asked back is one too many. `clinc150` tells what is out of scope from what is not:
requests to an assistant, of which none is about a code base.
"""

import asyncio
import gzip
import json
import tempfile
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from ibid.adapters.models.extractive import ExtractiveModel
from ibid.adapters.models.question_rules import intent_of
from ibid.adapters.sqlite.index import SqlitePassageIndex
from ibid.domain.answers import HistoryTurn, Intent, Style, TurnInput, TurnPause
from ibid.domain.chunks_header import content_hash, embedded_text, header
from ibid.domain.events import Phase, StatusChanged
from ibid.domain.languages import most_spoken
from ibid.domain.passages import Chunk
from ibid.domain.projects import ProjectSettings
from ibid.graphs.answer.build import build_answer_graph
from ibid.graphs.answer.deps import AnswerDeps
from ibid.graphs.answer.turn import stream_turn
from ibid.ports.embedder import Embedder
from ibid.ports.models import ChatModel
from ibid.retrieval.search import PassageSearch
from tests.bench.quality import load_repository
from tests.fakes.leased_memory import LeasedMemorySaver

LABELS: Final = ("ANSWERABLE", "PARTIAL", "UNANSWERABLE", "UNDERSPECIFIED")
SAMPLE: Final = 300
"""Requests of a kind that are searched for."""

_HISTORY: Final = 6
_ENOUGH: Final = frozenset({Phase.GRADING, Phase.GENERATING})


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """How many questions of each label there are, and how many were asked back."""

    questions: Mapping[str, int]
    asked: Mapping[str, int]

    @property
    def precision(self) -> float:
        """Share of the underspecified among the underspecified and answerable asked back."""
        right = self.asked["UNDERSPECIFIED"]
        return right / max(1, right + self.asked["ANSWERABLE"])

    @property
    def recall(self) -> float:
        """Share of the underspecified that is asked back."""
        return self.asked["UNDERSPECIFIED"] / self.questions["UNDERSPECIFIED"]

    @property
    def rate(self) -> float:
        """Share of the answerable that is asked back."""
        return self.asked["ANSWERABLE"] / self.questions["ANSWERABLE"]


def measure_asking(shared: Path, embedder: Embedder | None, model: ChatModel) -> Asked:
    """Ask every question of `mtragun_even`, and count the pauses by label."""
    return asyncio.run(asking(shared, embedder, model))


def measure_code(shared: Path, embedder: Embedder | None) -> list[tuple[str, tuple[int, int]]]:
    """Ask the questions on the code of each repository; return those asked back, and all."""
    return asyncio.run(_measure_code(shared, embedder))


def measure_scope(shared: Path) -> list[tuple[str, tuple[int, int]]]:
    """Classify `clinc150` by the default answerer's rules; return refused and all, by kind."""
    return [
        (kind, (sum(map(_is_refused, texts)), len(texts)))
        for kind, texts in _requests(shared).items()
    ]


def measure_floor(shared: Path, embedder: Embedder | None) -> list[tuple[int, int]]:
    """Search flask for what is not refused; return refused or not found, and all, by kind.

    Of each kind at most `SAMPLE`, evenly spread.
    """
    return asyncio.run(_measure_floor(shared, embedder))


def _is_refused(text: str) -> bool:
    return intent_of(text, ()) is Intent.OUT_OF_SCOPE


def _requests(shared: Path) -> dict[str, list[str]]:
    rows = json.loads(_text(shared / "data" / "routing" / "clinc150_train_val.json.gz"))
    return {
        kind: [text for name in names for text, _ in rows[name]]
        for kind, names in {
            "out of scope": ("oos_train", "oos_val"),
            "in CLINC's scope": ("train", "val"),
        }.items()
    }


async def _measure_floor(shared: Path, embedder: Embedder | None) -> list[tuple[int, int]]:
    with tempfile.TemporaryDirectory() as folder:
        files, _ = load_repository(shared, "flask", Path(folder))
    found = []
    async with _indexed(files, embedder) as search:
        for texts in _requests(shared).values():
            sample = texts[:: max(1, len(texts) // SAMPLE)]
            gone = 0
            for text in sample:
                gone += _is_refused(text) or not await search.search(
                    text, tenant="t", project_id="p", generation=1, timeout_s=30.0
                )
            found.append((gone, len(sample)))
    return found


async def asking(shared: Path, embedder: Embedder | None, model: ChatModel) -> Asked:
    """Do as `measure_asking`, in a loop that there is."""
    questions: Counter[str] = Counter()
    asked: Counter[str] = Counter()
    rows = _text(shared / "data" / "routing" / "mtragun_even.jsonl.gz").splitlines()
    for row in map(json.loads, rows):
        [label] = row["answerability"]
        *before, last = row["input"]
        files: dict[str, list[Chunk]] = {}
        for context in row["contexts"]:
            name = context["document_id"]
            files.setdefault(name, []).append(_chunk(name, files.get(name, ()), context["text"]))
        async with _indexed(files, embedder) as search:
            paused = await _is_asked_back(
                search, model, question=last["text"].strip(), history=_turns(before)
            )
        questions[label] += 1
        asked[label] += paused
    return Asked(questions=questions, asked=asked)


async def _measure_code(
    shared: Path, embedder: Embedder | None
) -> list[tuple[str, tuple[int, int]]]:
    found = []
    for name in ("flask", "requests"):
        with tempfile.TemporaryDirectory() as folder:
            files, queries = load_repository(shared, name, Path(folder))
        async with _indexed(files, embedder) as search:
            asked = [
                await _is_asked_back(search, ExtractiveModel(), question=query.text, history=())
                for query in queries
            ]
        found.append((name, (sum(asked), len(asked))))
    return found


async def _is_asked_back(
    search: PassageSearch, model: ChatModel, *, question: str, history: Sequence[HistoryTurn]
) -> bool:
    """Run a turn until it pauses, or has gone past every place where it could."""

    async def active_generation() -> int:
        return 1

    deps = AnswerDeps(
        search=search,
        model=model,
        settings=ProjectSettings(max_retrieval_attempts=1),
        permalink=lambda _: None,
        active_generation=active_generation,
    )
    turn = TurnInput(
        tenant="t",
        project_id="p",
        question=question,
        history=history,
        generation=1,
        reply_language="en",
        style=Style(),
        path_prefix=None,
        turn_id="turn",
        run_id="run",
    )
    graph = build_answer_graph(clarify=True, checkpointer=LeasedMemorySaver())
    async with aclosing(stream_turn(graph, turn, deps)) as items:
        async for item in items:
            if isinstance(item, TurnPause):
                return True
            if isinstance(item, StatusChanged) and item.phase in _ENOUGH:
                return False
    return False


@asynccontextmanager
async def _indexed(
    files: Mapping[str, Sequence[Chunk]], embedder: Embedder | None
) -> AsyncIterator[PassageSearch]:
    with tempfile.TemporaryDirectory() as folder:
        index = SqlitePassageIndex(Path(folder))
        writer = await index.write(tenant="t", project_id="p", generation=1)
        for chunks in files.values():
            vectors = None
            if embedder is not None:
                vectors = await embedder.embed_passages(
                    [embedded_text(each.file_path, each.symbol, each.content) for each in chunks]
                )
            await writer.add(chunks, vectors)
        await writer.seal(
            embedding_signature=embedder.signature if embedder else None,
            main_language=most_spoken(each.content for chunks in files.values() for each in chunks),
            commit_sha=None,
            source_digest="bench",
        )
        yield PassageSearch(index=index, embedder=embedder)
        await index.close()


def _turns(messages: Sequence[Mapping[str, Any]]) -> list[HistoryTurn]:
    turns = [
        HistoryTurn(question=asked["text"], answer=answered["text"])
        for asked, answered in zip(messages[::2], messages[1::2], strict=False)
    ]
    return turns[-_HISTORY:]


def _chunk(path: str, before: Sequence[Chunk], text: str) -> Chunk:
    start = before[-1].end_line + 1 if before else 1
    return Chunk(
        file_path=path,
        start_line=start,
        end_line=start + text.count("\n"),
        language="text",
        symbol="",
        chunk_index=len(before),
        content=text,
        content_hash=content_hash(header(path, ""), text),
        commit_sha=None,
    )


def _text(path: Path) -> str:
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return file.read()
