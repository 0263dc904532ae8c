"""Why a file is left out of the index: the reasons, and the rules by name and by content.

A reason is the key of a count in a job's statistics. A folder that is left out counts once,
whatever is in it; `.git` is never counted.
"""

import re
from collections.abc import Sequence
from enum import StrEnum
from pathlib import PurePosixPath

MAX_FILE_BYTES = 1_000_000
LONGEST_LINE = 50_000
MINIFIED_MEAN = 400
MINIFIED_FROM = 4_000


class SkipReason(StrEnum):
    """Every reason there is.

    Attributes:
        GITIGNORED: A `.gitignore` on the way to it says so, or `.git/info/exclude`.
        VENDORED: A folder of somebody else's code, of build output or of caches.
        MINIFIED: Made for machines: by its name, or by the length of its lines.
        LOCK_FILE: Versions that a package manager resolved.
        SOURCE_MAP: `*.map`.
        SECRET: A private key or an environment file, by its name.
        BINARY: A NUL in the first 8 KB, or an ending that says so.
        TOO_LARGE: Over 1 MB.
        EMPTY: No line with more than white space.
        SYMLINK: Never followed.
        SUBMODULE: Another repository.
        SPECIAL: A device, a pipe or a socket.
        UNREADABLE: The system refused to open it, or it vanished.
        ODD_NAME: Control characters or no UTF-8 in its path, or longer than the system takes.
    """

    GITIGNORED = "gitignored"
    VENDORED = "vendored"
    MINIFIED = "minified"
    LOCK_FILE = "lock_file"
    SOURCE_MAP = "source_map"
    SECRET = "secret"  # noqa: S105 - the name of a reason
    BINARY = "binary"
    TOO_LARGE = "too_large"
    EMPTY = "empty"
    SYMLINK = "symlink"
    SUBMODULE = "submodule"
    SPECIAL = "special"
    UNREADABLE = "unreadable"
    ODD_NAME = "odd_name"


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_VENDORED = _words("""
    node_modules bower_components jspm_packages vendor vendors third_party third-party thirdparty
    .venv venv virtualenv site-packages __pycache__ __pypackages__ .eggs .tox .nox .mypy_cache
    .pytest_cache .ruff_cache .hypothesis .ipynb_checkpoints .cache .gradle .idea .vs .yarn
    .pnpm-store .next .nuxt .svelte-kit .turbo .parcel-cache .terraform .serverless .aws-sam
    .dart_tool .bundle pods carthage htmlcov .nyc_output .svn .hg .bzr .ibid
    """)
_BUILT = frozenset({"build", "dist"})
_LOCKS = _words("""
    package-lock.json npm-shrinkwrap.json pnpm-lock.yaml bun.lockb go.sum go.work.sum
    packages.lock.json project.assets.json package.resolved gradle.lockfile cabal.project.freeze
    .terraform.lock.hcl
    """)
_SECRETS = re.compile(
    r"\.env(?:\..+)?|.*\.(?:pem|p12|pfx|jks|keystore|ppk)|id_(?:rsa|dsa|ecdsa|ed25519)"
    r"|\.netrc|\.pgpass|\.git-credentials"
)
_TEMPLATES = re.compile(r".*\.(?:example|sample|template|dist|defaults?)")
_ODD = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
_MINIFIED = re.compile(r".*[.-]min\.(?:js|mjs|cjs|css|html)")
_BINARY = _words("""
    7z a avi avif bin bmp br bz2 class dat db dll dmg doc docx dylib eot exe flac gif gz h5 hdf5
    ico icns iso jar jpeg jpg lib mkv mo mov mp3 mp4 mpeg npy npz o obj ods odt ogg onnx otf
    parquet pb pdf pickle pkl png ppt pptx psd pt pth pyc pyd rar rlib safetensors so sqlite
    sqlite3 swf tar tgz tif tiff ttf wasm wav webm webp whl woff woff2 xls xlsx xz zip zst
    """)


def folder_skip(name: str, inside: Sequence[str]) -> SkipReason | None:
    """Say why a folder is not entered, or None.

    Args:
        name: Its own, without those above it.
        inside: Names of what is directly in it; a `build` or `dist` that is a Python package
            is source, a folder with a `pyvenv.cfg` is a virtual environment by any name.
    """
    lower = name.lower()
    if lower in _VENDORED or lower.endswith(".egg-info") or "pyvenv.cfg" in inside:
        return SkipReason.VENDORED
    if lower in _BUILT and "__init__.py" not in inside:
        return SkipReason.VENDORED
    return None


def name_skip(path: str) -> SkipReason | None:
    """Say why a file is left out by its name alone, or None."""
    name = PurePosixPath(path).name.lower()
    ending = name.rpartition(".")[2]
    if name in _LOCKS or ending == "lock":
        return SkipReason.LOCK_FILE
    if ending == "map":
        return SkipReason.SOURCE_MAP
    if _MINIFIED.fullmatch(name):
        return SkipReason.MINIFIED
    if _SECRETS.fullmatch(name) and not _TEMPLATES.fullmatch(name):
        return SkipReason.SECRET
    if ending in _BINARY and ending != name:
        return SkipReason.BINARY
    return None


def odd_name(path: str) -> bool:
    """Say if a path can't be shown or kept: no UTF-8, or control characters in it."""
    return _ODD.search(path) is not None


def content_skip(lines: Sequence[str], language: str) -> SkipReason | None:
    """Say why a file is left out by its lines, or None.

    Prose may have long lines; code whose lines are 400 characters in the mean was made by a
    tool. Notebooks hold pictures, whose lines no chunk has.
    """
    longest = max(map(len, lines), default=0)
    if not longest or not any(line.strip() for line in lines):
        return SkipReason.EMPTY
    if language == "jupyter":
        return None
    if longest > LONGEST_LINE:
        return SkipReason.MINIFIED
    characters = sum(map(len, lines))
    made = language in {"javascript", "typescript", "css"} and characters > MINIFIED_FROM
    if made and characters > MINIFIED_MEAN * len(lines):
        return SkipReason.MINIFIED
    return None
