"""A stand-in cipher: it hides and authenticates well enough for a test, and for nothing else."""

import hashlib
import hmac
import os

from langgraph.checkpoint.serde.base import CipherProtocol

_NONCE, _TAG = 16, 32


class KeyedCipher(CipherProtocol):
    """XORs with a stream from the key, and signs."""

    def __init__(self, key: bytes) -> None:
        self._key = key

    def encrypt(self, plaintext: bytes) -> tuple[str, bytes]:
        nonce = os.urandom(_NONCE)
        body = self._mixed(nonce, plaintext)
        return "keyed", nonce + self._tag(nonce + body) + body

    def decrypt(self, ciphername: str, ciphertext: bytes) -> bytes:
        nonce, tag = ciphertext[:_NONCE], ciphertext[_NONCE : _NONCE + _TAG]
        body = ciphertext[_NONCE + _TAG :]
        if ciphername != "keyed" or not hmac.compare_digest(tag, self._tag(nonce + body)):
            raise ValueError("another key, or altered bytes")
        return self._mixed(nonce, body)

    def _tag(self, data: bytes) -> bytes:
        return hmac.digest(self._key, data, "sha256")

    def _mixed(self, nonce: bytes, data: bytes) -> bytes:
        stream = hashlib.shake_256(self._key + nonce).digest(len(data))
        return (int.from_bytes(data, "big") ^ int.from_bytes(stream, "big")).to_bytes(
            len(data), "big"
        )
