"""Writes one generation: chunks are spooled as they come, and made searchable when it is sealed.

Sealing orders the chunks by path, because then every path prefix is one run of rows, and analyses
them, because only then the main language is known.
"""

import shutil
import sqlite3
import threading
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Final

import numpy as np
import numpy.typing as npt

from ibid.adapters.sqlite.index_file import ArraySource, append_arrays, make_durable
from ibid.adapters.sqlite.index_place import GenerationPlace
from ibid.adapters.sqlite.index_rows import (
    CHUNK_COLUMNS,
    CHUNK_VALUES,
    chunk_of,
    connect,
    encoded,
    row_of,
)
from ibid.adapters.sqlite.index_schema import SCHEMA
from ibid.adapters.sqlite.index_terms import TermsDraft
from ibid.adapters.sqlite.index_vectors import VectorSpool
from ibid.domain.passages import Chunk, Vector
from ibid.ports.index import GenerationFacts

_SPOOL: Final = f"""
PRAGMA main.journal_mode = MEMORY;
PRAGMA main.synchronous = OFF;
PRAGMA spool.journal_mode = MEMORY;
PRAGMA spool.synchronous = OFF;
{SCHEMA}
CREATE TABLE spool.spooled (
    seq INTEGER PRIMARY KEY, {", ".join(CHUNK_COLUMNS)}, UNIQUE (file_path, chunk_index)
);
BEGIN;
"""
_NUMBER_FILES: Final = """
INSERT INTO files
SELECT row_number() OVER by_path - 1, file_path, sum(chunks) OVER by_path - chunks
FROM (SELECT file_path, count(*) AS chunks FROM spooled GROUP BY file_path)
WINDOW by_path AS (ORDER BY file_path)
"""
_OWN_COLUMNS: Final = ", ".join(CHUNK_COLUMNS[1:])
_NUMBER_CHUNKS: Final = f"""
INSERT INTO chunks (file_id, {_OWN_COLUMNS})
SELECT (SELECT id FROM files WHERE path = file_path), {_OWN_COLUMNS}
FROM spooled ORDER BY file_path, chunk_index
"""  # noqa: S608 - column names of this package, no value
_READ_CHUNKS: Final = f"""
SELECT file_id, path, {_OWN_COLUMNS}
FROM chunks JOIN files ON files.id = file_id ORDER BY chunks.id
"""  # noqa: S608 - column names of this package, no value


Order = npt.NDArray[np.int64]


class Abandoned(Exception):
    """The generation was aborted, or opened by another writer, while it was written."""


