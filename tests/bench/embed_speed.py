"""The bare embedder's rate: tokenizer and session in a plain loop, none of the product's code.

`measure` is what "at least 0.9 of the bare embedder's rate" divides by, and `count_tokens` turns
the product's time on the same texts into tokens a second. The files are the product's own.
"""

import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnxruntime as ort  # type: ignore[import-untyped]  # it ships no types
from tokenizers import Tokenizer

from ibid.adapters.embedders.minilm import MAX_TOKENS
from ibid.adapters.embedders.minilm_files import MODEL, TOKENIZER, minilm_files
from ibid.adapters.embedders.threads import default_threads

_BATCH = 4


def count_tokens(texts: Sequence[str]) -> int:
    """Count what the default model reads of the texts: each cut to its longest input."""
    return sum(map(len, _ids(texts)))


def measure(
    texts: Sequence[str], *, cache: Path | None = None, as_shipped: bool = False
) -> dict[str, float]:
    """Embed texts once, sorted, in batches of four, by ONNX Runtime's own defaults.

    Args:
        texts: At least one.
        cache: Where the converted model is, the product's cache; None converts it anew.
        as_shipped: Take the unconverted model.

    Returns:
        `texts`, `tokens`, `seconds` (without loading), `tokens_per_s`, `texts_per_s`.
    """
    if cache is None:
        with tempfile.TemporaryDirectory() as folder:
            return measure(texts, cache=Path(folder), as_shipped=as_shipped)
    options = ort.SessionOptions()
    options.intra_op_num_threads = default_threads()
    options.log_severity_level = 3
    model = MODEL.path() if as_shipped else minilm_files(cache).model
    session = ort.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
    _run(session, _ids(["warm"]))
    begun = time.perf_counter()
    ids = sorted(_ids(texts), key=len)
    for start in range(0, len(ids), _BATCH):
        _run(session, ids[start : start + _BATCH])
    seconds = time.perf_counter() - begun
    tokens = sum(map(len, ids))
    return {
        "texts": len(texts),
        "tokens": tokens,
        "seconds": seconds,
        "tokens_per_s": tokens / seconds,
        "texts_per_s": len(texts) / seconds,
    }


def _ids(texts: Sequence[str]) -> list[list[int]]:
    tokenizer = Tokenizer.from_file(str(TOKENIZER.path()))
    tokenizer.no_padding()
    tokenizer.enable_truncation(MAX_TOKENS)
    return [encoding.ids for encoding in tokenizer.encode_batch(list(texts))]


def _run(session: ort.InferenceSession, batch: Sequence[Sequence[int]]) -> None:
    """Run one batch and pool it, which is the least that gives vectors."""
    shape = (len(batch), max(map(len, batch)))
    ids, mask = np.zeros(shape, np.int64), np.zeros(shape, np.int64)
    for row, tokens in enumerate(batch):
        ids[row, : len(tokens)] = tokens
        mask[row, : len(tokens)] = 1
    feed = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
    states = session.run(["last_hidden_state"], feed)[0]
    pooled = (states * mask[..., None]).sum(axis=1)
    _ = pooled / np.linalg.norm(pooled, axis=1, keepdims=True)


if __name__ == "__main__":
    package = Path(__file__).parents[2] / "layers" / "core" / "ibid"
    sources = "\n".join(path.read_text() for path in sorted(package.rglob("*.py")))
    sample = [sources[start : start + 750] for start in range(0, min(len(sources), 150_000), 750)]
    with tempfile.TemporaryDirectory() as shared:
        for shipped in (True, False):
            name = "as shipped" if shipped else "converted"
            print(name, measure(sample, cache=Path(shared), as_shipped=shipped))
