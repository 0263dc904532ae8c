"""Bytes of an item: inside it, or in an object that the item points to by key and digest."""

import hashlib
from collections.abc import Iterable, Mapping
from typing import Any

from botocore.exceptions import ClientError

from ibid.adapters.dynamodb.connection import Connection
from ibid.adapters.dynamodb.keys import checkpoint_range, thread_folder
from ibid.adapters.dynamodb.retries import code_of
from ibid.domain.errors import (
    CheckpointCorrupt,
    CheckpointTooLarge,
    Misconfigured,
    StoreUnavailable,
)

_DELETED_AT_ONCE = 1_000
_MISSING = frozenset({"NoSuchKey", "404"})


def inline(data: bytes) -> dict[str, Any]:
    """Return the attribute value that holds the bytes themselves."""
    return {"B": data}


def object_keys(item: Mapping[str, Any]) -> list[str]:
    """Return the keys of the objects that an item points to."""
    return [value["M"]["key"]["S"] for value in item.values() if "key" in value.get("M", {})]


class Parts:
    """The objects of a saver.

    Args:
        connection: To S3.
        bucket: None: nothing can be put outside its item.
        prefix: Of every key; ends with a slash.
    """

    def __init__(self, connection: Connection, *, bucket: str | None, prefix: str) -> None:
        self._connection = connection
        self._bucket = bucket
        self._prefix = prefix

    def offload(
        self, data: bytes, *, thread_id: str, checkpoint_ns: str, checkpoint_id: str
    ) -> dict[str, Any]:
        """Put the bytes into an object, and return the attribute value that points to it.

        The key holds the digest: the same put twice is the same object, and never another's.

        Raises:
            CheckpointTooLarge: There is no bucket.
            StoreUnavailable: S3 gave no answer.
        """
        if self._bucket is None:
            raise CheckpointTooLarge(
                f"checkpoint {checkpoint_id!r} of thread {thread_id!r} holds {len(data)} bytes, "
                "more than an item takes; name an S3 bucket in the saver's `bucket`",
                thread_id=thread_id,
                checkpoint_id=checkpoint_id,
            )
        digest = hashlib.sha256(data)
        place = hashlib.sha256(checkpoint_range(checkpoint_id, checkpoint_ns).encode()).hexdigest()[
            :16
        ]
        key = f"{thread_folder(self._prefix, thread_id)}{place}-{digest.hexdigest()}"
        self._connection.s3("put_object", Bucket=self._bucket, Key=key, Body=data)
        pointer = {
            "key": {"S": key},
            "digest": {"B": digest.digest()},
            "size": {"N": str(len(data))},
        }
        return {"M": pointer}

    def load(self, value: Mapping[str, Any], *, thread_id: str, checkpoint_id: str) -> bytes:
        """Return the bytes of an attribute value.

        Raises:
            CheckpointCorrupt: The object is gone, or not the one that was put.
            StoreUnavailable: S3 gave no answer.
            Misconfigured: It lies in an object, and there is no bucket.
        """
        if "B" in value:
            return bytes(value["B"])
        pointer = value["M"]
        try:
            data = self._connection.s3_body(Bucket=self._named_bucket(), Key=pointer["key"]["S"])
        except ClientError as error:
            if code_of(error) not in _MISSING:
                raise
            raise _corrupt("lacks a part", thread_id, checkpoint_id) from error
        if hashlib.sha256(data).digest() != pointer["digest"]["B"]:
            raise _corrupt("has a part with another digest", thread_id, checkpoint_id)
        return data

    def renew(self, item: Mapping[str, Any]) -> None:
        """Start the life of an item's objects anew."""
        for key in object_keys(item):
            bucket = self._named_bucket()
            self._connection.s3(
                "copy_object",
                Bucket=bucket,
                Key=key,
                CopySource={"Bucket": bucket, "Key": key},
                MetadataDirective="REPLACE",
            )

    def delete(self, keys: Iterable[str]) -> None:
        """Delete objects; those that are gone already are no error.

        Raises:
            StoreUnavailable: Some were left until the budget was used up.
        """
        left, waits = list(keys), self._connection.budget.waits()
        while left:
            some, left = left[:_DELETED_AT_ONCE], left[_DELETED_AT_ONCE:]
            done = self._connection.s3(
                "delete_objects",
                Bucket=self._named_bucket(),
                Delete={"Objects": [{"Key": key} for key in some], "Quiet": True},
            )
            undone = [one["Key"] for one in done.get("Errors", [])]
            if undone and not waits.wait():
                raise StoreUnavailable(f"{len(undone) + len(left)} objects were not deleted")
            left = [*undone, *left]

    def delete_thread(self, thread_id: str) -> None:
        """Delete every object of a thread, also one that no item points to."""
        if self._bucket is None:
            return
        folder = thread_folder(self._prefix, thread_id)
        while True:
            page = self._connection.s3("list_objects_v2", Bucket=self._bucket, Prefix=folder)
            self.delete(one["Key"] for one in page.get("Contents", []))
            if not page.get("IsTruncated"):
                return

    def _named_bucket(self) -> str:
        if self._bucket is None:
            raise Misconfigured("a part lies in S3; name its bucket in the saver's `bucket`")
        return self._bucket


def _corrupt(fault: str, thread_id: str, checkpoint_id: str) -> CheckpointCorrupt:
    return CheckpointCorrupt(
        f"checkpoint {checkpoint_id!r} of thread {thread_id!r} {fault}",
        thread_id=thread_id,
        checkpoint_id=checkpoint_id,
    )
