"""Reads one sealed generation: any number of threads at once, all calls block."""

import threading
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ibid.adapters.sqlite.index_bm25 import Bm25
from ibid.adapters.sqlite.index_file import FaultyFile, map_arrays
from ibid.adapters.sqlite.index_place import GenerationPlace
from ibid.adapters.sqlite.index_postings import pair_key, word_key
from ibid.adapters.sqlite.index_ranking import best, best_positive
from ibid.adapters.sqlite.index_rows import CHUNK_COLUMNS, chunk_of, connect, encoded
from ibid.adapters.sqlite.index_schema import make_current
from ibid.domain.passages import Chunk, Vector
from ibid.ports.index import Candidate, Candidates, GenerationFacts, IndexQuery, PathList

_TOP: Final = 10
_ROWS_FOR_TWO: Final = 10_000  # from here a second thread saves more than it costs
_COLUMNS: Final = ", ".join(("path", *CHUNK_COLUMNS[1:]))
_CHUNKS: Final = f"SELECT {_COLUMNS} FROM chunks JOIN files ON files.id = file_id"  # noqa: S608 - column names of this package

_Rows = npt.NDArray[np.int64]
_Floats32 = npt.NDArray[np.float32]


class SealedGeneration:
    """An open file: its database, and its arrays where they lie.

    Attributes:
        facts: What was said when it was sealed.
    """

    def __init__(self, place: GenerationPlace) -> None:
        """Open and check the file.

        Raises:
            FileNotFoundError: There is none.
            FaultyFile: It is damaged, or another generation's.
            SchemaTooNew: A newer Ibid wrote it.
            GenerationGone: It is too old to be migrated.
        """
        make_current(place.file)
        arrays = map_arrays(place.file)
        self._lock = threading.Lock()
        self._second_half = ThreadPoolExecutor(1, thread_name_prefix="index-cosines")
        self._database = connect(place.file, sealed=True)
        try:
            self.facts = self._facts(place)
        except BaseException:
            self._database.close()
            raise
        self._vectors: _Floats32 | None = arrays.get("vectors")
        self._means: _Floats32 | None = arrays.get("means")
        self._first_rows: _Rows = arrays["first_rows"]
        self._chunk_bm25 = Bm25.read(arrays, "chunks", self.facts.chunk_count)
        self._file_bm25 = Bm25.read(arrays, "files", self.facts.path_count)

    def close(self) -> None:
        """Close the database; the mapping ends with the last array in use."""
        self._second_half.shutdown(wait=False)
        with self._lock:
            self._database.close()

    def candidates(self, query: IndexQuery) -> Candidates:
        """Score every chunk, and give the union of both top lists.

        Raises:
            FaultyFile: The query's vector is not as wide as the generation's.
        """
        low, high = self._rows_under(query.path_prefix or "")
        keys = self._keys(query.terms)
        singles = {term: weight for term, weight in query.terms.items() if " " not in term}
        bm25 = self._chunk_bm25.scores(_weights(keys, query.terms))[low:high]
        cosine = self._cosines(query.vector, slice(low, high))
        lexical = best_positive(bm25, max(query.depth, _TOP))
        found = np.union1d(lexical[: query.depth], best(cosine, query.depth))
        files = np.searchsorted(self._first_rows, found + low, side="right") - 1
        scores = zip(
            bm25[found].tolist(),
            self._file_bm25.scores(_weights(keys, singles))[files].tolist(),
            (cosine[found] if len(cosine) else np.zeros(len(found))).tolist(),
            self._file_cosines(query.vector, files).tolist(),
            (self._first_rows[files + 1] - self._first_rows[files]).tolist(),
            strict=True,
        )
        return Candidates(
            items=[
                Candidate(
                    chunk=chunk,
                    bm25=chunk_bm25,
                    document_bm25=file_bm25,
                    cosine=chunk_cosine,
                    document_cosine=file_cosine,
                    file_chunks=file_chunks,
                )
                for chunk, (chunk_bm25, file_bm25, chunk_cosine, file_cosine, file_chunks) in zip(
                    self._chunks((found + low).tolist()), scores, strict=True
                )
            ],
            top_bm25=bm25[lexical[:_TOP]].tolist(),
            document_frequency={
                term: self._chunk_bm25.frequency(keys[term]) if term in keys else 0
                for term in singles
            },
            chunk_count=self.facts.chunk_count,
        )

    def scroll(
        self, path_prefix: str, after: int, limit: int
    ) -> tuple[Sequence[Chunk], int | None]:
        """Give chunks under a prefix in order.

        Args:
            path_prefix: May be empty.
            after: How many to leave out.
            limit: Most to give.

        Returns:
            The chunks, and how many a next call is to leave out, or None at the end.
        """
        low, high = self._rows_under(path_prefix)
        end = min(low + after + limit, high)
        chunks = self._chunks(range(low + after, end))  # none if `after` is beyond the end
        return chunks, end - low if end < high else None

    def paths(self, prefix: str, limit: int) -> PathList:
        """List paths under a prefix in order."""
        first, last = self._files_under(prefix)
        found = self._read(
            "SELECT path FROM files WHERE id >= ? AND id < ? ORDER BY id",
            (first, min(last, first + limit)),
        )
        return PathList(paths=[path for (path,) in found], truncated=last - first > limit)

    def vectors(self, content_hashes: Iterable[str]) -> Mapping[str, Vector]:
        """Give the vectors of the chunks with one of these hashes."""
        found: dict[str, Vector] = {}
        if self._vectors is None:
            return found
        with self._lock:
            for content_hash in content_hashes:
                row = self._database.execute(
                    "SELECT id FROM chunks WHERE content_hash = CAST(? AS TEXT) LIMIT 1",
                    (encoded(content_hash),),
                ).fetchone()
                if row is not None:
                    found[content_hash] = Vector("f", self._vectors[row[0] - 1].tobytes())
        return found

    def _facts(self, place: GenerationPlace) -> GenerationFacts:
        (row,) = self._read("SELECT * FROM generation")
        tenant, project_id, number, signature, language, chunks, paths, commit, digest = row
        if (tenant, project_id, number) != (
            place.project.tenant,
            place.project.project_id,
            place.number,
        ):
            raise FaultyFile("it is another generation's")
        return GenerationFacts(
            embedding_signature=signature,
            main_language=language,
            chunk_count=chunks,
            path_count=paths,
            commit_sha=commit,
            source_digest=digest,
        )

    def _keys(self, terms: Iterable[str]) -> Mapping[str, int]:
        """Find the terms' keys; a word that no chunk holds has none, nor has a pair with it."""
        words = sorted({word for term in terms for word in term.split(" ")})
        marks = ", ".join(["CAST(? AS TEXT)"] * len(words))
        numbers: dict[str, int] = dict(
            self._read(
                f"SELECT word, id FROM words WHERE word IN ({marks})",  # noqa: S608 - marks only
                [encoded(word) for word in words],
            )
        )
        keys: dict[str, int] = {}
        for term in terms:
            match [numbers.get(word) for word in term.split(" ")]:
                case [int(word)]:
                    keys[term] = word_key(word)
                case [int(first), int(second)]:
                    keys[term] = pair_key(first, second)
                case _:
                    pass
        return keys

    def _cosines(self, vector: Vector | None, rows: slice) -> _Floats32:
        """Multiply the vectors of some rows with the query's; nothing where either has none."""
        if vector is None or self._vectors is None:
            return np.empty(0, np.float32)
        if len(vector) != self._vectors.shape[1]:
            raise FaultyFile(
                f"its vectors are {self._vectors.shape[1]} wide, the query's {len(vector)}"
            )
        matrix = self._vectors[rows]
        if len(matrix) < _ROWS_FOR_TWO:
            return _products(matrix, vector)
        middle = len(matrix) // 2
        second = self._second_half.submit(_products, matrix[middle:], vector)
        return np.concatenate([_products(matrix[:middle], vector), second.result()])

    def _file_cosines(self, vector: Vector | None, files: _Rows) -> _Floats32:
        if vector is None or self._means is None:
            return np.zeros(len(files), np.float32)
        distinct, where = np.unique(files, return_inverse=True)
        return _products(self._means[distinct], vector)[where]

    def _chunks(self, rows: Sequence[int]) -> list[Chunk]:
        """Read the chunks of some rows, which rise."""
        marks = ", ".join("?" * len(rows))
        return [
            chunk_of(columns)
            for columns in self._read(
                f"{_CHUNKS} WHERE chunks.id IN ({marks}) ORDER BY chunks.id",
                [row + 1 for row in rows],
            )
        ]

    def _rows_under(self, path_prefix: str) -> tuple[int, int]:
        first, last = self._files_under(path_prefix)
        return int(self._first_rows[first]), int(self._first_rows[last])

    def _files_under(self, path_prefix: str) -> tuple[int, int]:
        """Tell which files' paths start with a prefix: the first, and one past the last."""
        if not path_prefix:
            return 0, self.facts.path_count
        start = encoded(path_prefix)
        # UTF-8 has no byte 0xff, so this stands behind all that begins with the prefix
        return self._first_file(start), self._first_file(start + b"\xff")

    def _first_file(self, path: bytes) -> int:
        """Tell which is the first file whose path is not below one."""
        found = self._read(
            "SELECT id FROM files WHERE path >= CAST(? AS TEXT) ORDER BY path LIMIT 1", (path,)
        )
        return found[0][0] if found else self.facts.path_count

    def _read(self, statement: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        with self._lock:
            return self._database.execute(statement, values).fetchall()


def _products(rows: _Floats32, vector: Vector) -> _Floats32:
    # As fast as `@`, which reads memory no faster, but without BLAS's threads: where another
    # process holds a core they wait for each other, ten times as long as the product takes
    products: _Floats32 = np.vecdot(rows, np.frombuffer(vector, np.float32))
    return products


def _weights(keys: Mapping[str, int], terms: Mapping[str, float]) -> Mapping[int, float]:
    return {keys[term]: weight for term, weight in terms.items() if term in keys}
