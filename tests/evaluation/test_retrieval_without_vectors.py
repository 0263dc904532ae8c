"""Figures that BM25 alone must reach through the product's own index and search."""

import os
from pathlib import Path

import pytest

from tests.bench.quality import measure_files, measure_sets

pytestmark = [
    pytest.mark.shared,
    pytest.mark.skipif("IBID_SHARED" not in os.environ, reason="IBID_SHARED names no data"),
]


@pytest.mark.parametrize(("name", "least"), [("anthropic-codebase", 0.72), ("xquad-es", 0.96)])
def test_passages_are_ranked_as_well_as_measured(name: str, least: float, tmp_path: Path) -> None:
    shared = Path(os.environ["IBID_SHARED"])

    [row] = measure_sets(shared, embedder=None, vectors=tmp_path, names=[name])

    assert row["ndcg@10"] >= least


def test_files_are_ranked_as_well_as_measured(tmp_path: Path) -> None:
    shared = Path(os.environ["IBID_SHARED"])

    passages, files = measure_files(shared, embedder=None, vectors=tmp_path, names=["requests"])

    assert (passages["by"], files["by"]) == ("passages", "files")
    assert min(passages["mrr"], files["mrr"]) >= 0.85
