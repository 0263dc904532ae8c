"""Ids of new things: random, and under an Idempotency-Key set down before the thing is made."""

import uuid
from typing import Annotated, NamedTuple

from fastapi import Depends

from ibid.web.claims import Held


class NewId(NamedTuple):
    """The id of a thing that a request is about to make.

    Attributes:
        value: Random.
        is_planned: An earlier request under the same key had it, and may have made the thing.
    """

    value: str
    is_planned: bool


async def new_id(claim: Held) -> NewId:
    """Return an id for what the request makes: the planned one, or a new one, planned now."""
    if claim is None:
        return NewId(uuid.uuid4().hex, is_planned=False)
    if claim.planned is not None:
        return NewId(claim.planned, is_planned=True)
    await claim.plan(value := uuid.uuid4().hex)
    return NewId(value, is_planned=False)


Minted = Annotated[NewId, Depends(new_id)]
