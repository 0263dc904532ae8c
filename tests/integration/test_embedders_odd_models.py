"""Own models that can't serve: each is refused by name, at first use, before it gives a vector."""

import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from tokenizers import Tokenizer, models, pre_tokenizers

from ibid.adapters.embedders.onnx import OnnxEmbedder
from ibid.domain.errors import EmbedderUnavailable, Misconfigured

WIDTH = 4
# Rows of a table that token ids look up: `[UNK]`, `good`, `zero`, `nan`.
ROWS = [[1.0, 2.0, 3.0, 4.0], [4.0, 3.0, 2.0, 1.0], [0.0] * WIDTH, [float("nan")] * WIDTH]


def written(
    folder: Path,
    *,
    inputs: Sequence[str] = ("input_ids", "attention_mask"),
    output: str = "last_hidden_state",
    rows: Sequence[Sequence[float]] = ROWS,
) -> OnnxEmbedder:
    """Write a model of one look-up, and a tokenizer of the table's words."""
    table = numpy_helper.from_array(np.array(rows, np.float32).reshape(-1, WIDTH), "table")
    look_up = helper.make_node("Gather", ["table", inputs[0]], [output])
    graph = helper.make_graph(
        [look_up],
        "look-up",
        [helper.make_tensor_value_info(name, TensorProto.INT64, ["b", "s"]) for name in inputs],
        [helper.make_tensor_value_info(output, TensorProto.FLOAT, ["b", "s", WIDTH])],
        [table],
    )
    model = helper.make_model(
        graph, ir_version=10, opset_imports=[helper.make_operatorsetid("", 17)]
    )
    onnx.save(model, folder / "model.onnx")
    vocabulary = {word: place for place, word in enumerate(["[UNK]", "good", "zero", "nan"])}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))  # noqa: S106 - no secret
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.save(str(folder / "tokenizer.json"))
    settings = {"pooling": "mean", "max_tokens": 16}
    (folder / "ibid-embedder.json").write_text(json.dumps(settings))
    return OnnxEmbedder(folder)


@asynccontextmanager
async def closing(embedder: OnnxEmbedder) -> AsyncIterator[OnnxEmbedder]:
    try:
        yield embedder
    finally:
        await embedder.aclose()


async def test_a_small_model_of_the_right_form_serves(tmp_path: Path) -> None:
    async with closing(written(tmp_path)) as embedder:
        (vector, empty) = await embedder.embed_passages(["good", ""])

    norm = np.linalg.norm([4.0, 3.0, 2.0, 1.0])
    assert list(vector) == pytest.approx([4.0 / norm, 3.0 / norm, 2.0 / norm, 1.0 / norm])
    assert len(empty) == WIDTH


@pytest.mark.parametrize("inputs", [("tokens",), ("input_ids", "pixels")])
async def test_a_model_with_other_inputs_is_refused(tmp_path: Path, inputs: Sequence[str]) -> None:
    async with closing(written(tmp_path, inputs=inputs)) as embedder:
        with pytest.raises(Misconfigured, match="its inputs must be input_ids"):
            await embedder.ready()


async def test_a_model_without_token_states_is_refused(tmp_path: Path) -> None:
    async with closing(written(tmp_path, output="pooled")) as embedder:
        with pytest.raises(Misconfigured, match="an output last_hidden_state"):
            await embedder.ready()


async def test_a_model_that_fails_on_its_first_text_is_refused(tmp_path: Path) -> None:
    async with closing(written(tmp_path, rows=[])) as embedder:
        with pytest.raises(Misconfigured, match="fails on a text"):
            await embedder.ready()


async def test_a_model_smaller_than_its_tokenizer_fails_by_batch(tmp_path: Path) -> None:
    async with closing(written(tmp_path, rows=ROWS[:2])) as embedder:
        with pytest.raises(EmbedderUnavailable, match="failed on a batch"):
            await embedder.embed_passages(["nan"])


@pytest.mark.parametrize("word", ["zero", "nan"])
async def test_a_vector_without_a_direction_is_refused(tmp_path: Path, word: str) -> None:
    async with closing(written(tmp_path)) as embedder:
        with pytest.raises(EmbedderUnavailable, match="without a direction"):
            await embedder.embed_passages([word])
