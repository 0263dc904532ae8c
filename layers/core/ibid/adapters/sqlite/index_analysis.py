"""Which words a chunk is found by, as numbers."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from ibid.domain.analysis import analyse
from ibid.domain.chunks_header import bm25_header
from ibid.domain.passages import Chunk

Numbers = npt.NDArray[np.uint32]


class WordNumbers(dict[str, int]):
    """Numbers words from 1 in the order they are met."""

    def __missing__(self, word: str) -> int:
        number = self[word] = len(self) + 1
        return number

    def of(self, words: Sequence[str]) -> Numbers:
        """Number some words, in their order."""
        return np.fromiter(map(self.__getitem__, words), np.uint32, len(words))


def header_words(chunk: Chunk, *, language: str) -> list[str]:
    """Analyse a chunk's path and symbol."""
    return analyse(bm25_header(chunk.file_path, chunk.symbol), language=language)


def text_words(chunk: Chunk, *, language: str) -> list[str]:
    """Analyse a chunk's lines.

    The language is the index's, whatever the chunk's own: function words mistake code for Italian,
    and a question, which is analysed once, must give the words that every chunk gave.
    """
    return analyse(chunk.content, language=language)
