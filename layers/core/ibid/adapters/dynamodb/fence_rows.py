"""The fence row of a thread: changed only by who has seen it as it is."""

from dataclasses import replace
from typing import Any, cast
from uuid import uuid4

from botocore.exceptions import ClientError

from ibid.adapters.dynamodb.fence import (
    NO_FENCE,
    SEALED,
    TOKEN,
    Fence,
    attributes_of,
    fence_key,
    fence_of,
    token_of,
)
from ibid.adapters.dynamodb.packs import PARTITION, RANGE
from ibid.adapters.dynamodb.retries import code_of
from ibid.adapters.dynamodb.storage import Storage

_FAILED = "ConditionalCheckFailedException"


class FenceRows:
    """Fence rows in the checkpoints table.

    Args:
        storage: Where.
    """

    def __init__(self, storage: Storage) -> None:
        self._storage = storage

    def put(self, thread_id: str, old: Fence, new: Fence) -> Fence | None:
        """Replace a fence that is as it was seen; else return the one that is there."""
        item = {
            **fence_key(thread_id),
            **attributes_of(new),
            **self._storage.expiry.attribute(lives=2),
        }
        params: dict[str, Any] = {"ConditionExpression": "attribute_not_exists(checkpoint_id)"}
        if old.token:
            params = {
                "ConditionExpression": "nonce = :nonce AND beat = :beat AND held = :held",
                "ExpressionAttributeValues": {
                    ":nonce": {"S": old.nonce},
                    ":beat": {"N": str(old.beat)},
                    ":held": {"BOOL": old.held},
                },
            }
        try:
            self._storage.connection.dynamodb(
                "put_item",
                TableName=self._storage.checkpoints,
                Item=item,
                ReturnValuesOnConditionCheckFailure="ALL_OLD",
                **params,
            )
        except ClientError as error:
            if code_of(error) != _FAILED:
                raise
            there = cast("dict[str, Any]", error.response).get("Item")
            found = fence_of(there) if there else NO_FENCE
            return None if found.nonce == new.nonce else found  # the first try's answer was lost
        return None

    def sealed(self, thread_id: str, old: Fence, mine: Fence) -> Fence:
        """Keep the earlier writes to open checkpoints: as they are now, for good.

        Args:
            thread_id: Whose.
            old: The fence before the cut; it says which of them counted.
            mine: The one with the cut.

        Returns:
            What the fence is to be, now that this is done.
        """
        storage, cut = self._storage, mine.cuts[-1]
        for checkpoint_ns, checkpoint_id in cut.heads.items():
            for item in storage.writes_to(thread_id, checkpoint_id, checkpoint_ns):
                if SEALED in item or not old.admits_writes(
                    checkpoint_ns, checkpoint_id, token_of(item), sealed=False
                ):
                    continue
                storage.connection.dynamodb(
                    "update_item",
                    TableName=storage.writes,
                    Key={PARTITION: item[PARTITION], RANGE: item[RANGE]},
                    UpdateExpression="SET sealed = :token",
                    ExpressionAttributeValues={":token": {"N": str(mine.token)}},
                )
        # An earlier taker that died in here had cut at the same heads.
        cuts = tuple(replace(one, sealed=True) for one in mine.cuts)
        return replace(mine, cuts=cuts, nonce=uuid4().hex)

    def change(
        self, thread_id: str, token: int, update: str, values: dict[str, Any], *, held: bool
    ) -> bool:
        """Update a fence that has this token, if it is not gone; False: it is not so.

        Args:
            thread_id: Whose.
            token: The token that it must have.
            update: An update expression.
            values: Its values.
            held: Whether it must be held, too.
        """
        life = self._storage.expiry.attribute(lives=2)
        if life:
            update, values = f"{update}, #ttl = :ttl", {**values, ":ttl": life["ttl"]}
        condition = "#token = :token AND gone = :false" + (" AND held = :true" if held else "")
        values = {**values, ":token": {"N": str(token)}, ":false": {"BOOL": False}}
        if held:
            values[":true"] = {"BOOL": True}
        names = {"#token": TOKEN, **({"#ttl": "ttl"} if life else {})}
        try:
            self._storage.connection.dynamodb(
                "update_item",
                TableName=self._storage.checkpoints,
                Key=fence_key(thread_id),
                UpdateExpression=update,
                ConditionExpression=condition,
                ExpressionAttributeNames=names,
                ExpressionAttributeValues=values,
            )
        except ClientError as error:
            if code_of(error) != _FAILED:
                raise
            return False
        return True
