"""The app records are read and written by functions that carry no graph."""

import subprocess
import sys


def test_the_records_are_imported_without_a_graph_or_its_saver() -> None:
    absent = ["langgraph", "langchain_core", "langgraph_checkpoint_dynamodb", "zstandard"]
    script = (
        "import importlib, sys; sys.modules.update(dict.fromkeys(sys.argv[2:]));"
        "importlib.import_module(sys.argv[1])"
    )
    module = "ibid.adapters.dynamodb.records.records"

    done = subprocess.run(
        [sys.executable, "-c", script, module, *absent], capture_output=True, check=False, text=True
    )

    assert (done.returncode, done.stderr) == (0, "")
