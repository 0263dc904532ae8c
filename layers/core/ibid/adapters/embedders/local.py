"""An embedder in this process: loaded at first use, off the event loop, queries never in line."""

import asyncio
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Protocol

from ibid.domain.errors import EmbedderUnavailable
from ibid.domain.passages import Vector

# Larger batches are slower a text and take memory in proportion (docs/embedders.md).
_BATCH = 4


class Session(Protocol):
    """What does the work, in threads."""

    def tokenise(self, texts: Sequence[str]) -> list[list[int]]:
        """Turn texts into ids, each cut to the model's longest input."""

    def embed(self, ids: Sequence[Sequence[int]]) -> list[Vector]:
        """Embed one batch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedModel:
    """A session, with what must be put before a text, and the name of its vector space."""

    session: Session
    signature: str
    query_prefix: str = ""
    passage_prefix: str = ""


class LocalEmbedder:
    """Implements Embedder over a model that `load` brings into memory, once.

    Passages and queries have a thread each, so a query shares the cores with at most one batch
    of passages and waits behind none. A cancelled call gives up between two batches.
    """

    def __init__(
        self,
        load: Callable[[], LoadedModel],
        *,
        languages: frozenset[str],
        foretell: Callable[[], str] | None = None,
    ) -> None:
        """Take what loads the model, and what tells its signature without loading it.

        Args:
            load: Called in a thread, once it has succeeded never again.
            languages: That the model knows.
            foretell: Quick; where `load` gives another signature after all, its first caller is
                told to try again, so that nobody keeps vectors under the wrong name.
        """
        self._load = load
        self._languages = languages
        self._foretell = foretell
        self._foretold: str | None = None
        self._loaded: LoadedModel | None = None
        self._loading = threading.Lock()
        self._passages = ThreadPoolExecutor(1, thread_name_prefix="embed-passages")
        self._queries = ThreadPoolExecutor(1, thread_name_prefix="embed-query")

    @property
    def signature(self) -> str:
        """Identify the model and its vector space.

        Loads the model if nothing has yet and nothing can foretell it: await `ready` first where
        blocking matters.
        """
        if self._loaded is None and self._foretell is not None:
            self._foretold = self._foretold or self._foretell()
            return self._foretold
        return self._model().signature

    @property
    def languages(self) -> frozenset[str]:
        """Name the languages that it knows; empty means many."""
        return self._languages

    async def ready(self) -> None:
        """Load the model if nothing has yet, without blocking the event loop.

        Raises:
            Misconfigured: A file of it can't be used.
            EmbedderUnavailable: Its signature is another one than was foretold.
        """
        await asyncio.get_running_loop().run_in_executor(self._queries, self._model)

    async def embed_passages(self, texts: Sequence[str]) -> Sequence[Vector]:
        """Embed texts in their order, a few of about one length at a time."""
        loop = asyncio.get_running_loop()
        ids = await loop.run_in_executor(self._passages, self._passage_ids, texts)
        order = sorted(range(len(ids)), key=lambda index: len(ids[index]))
        vectors: dict[int, Vector] = {}
        for start in range(0, len(order), _BATCH):
            batch = order[start : start + _BATCH]
            session = self._model().session
            embedded = await loop.run_in_executor(
                self._passages, session.embed, [ids[index] for index in batch]
            )
            vectors.update(zip(batch, embedded, strict=True))
        return [vectors[index] for index in range(len(ids))]

    async def embed_query(self, text: str, *, timeout_s: float) -> Vector:
        """Embed one question, alone: an int8 model's vector depends a little on its batch."""
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(timeout_s):
                return await loop.run_in_executor(self._queries, self._query, text)
        except TimeoutError as error:
            raise EmbedderUnavailable(f"no vector within {timeout_s:g} s") from error

    async def aclose(self) -> None:
        """End the threads once they are idle; nothing may be embedded after it. Repeatable."""
        self._passages.shutdown(wait=False, cancel_futures=True)
        self._queries.shutdown(wait=False, cancel_futures=True)

    def _passage_ids(self, texts: Sequence[str]) -> list[list[int]]:
        model = self._model()
        return model.session.tokenise([model.passage_prefix + text for text in texts])

    def _query(self, text: str) -> Vector:
        model = self._model()
        return model.session.embed(model.session.tokenise([model.query_prefix + text]))[0]

    def _model(self) -> LoadedModel:
        with self._loading:
            if self._loaded is None:
                self._loaded = self._load()
                if self._foretold not in (None, self._loaded.signature):
                    raise EmbedderUnavailable(
                        "the embedding model is another one than was foretold: try again"
                    )
            return self._loaded
