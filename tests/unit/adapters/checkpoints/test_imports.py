"""Each saver without what only the other needs."""

import subprocess
import sys

import pytest


@pytest.mark.parametrize(
    ("saver", "absent"),
    [
        ("ibid.adapters.sqlite.saver", ["boto3", "botocore", "langgraph_checkpoint_dynamodb"]),
        ("ibid.adapters.dynamodb.saver", ["aiosqlite", "langgraph.checkpoint.sqlite"]),
    ],
)
def test_a_saver_is_imported_without_what_the_other_needs(saver: str, absent: list[str]) -> None:
    script = (
        "import importlib, sys; sys.modules.update(dict.fromkeys(sys.argv[2:]));"
        "importlib.import_module(sys.argv[1])"
    )

    done = subprocess.run(
        [sys.executable, "-c", script, saver, *absent], capture_output=True, check=False, text=True
    )

    assert (done.returncode, done.stderr) == (0, "")
