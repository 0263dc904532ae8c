"""The converted MiniLM on disk: made once by a child process, found again by digest."""

import contextlib
import importlib.util
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from ibid.adapters.embedders.digests import file_digest

# Raise it with every change of `minilm_convert`: it is part of the embedder's signature.
RECIPE = "int8-2"
_CONVERT_TIMEOUT_S = 300
_DIGEST_DIGITS = 16


class NotConverted(Exception):
    """The conversion can't be done here; the message says why."""


def can_convert(cache: Path, *, source_digest: str) -> bool:
    """Tell whether `converted_model` is going to succeed, as far as a look can tell."""
    if _failure(cache, source_digest).exists():
        return False
    if any(cache.glob(f"{_prefix(source_digest)}*.onnx")):
        return True
    there = next(folder for folder in (cache, *cache.absolute().parents) if folder.exists())
    return (
        there.is_dir()
        and os.access(there, os.W_OK | os.X_OK)
        and importlib.util.find_spec("onnx") is not None
    )


def converted_model(source: Path, *, source_digest: str, cache: Path) -> Path:
    """Return the converted model, converting it if the cache has no sound one.

    The file's name carries its own digest, so one that was damaged is made again. Several
    processes may do this at once: each writes a file of its own and renames it. A conversion
    that failed is noted in the cache and not tried again, lest the vector space change from one
    start to the next.

    Raises:
        NotConverted: The cache can't be written, or the conversion fails or has failed.
    """
    failure = _failure(cache, source_digest)
    if failure.exists():
        raise NotConverted(f"it failed before; remove {failure} to try again")
    prefix = _prefix(source_digest)
    for path in sorted(cache.glob(f"{prefix}*.onnx")):
        if path.name == f"{prefix}{file_digest(path)[:_DIGEST_DIGITS]}.onnx":
            return path
    try:
        cache.mkdir(parents=True, exist_ok=True)
        # The child's unfinished files have a folder of their own, on the cache's file system.
        with tempfile.TemporaryDirectory(dir=cache, prefix="converting-") as folder:
            made = Path(folder) / "converted.onnx"
            _convert(source, made)
            path = cache / f"{prefix}{file_digest(made)[:_DIGEST_DIGITS]}.onnx"
            made.replace(path)
    except OSError as error:
        raise NotConverted(f"{cache}: {error.strerror}") from error
    except NotConverted as error:
        with contextlib.suppress(OSError):  # then it is tried again, which is only slow
            failure.write_text(f"{error}\n", encoding="utf-8")
        raise
    return path


def _prefix(source_digest: str) -> str:
    return f"minilm-{source_digest[:_DIGEST_DIGITS]}-{RECIPE}-"


def _failure(cache: Path, source_digest: str) -> Path:
    return cache / f"{_prefix(source_digest)}failed.txt"


def _convert(source: Path, target: Path) -> None:
    """Convert in a child process, whose 500 MB return to the machine when it ends."""
    command = [sys.executable, "-m", "ibid.adapters.embedders.minilm_convert"]
    try:
        child = subprocess.run(  # noqa: S603 - our own module, on files of our own
            [*command, str(source), str(target)],
            check=False,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_CONVERT_TIMEOUT_S,
        )
    except subprocess.TimeoutExpired as error:
        raise NotConverted(f"no end within {_CONVERT_TIMEOUT_S} s") from error
    if child.returncode != 0:
        lines = child.stderr.decode(errors="replace").strip().splitlines() or ["no message"]
        raise NotConverted(f"exit status {child.returncode}: {lines[-1]}")
