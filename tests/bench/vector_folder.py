"""An embedder that remembers what it embedded in earlier runs of a bench."""

import hashlib
from array import array
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from ibid.domain.passages import Vector
from ibid.ports.embedder import Embedder


class FolderCachedEmbedder:
    """Keeps vectors by the text's digest, one file a signature; `save` writes the new ones."""

    def __init__(self, embedder: Embedder, folder: Path) -> None:
        self._embedder = embedder
        digest = hashlib.sha256(embedder.signature.encode()).hexdigest()[:16]
        self._file = folder / f"{digest}.npz"
        self._known: dict[str, Vector] = {}
        self._new = False
        if self._file.exists():
            with np.load(self._file) as kept:
                vectors = kept["vectors"]
                self._known = {
                    key: array("f", vector.tobytes())
                    for key, vector in zip(kept["keys"].tolist(), vectors, strict=True)
                }

    @property
    def signature(self) -> str:
        return self._embedder.signature

    @property
    def languages(self) -> frozenset[str]:
        return self._embedder.languages

    async def embed_passages(self, texts: Sequence[str]) -> list[Vector]:
        keys = [_key("passage", text) for text in texts]
        missing = {
            key: text for key, text in zip(keys, texts, strict=True) if key not in self._known
        }
        if missing:
            vectors = await self._embedder.embed_passages(list(missing.values()))
            self._known |= dict(zip(missing, vectors, strict=True))
            self._new = True
        return [self._known[key] for key in keys]

    async def embed_query(self, text: str, *, timeout_s: float) -> Vector:
        key = _key("query", text)
        if key not in self._known:
            self._known[key] = await self._embedder.embed_query(text, timeout_s=timeout_s)
            self._new = True
        return self._known[key]

    def save(self) -> None:
        if self._new:
            self._file.parent.mkdir(parents=True, exist_ok=True)
            whole = self._file.with_suffix(".new.npz")
            np.savez(
                whole,
                keys=np.array(list(self._known)),
                vectors=np.array(list(self._known.values()), np.float32),
            )
            whole.replace(self._file)
            self._new = False


def _key(kind: str, text: str) -> str:
    return hashlib.sha256(f"{kind}\n{text}".encode("utf-8", "surrogatepass")).hexdigest()
