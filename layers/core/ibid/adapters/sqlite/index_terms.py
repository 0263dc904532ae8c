"""The terms of a generation in the making: of its chunks, and of its files as wholes."""

from collections.abc import Iterator
from itertools import chain
from pathlib import Path

import numpy as np

from ibid.adapters.sqlite.index_analysis import Numbers, WordNumbers, header_words, text_words
from ibid.adapters.sqlite.index_bm25 import weighed
from ibid.adapters.sqlite.index_file import ArraySource
from ibid.adapters.sqlite.index_postings import Keys, Postings, pair_keys, word_keys
from ibid.domain.passages import Chunk


class _Rows:
    """Postings row by row, and the lengths that BM25 divides by."""

    def __init__(self, folder: Path, name: str) -> None:
        self._folder = folder
        self._name = name
        self._postings = Postings(folder, name)
        self._lengths: list[int] = []

    def add(self, words: Numbers, *pairs: Keys) -> None:
        """Add the next row's single words, which make its length, and its pairs, which don't."""
        self._postings.add(len(self._lengths), np.concatenate([word_keys(words), *pairs]))
        self._lengths.append(len(words))

    def arrays(self) -> Iterator[ArraySource]:
        return weighed(self._postings, self._lengths, self._folder, self._name)


class TermsDraft:
    """Analyses chunks, a file's one after the other.

    Attributes:
        words: Every word met, with its number.
    """

    def __init__(self, folder: Path, language: str) -> None:
        self.words = WordNumbers()
        self._language = language
        self._chunks = _Rows(folder, "chunks")
        self._files = _Rows(folder, "files")
        self._file = 0
        self._file_words: list[Numbers] = []

    def add(self, file: int, chunk: Chunk) -> None:
        """Add the next chunk, of the same file as the one before or of the next."""
        if file != self._file:
            self.end()
            self._file = file
        header = self.words.of(header_words(chunk, language=self._language))
        text = self.words.of(text_words(chunk, language=self._language))
        self._chunks.add(np.concatenate([header, text]), pair_keys(text))
        self._file_words.append(text)

    def end(self) -> None:
        """Say that the last file has no more chunks."""
        if self._file_words:
            self._files.add(np.concatenate(self._file_words))
            self._file_words = []

    def arrays(self) -> Iterator[ArraySource]:
        """Give what `Bm25` reads as `chunks` and as `files`."""
        return chain(self._chunks.arrays(), self._files.arrays())
