"""One loaded ONNX model: token ids in, unit vectors out. Imports onnxruntime: load it late."""

from array import array
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import onnxruntime as ort  # type: ignore[import-untyped]  # it ships no types
from onnxruntime.capi import (  # type: ignore[import-untyped]  # likewise
    onnxruntime_pybind11_state as ort_errors,
)
from tokenizers import Tokenizer

from ibid.domain.errors import EmbedderUnavailable, Misconfigured
from ibid.domain.passages import Vector

# ONNX Runtime's errors have no base class of their own.
_ORT_ERRORS: tuple[type[Exception], ...] = tuple(
    error
    for error in vars(ort_errors).values()
    if isinstance(error, type) and issubclass(error, Exception)
)
_INPUTS = {"input_ids", "attention_mask", "token_type_ids"}
_OUTPUT = "last_hidden_state"
_STATES_RANK = 3
# A text is cut to this many characters a token before it is tokenised, so that a line of a
# megabyte costs no second; real text has 3 to 6.
_CHARACTERS_A_TOKEN = 64


class OnnxSession:
    """A tokenizer and a session; every method may be called from several threads at once."""

    def __init__(
        self,
        model: Path,
        tokenizer: Path,
        *,
        pooling: Literal["mean", "cls"],
        max_tokens: int,
        threads: int,
    ) -> None:
        """Load both files.

        Raises:
            Misconfigured: One can't be used; the message names it and says why.
        """
        self._pooling = pooling
        self._max_characters = max_tokens * _CHARACTERS_A_TOKEN
        self._tokenizer = _load_tokenizer(tokenizer, max_tokens)
        self._session = _load_session(model, threads)
        self._inputs = {node.name for node in self._session.get_inputs()}
        if "input_ids" not in self._inputs or not self._inputs <= _INPUTS:
            raise Misconfigured(
                f"{model}: its inputs must be input_ids, attention_mask and at most"
                f" token_type_ids, not {', '.join(sorted(self._inputs))}"
            )
        self._output = _states_output(model, self._session)
        try:
            self.width: int = self._states(_padded(self.tokenise(["a text"]))).shape[-1]
        except _ORT_ERRORS as error:
            raise Misconfigured(f"{model} fails on a text") from error

    def tokenise(self, texts: Sequence[str]) -> list[list[int]]:
        """Turn texts into ids, special tokens included, each cut to the model's longest input."""
        # The tokenizer takes no lone surrogate.
        cut = [text[: self._max_characters].encode("utf-8", "replace").decode() for text in texts]
        # A tokenizer without special tokens makes nothing of an empty text: it gets token 0.
        return [encoding.ids or [0] for encoding in self._tokenizer.encode_batch(cut)]

    def embed(self, ids: Sequence[Sequence[int]]) -> list[Vector]:
        """Embed one batch; memory grows with its size times its longest text.

        Raises:
            EmbedderUnavailable: The runtime failed.
        """
        padded = _padded(ids)
        try:
            states = self._states(padded)
        except _ORT_ERRORS as error:
            raise EmbedderUnavailable("the embedding model failed on a batch") from error
        if self._pooling == "cls":
            pooled = states[:, 0]
        else:
            # The sum is enough: what follows divides by the length anyway.
            pooled = np.matmul(padded[1][:, None, :].astype(np.float32), states)[:, 0]
        norms = np.linalg.norm(pooled, axis=1, keepdims=True)
        if not np.all(np.isfinite(norms)) or not np.all(norms):
            raise EmbedderUnavailable("the embedding model gave a vector without a direction")
        return [array("f", row.tobytes()) for row in (pooled / norms).astype(np.float32)]

    def _states(
        self, padded: tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]
    ) -> npt.NDArray[np.float32]:
        ids, mask = padded
        feed = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        states: npt.NDArray[np.float32] = self._session.run(
            [self._output], {name: feed[name] for name in self._inputs}
        )[0]
        return states


def _padded(
    ids: Sequence[Sequence[int]],
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    shape = (len(ids), max(map(len, ids)))
    padded, mask = np.zeros(shape, np.int64), np.zeros(shape, np.int64)
    for row, tokens in enumerate(ids):
        padded[row, : len(tokens)] = tokens
        mask[row, : len(tokens)] = 1
    return padded, mask


def _load_tokenizer(path: Path, max_tokens: int) -> Tokenizer:
    try:
        tokenizer = Tokenizer.from_file(str(path))
    except Exception as error:  # tokenizers raises nothing narrower
        raise Misconfigured(f"{path} is no tokenizer file") from error
    # Such files often carry the export's own padding and truncation (128 tokens, say).
    tokenizer.no_padding()
    tokenizer.enable_truncation(max_tokens)
    return tokenizer


def _load_session(path: Path, threads: int) -> Any:  # noqa: ANN401 - onnxruntime has no types
    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = 3
    # Nearly every batch has a shape of its own, and a plan of the memory is kept for each.
    options.enable_mem_pattern = False
    # A spinning pool takes the cores from everything else that runs between two operators.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    try:
        return ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    except _ORT_ERRORS as error:
        raise Misconfigured(f"{path} can't be loaded by ONNX Runtime") from error


def _states_output(path: Path, session: Any) -> str:  # noqa: ANN401 - as above
    ranks = {node.name: len(node.shape) for node in session.get_outputs()}
    if ranks.get(_OUTPUT) != _STATES_RANK:
        raise Misconfigured(f"{path}: it must have an output {_OUTPUT} of token states")
    return _OUTPUT
