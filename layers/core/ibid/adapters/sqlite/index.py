"""The embedded passage index: one immutable file a generation, in a folder."""

import asyncio
import shutil
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final, TypeVar

from ibid.adapters.sqlite.index_cache import OpenGenerations
from ibid.adapters.sqlite.index_cursor import bad_cursor, read_cursor, write_cursor
from ibid.adapters.sqlite.index_file import FaultyFile
from ibid.adapters.sqlite.index_place import GenerationPlace, ProjectPlace
from ibid.adapters.sqlite.index_reader import SealedGeneration
from ibid.adapters.sqlite.index_writer import Abandoned, GenerationDraft
from ibid.domain.errors import GenerationDamaged, GenerationGone, VectorStoreUnavailable
from ibid.domain.pages import Page
from ibid.domain.passages import Chunk, Vector
from ibid.ports.index import Candidates, GenerationFacts, IndexQuery, PathList

T = TypeVar("T")

_READERS: Final = 4
_WRITERS: Final = 2  # each thread keeps its own memory of analysed words
_OPEN_GENERATIONS: Final = 16


class SqlitePassageIndex:
    """Every tenant's generations in one folder, which several processes may use at once.

    Searches read files that never change, on threads of their own, so they wait for no writer. It
    is a `VectorCache` as well.
    """

    def __init__(self, folder: Path, *, timeout_s: float = 30.0) -> None:
        """Name the folder; the first write makes it.

        Args:
            folder: For this index alone.
            timeout_s: Of the reads whose caller gives none.
        """
        self._folder = folder
        self._timeout_s = timeout_s
        self._open = OpenGenerations(_OPEN_GENERATIONS)
        self._readers = ThreadPoolExecutor(_READERS, "ibid-index-read")
        self._writers = ThreadPoolExecutor(_WRITERS, "ibid-index-write")

    async def close(self) -> None:
        """Wait for what is under way, then let go of files and threads; repeatable."""
        for executor in (self._readers, self._writers):
            await asyncio.to_thread(executor.shutdown)
        self._open.close()

    async def candidates(
        self,
        query: IndexQuery,
        *,
        tenant: str,
        project_id: str,
        generation: int,
        timeout_s: float,
    ) -> Candidates:
        """Find the union of the `depth` best by BM25 and the `depth` best by cosine."""
        place = self._place(tenant, project_id, generation)
        return await self._read(place, lambda sealed: sealed.candidates(query), timeout_s)

    async def facts(self, *, tenant: str, project_id: str, generation: int) -> GenerationFacts:
        """Return what is known of one sealed generation."""
        place = self._place(tenant, project_id, generation)
        return await self._read(place, lambda sealed: sealed.facts)

    async def scroll(
        self,
        *,
        tenant: str,
        project_id: str,
        generation: int,
        path_prefix: str,
        cursor: str | None,
        limit: int,
    ) -> Page[Chunk]:
        """List the chunks of the files whose path starts with the prefix, by path, then index."""
        place = self._place(tenant, project_id, generation)
        after = 0 if cursor is None else read_cursor(cursor, place, path_prefix)
        chunks, following = await self._read(
            place, lambda sealed: sealed.scroll(path_prefix, after, limit)
        )
        if after and not chunks:
            raise bad_cursor()
        return Page(
            items=chunks,
            next_cursor=None if following is None else write_cursor(following, place, path_prefix),
        )

    async def paths(
        self, *, tenant: str, project_id: str, generation: int, prefix: str, limit: int
    ) -> PathList:
        """List the indexed paths that start with the prefix, in code point order."""
        place = self._place(tenant, project_id, generation)
        return await self._read(place, lambda sealed: sealed.paths(prefix, limit))

    async def get(
        self, content_hashes: Sequence[str], *, tenant: str, project_id: str, signature: str
    ) -> Mapping[str, Vector]:
        """Return the known vectors; the newest sealed generations are looked into first."""
        project = ProjectPlace(self._folder, tenant, project_id)
        found: dict[str, Vector] = {}
        for number in reversed(await self._run(self._readers, project, project.sealed)):
            wanted = [each for each in content_hashes if each not in found]
            if not wanted:
                break
            # deleted meanwhile, too old to be read, or damaged
            with suppress(GenerationGone, GenerationDamaged):
                found |= await self._read(
                    project.generation(number), _vectors_of(wanted, signature)
                )
        return found

    async def write(
        self, *, tenant: str, project_id: str, generation: int
    ) -> "SqliteGenerationWriter":
        """Open a generation for writing; what an unsealed one of that number held is dropped.

        Raises:
            ValueError: It is sealed.
        """
        place = self._place(tenant, project_id, generation)
        opening = self._writers.submit(GenerationDraft, place)
        try:
            with _named(place):
                draft = await asyncio.wrap_future(opening)
        except asyncio.CancelledError:
            opening.add_done_callback(_drop)
            raise
        return SqliteGenerationWriter(draft, place, self._writers)

    async def generations(self, *, tenant: str, project_id: str) -> Sequence[int]:
        """Return the numbers of all generations, sealed or not, rising."""
        project = ProjectPlace(self._folder, tenant, project_id)
        return await self._run(self._readers, project, project.all)

    async def delete(self, *, tenant: str, project_id: str, generation: int) -> None:
        """Remove one generation; repeatable."""
        place = self._place(tenant, project_id, generation)

        def remove() -> None:
            place.remove()
            self._open.forget(place.file)

        await self._run(self._readers, place, remove)

    async def delete_project(self, *, tenant: str, project_id: str) -> None:
        """Remove every generation of a project; repeatable."""
        project = ProjectPlace(self._folder, tenant, project_id)

        def remove() -> None:
            with suppress(FileNotFoundError):
                shutil.rmtree(project.folder)
            self._open.forget(project.folder)

        await self._run(self._readers, project, remove)

    def _place(self, tenant: str, project_id: str, generation: int) -> GenerationPlace:
        return ProjectPlace(self._folder, tenant, project_id).generation(generation)

    async def _read(
        self,
        place: GenerationPlace,
        act: Callable[[SealedGeneration], T],
        timeout_s: float | None = None,
    ) -> T:
        def read() -> T:
            try:
                with self._open.reading(place) as sealed:
                    return act(sealed)
            except (OSError, sqlite3.Error) as error:
                if _is_damage(error) and place.file.exists():
                    raise FaultyFile(f"reading it gave {type(error).__name__}") from error
                if isinstance(error, FileNotFoundError | sqlite3.Error) and not place.file.exists():
                    raise GenerationGone(f"{place} is not there") from error
                raise

        try:
            async with asyncio.timeout(self._timeout_s if timeout_s is None else timeout_s):
                return await self._run(self._readers, place, read)
        except TimeoutError as error:
            raise VectorStoreUnavailable(f"{place} gave no answer in time") from error

    @staticmethod
    async def _run(
        executor: ThreadPoolExecutor, place: GenerationPlace | ProjectPlace, act: Callable[[], T]
    ) -> T:
        with _named(place):
            return await asyncio.get_running_loop().run_in_executor(executor, act)


