"""How long `ibid.bootstrap.runtime` takes to import, beside its bare third-party imports."""

import ast
import json
import statistics
import subprocess
import sys
from pathlib import Path

ROUNDS = 7
LOADED = """
import json, sys
import ibid.bootstrap.runtime
print(json.dumps({n: m.__file__ for n, m in sys.modules.items() if n.split(".")[0] == "ibid"}))
"""
TIMED = """
import time
start = time.perf_counter()
{imports}
print(time.perf_counter() - start)
"""


def _run(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    return done.stdout


def third_party() -> list[str]:
    """List what the loaded modules of ibid import at their top, other than ibid."""
    found: set[str] = set()
    for path in json.loads(_run(LOADED)).values():
        for node in ast.parse(Path(path).read_text()).body:
            if isinstance(node, ast.Import):
                found |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                found.add(node.module)
    return sorted(name for name in found if name.split(".")[0] != "ibid")


def measure() -> dict[str, float]:
    """Import both ways in fresh interpreters, in turn, and compare the medians."""
    bare = TIMED.format(imports="\n".join(f"import {name}" for name in third_party()))
    whole = TIMED.format(imports="import ibid.bootstrap.runtime")
    _run(bare), _run(whole)
    times: dict[str, list[float]] = {"bare": [], "whole": []}
    for _ in range(ROUNDS):
        times["bare"].append(float(_run(bare)))
        times["whole"].append(float(_run(whole)))
    bare_s, whole_s = (statistics.median(times[name]) for name in ("bare", "whole"))
    return {"bare_s": bare_s, "whole_s": whole_s, "ratio": whole_s / bare_s}
