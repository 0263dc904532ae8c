import math
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ibid.adapters.sqlite.index_bm25 import Bm25, weighed
from ibid.adapters.sqlite.index_postings import (
    Postings,
    pair_key,
    pair_keys,
    word_key,
    word_keys,
)

ROWS = st.lists(st.lists(st.integers(1, 2**32 - 1) | st.integers(1, 5), max_size=12), max_size=12)


@given(rows=ROWS, run=st.integers(1, 40), merge=st.integers(1, 40))
def test_every_posting_comes_back_once_whatever_the_runs_and_batches(
    rows: list[list[int]], run: int, merge: int
) -> None:
    expected = {
        word_key(word): {row: words.count(word) for row, words in enumerate(rows) if word in words}
        for word in sorted({word for words in rows for word in words})
    }

    with TemporaryDirectory() as folder:
        postings = Postings(Path(folder), "rows", run_postings=run)
        for row, words in enumerate(rows):
            postings.add(row, word_keys(np.array(words, np.uint32)))
        batches = list(postings.batches(postings=merge))

    found: list[tuple[int, dict[int, int]]] = []
    for batch in batches:
        ends = np.cumsum(batch.frequencies)
        for key, start, end in zip(
            batch.keys.tolist(), (ends - batch.frequencies).tolist(), ends.tolist(), strict=True
        ):
            of_key = batch.rows[start:end].tolist()
            assert of_key == sorted(of_key)
            found.append((key, dict(zip(of_key, batch.counts[start:end].tolist(), strict=True))))
    assert found == list(expected.items())


def test_many_postings_are_merged_in_several_batches(tmp_path: Path) -> None:
    draw = np.random.default_rng(3)
    rows = [draw.integers(1, 5_000, 200).astype(np.uint32) for _ in range(100)]
    postings = Postings(tmp_path, "rows", run_postings=3_000)
    for row, words in enumerate(rows):
        postings.add(row, word_keys(words))

    batches = list(postings.batches(postings=2_048))

    assert len(batches) > 5
    keys = np.concatenate([batch.keys for batch in batches])
    assert (keys[1:] > keys[:-1]).all()
    assert sum(int(batch.counts.sum()) for batch in batches) == 20_000
    distinct = Counter(int(word) for words in rows for word in np.unique(words))
    frequencies = np.concatenate([batch.frequencies for batch in batches])
    assert {word_key(word): df for word, df in distinct.items()} == dict(
        zip(keys.tolist(), frequencies.tolist(), strict=True)
    )


def test_pairs_and_words_are_different_terms() -> None:
    numbers = np.array([7, 1, 2**32 - 1], np.uint32)

    assert word_keys(numbers).tolist() == [word_key(7), word_key(1), word_key(2**32 - 1)]
    assert pair_keys(numbers).tolist() == [pair_key(7, 1), pair_key(1, 2**32 - 1)]
    assert pair_keys(numbers[:1]).tolist() == pair_keys(numbers[:0]).tolist() == []
    assert len({*word_keys(numbers).tolist(), *pair_keys(numbers).tolist()}) == 5


def test_a_term_that_no_row_holds_scores_nothing(tmp_path: Path) -> None:
    postings = Postings(tmp_path, "rows")
    postings.add(0, word_keys(np.array([2, 2, 9], np.uint32)))
    arrays = {
        source.name: np.concatenate(list(source.pieces))
        for source in weighed(postings, [3], tmp_path, "rows")
    }
    index = Bm25.read(arrays, "rows", 1)

    for absent in (word_key(1), word_key(5), word_key(10), pair_key(2, 9)):
        assert index.frequency(absent) == 0
        assert index.scores({absent: 1.0}).tolist() == [0.0]
    assert index.frequency(word_key(2)) == 1
    idf = math.log(1 + 0.5 / 1.5)
    assert index.scores({word_key(2): 2.0}).tolist() == pytest.approx([2 * idf * 2 / 3.2])


def test_no_rows_give_empty_arrays(tmp_path: Path) -> None:
    arrays = {
        source.name: (source.shape, list(source.pieces))
        for source in weighed(Postings(tmp_path, "rows"), [], tmp_path, "rows")
    }

    assert set(arrays) == {"rows.keys", "rows.ends", "rows.rows", "rows.weights"}
    assert all(entry == ((0,), []) for entry in arrays.values())