class SqliteGenerationWriter:
    """A draft, written on the index's own threads."""

    def __init__(
        self, draft: GenerationDraft, place: GenerationPlace, executor: ThreadPoolExecutor
    ) -> None:
        self._draft = draft
        self._place = place
        self._executor = executor

    async def add(self, chunks: Sequence[Chunk], vectors: Sequence[Vector] | None) -> None:
        """Add chunks, a file's all in one call and in order of `chunk_index`.

        Raises:
            ValueError: A chunk was added before, or the vectors are not what the port says.
        """
        await self._run(lambda: self._draft.add(chunks, vectors))

    async def seal(
        self,
        *,
        embedding_signature: str | None,
        main_language: str,
        commit_sha: str | None,
        source_digest: str,
    ) -> GenerationFacts:
        """Make it whole, immutable and readable; durable once this returns."""
        return await self._run(
            lambda: self._draft.seal(
                embedding_signature=embedding_signature,
                main_language=main_language,
                commit_sha=commit_sha,
                source_digest=source_digest,
            )
        )

    async def abort(self) -> None:
        """Drop all of it; repeatable, and harmless after `seal`."""
        self._draft.stop()  # at once: a seal under way may hold the thread
        await self._run(self._draft.drop)

    async def _run(self, act: Callable[[], T]) -> T:
        with _named(self._place):
            return await asyncio.get_running_loop().run_in_executor(self._executor, act)


def _vectors_of(
    content_hashes: Sequence[str], signature: str
) -> Callable[[SealedGeneration], Mapping[str, Vector]]:
    return lambda sealed: (
        sealed.vectors(content_hashes) if sealed.facts.embedding_signature == signature else {}
    )


def _is_damage(error: OSError | sqlite3.Error) -> bool:
    """Say if it is this file that is at fault; a disk or a folder may be away instead."""
    if isinstance(error, sqlite3.Error):
        code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_MISUSE)
        return code & 0xFF in {sqlite3.SQLITE_ERROR, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}
    return isinstance(error, IsADirectoryError | PermissionError)


def _drop(opening: Future[GenerationDraft]) -> None:
    if not opening.cancelled() and opening.exception() is None:
        opening.result().drop()


@contextmanager
def _named(place: GenerationPlace | ProjectPlace) -> Iterator[None]:
    """Turn what a file or SQLite raises into ours, saying which generation's it is."""
    try:
        yield
    except FaultyFile as error:
        raise GenerationDamaged(
            f"{place} is damaged: {error}; indexing again rebuilds it"
        ) from error
    except Abandoned as error:
        raise VectorStoreUnavailable(f"{place} is no longer being written") from error
    except (sqlite3.Error, OSError) as error:
        raise VectorStoreUnavailable(
            f"{place} can't be read or written: {type(error).__name__}"
        ) from error