class GenerationDraft:
    """One generation in the making, in a folder of its own; all calls block.

    A killed process leaves the folder behind; the next draft of the same number removes it. It
    removes a living writer's too, whose seal then fails.
    """

    def __init__(self, place: GenerationPlace) -> None:
        if place.file.exists():
            raise ValueError(f"{place} is sealed")
        self._place = place
        for left in place.workshops():
            shutil.rmtree(left, ignore_errors=True)
        self._workshop = place.new_workshop()
        self._file = self._workshop / "generation"
        self._lock = threading.Lock()
        self._stopped = threading.Event()
        self._chunks = 0
        self._vectors = VectorSpool(self._workshop / "vectors")
        self._database = connect(self._file)
        self._database.execute("ATTACH ? AS spool", (str(self._workshop / "spool"),))
        self._database.executescript(_SPOOL)

    def add(self, chunks: Sequence[Chunk], vectors: Sequence[Vector] | None) -> None:
        """Spool some chunks.

        Raises:
            Abandoned: The draft was aborted or sealed.
            ValueError: A chunk was added before, or the vectors don't fit.
        """
        with self._lock:
            self._check()
            if not chunks:
                return
            if vectors is not None and len(vectors) != len(chunks):
                raise ValueError(f"{len(vectors)} vectors for {len(chunks)} chunks")
            if self._chunks and (self._vectors.count > 0) != (vectors is not None):
                raise ValueError("some chunks have vectors and some have none")
            if vectors is not None:
                self._vectors.add(vectors)
            try:
                self._database.executemany(
                    f"INSERT INTO spooled ({', '.join(CHUNK_COLUMNS)}) VALUES ({CHUNK_VALUES})",  # noqa: S608 - no value
                    map(row_of, chunks),
                )
            except sqlite3.IntegrityError as error:
                self._stopped.set()
                raise ValueError("a chunk of this path and index was added before") from error
            self._chunks += len(chunks)

    def seal(
        self,
        *,
        embedding_signature: str | None,
        main_language: str,
        commit_sha: str | None,
        source_digest: str,
    ) -> GenerationFacts:
        """Build the file, then give it its name.

        Raises:
            Abandoned: The draft was aborted, sealed, or removed by another writer.
            ValueError: There are vectors without a signature, or a signature without vectors.
        """
        with self._lock:
            self._check()
            if self._chunks and (self._vectors.count > 0) != (embedding_signature is not None):
                raise ValueError("vectors and a signature come together")
            try:
                facts = self._build(embedding_signature, main_language, commit_sha, source_digest)
                self._publish()
            except (FileNotFoundError, sqlite3.Error) as error:
                if self._workshop.exists():
                    raise
                raise Abandoned from error
            self._stopped.set()
            self._clear()
            return facts

    def stop(self) -> None:
        """Refuse all further calls but `drop`, and end a seal under way; never blocks."""
        self._stopped.set()

    def drop(self) -> None:
        """Remove what is not sealed; repeatable, and harmless once it is."""
        self.stop()
        with self._lock:
            self._clear()

    def _check(self) -> None:
        if self._stopped.is_set():
            raise Abandoned

    def _build(
        self,
        embedding_signature: str | None,
        main_language: str,
        commit_sha: str | None,
        source_digest: str,
    ) -> GenerationFacts:
        order = self._order_chunks()
        first_rows = np.array(self._column("SELECT first_chunk FROM files ORDER BY id"), np.int64)
        facts = GenerationFacts(
            embedding_signature=embedding_signature,
            main_language=main_language,
            chunk_count=len(order),
            path_count=len(first_rows),
            commit_sha=commit_sha,
            source_digest=source_digest,
        )
        terms = self._analyse(main_language)
        self._keep_facts(facts)
        self._database.execute("COMMIT")
        self._database.close()
        append_arrays(self._file, self._arrays(order, first_rows, terms))
        return facts

    def _order_chunks(self) -> Order:
        """Number files and chunks by path; tell which vector each chunk's is."""
        self._database.execute(_NUMBER_FILES)
        self._database.execute(_NUMBER_CHUNKS)
        seq = self._column("SELECT seq FROM spooled ORDER BY file_path, chunk_index")
        return np.array(seq, np.int64) - 1

    def _analyse(self, language: str) -> TermsDraft:
        terms = TermsDraft(self._workshop, language)
        for file, *columns in self._database.execute(_READ_CHUNKS):
            self._check()
            terms.add(file, chunk_of(tuple(columns)))
        terms.end()
        self._database.executemany(
            "INSERT INTO words VALUES (CAST(? AS TEXT), ?)",
            ((encoded(word), terms.words[word]) for word in sorted(terms.words)),
        )
        return terms

    def _keep_facts(self, facts: GenerationFacts) -> None:
        project = self._place.project
        self._database.execute(
            "INSERT INTO generation VALUES (CAST(? AS TEXT), CAST(? AS TEXT), ?, ?, ?, ?, ?, ?, ?)",
            (
                encoded(project.tenant),
                encoded(project.project_id),
                self._place.number,
                facts.embedding_signature,
                facts.main_language,
                facts.chunk_count,
                facts.path_count,
                facts.commit_sha,
                facts.source_digest,
            ),
        )

    def _arrays(self, order: Order, first_rows: Order, terms: TermsDraft) -> Iterator[ArraySource]:
        for array in chain(self._vectors.arrays(order, first_rows), terms.arrays()):
            self._check()
            yield array
        ends = np.append(first_rows, len(order))
        yield ArraySource("first_rows", "<i8", ends.shape, [ends])

    def _publish(self) -> None:
        self._check()
        if self._place.file.exists():
            raise Abandoned
        self._file.rename(self._place.file)
        for folder in self._place.folders():
            make_durable(folder)

    def _clear(self) -> None:
        self._database.close()
        self._vectors.close()
        shutil.rmtree(self._workshop, ignore_errors=True)

    def _column(self, statement: str) -> list[int]:
        return [value for (value,) in self._database.execute(statement)]
