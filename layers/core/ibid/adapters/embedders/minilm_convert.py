"""Converts MiniLM from int8 in storage only to int8 arithmetic: `python -m … SOURCE TARGET`.

The model as shipped casts its int8 weights back and multiplies in float32. ONNX Runtime's basic
optimisation folds those casts into float32 weights; dynamic quantisation then makes integer
multiplications of them, a scale a channel. ONNX Runtime itself fuses the rest when it loads the
result, so no other tool is needed.
"""

import os
import sys
from pathlib import Path

import onnxruntime as ort  # type: ignore[import-untyped]  # it ships no types
from onnxruntime.quantization import (  # type: ignore[import-untyped]  # likewise
    QuantType,
    quantize_dynamic,
)


def convert(source: Path, target: Path) -> None:
    """Write `target`, durably; unfinished work lies beside it and is the caller's to remove."""
    folded = target.with_suffix(".folded.onnx")
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_BASIC
    options.optimized_model_filepath = str(folded)
    options.log_severity_level = 3
    ort.InferenceSession(str(source), options, providers=["CPUExecutionProvider"])
    quantize_dynamic(
        folded,
        target,
        weight_type=QuantType.QInt8,
        per_channel=True,
        # Products of two activations stay as they are: only weights are quantised ahead.
        extra_options={"MatMulConstBOnly": True},
    )
    with target.open("rb") as file:
        os.fsync(file.fileno())


if __name__ == "__main__":
    convert(Path(sys.argv[1]), Path(sys.argv[2]))
