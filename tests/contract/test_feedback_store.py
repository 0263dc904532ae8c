"""What every FeedbackStore does."""

from dataclasses import replace

import pytest

from ibid.domain.errors import ConversationNotFound
from ibid.domain.principals import Principal
from ibid.ports.feedback import Feedback
from tests.contract.odd import ODD
from tests.contract.run_steps import conversations, ended
from tests.fakes.records import Records
from tests.fakes.samples import ANN, NOON

RATING = Feedback(
    tenant="acme",
    subject="ann",
    conversation_id="c1",
    run_id="c1-1",
    rating="up",
    comment="Just so.",
    created_at=NOON,
)


async def _get(records: Records, rating: Feedback = RATING) -> Feedback | None:
    return await records.feedback.get(rating.run_id, tenant=rating.tenant, subject=rating.subject)


async def test_a_rating_is_kept(records: Records) -> None:
    await conversations(records, "c1")
    await ended(records)
    before = await _get(records)

    await records.feedback.put(RATING)

    assert before is None
    assert await _get(records) == RATING


async def test_a_later_rating_replaces_the_first(records: Records) -> None:
    await conversations(records, "c1")
    await ended(records)
    await records.feedback.put(RATING)

    await records.feedback.put(replace(RATING, rating="down", comment=None))

    assert await _get(records) == replace(RATING, rating="down", comment=None)


async def test_each_run_has_a_rating_of_its_own(records: Records) -> None:
    await conversations(records, "c1")
    await ended(records, 1)
    await ended(records, 2)
    await records.feedback.put(RATING)
    other = replace(RATING, run_id="c1-2", rating="down")
    await records.feedback.put(other)

    assert await _get(records) == RATING
    assert await _get(records, other) == other


@pytest.mark.parametrize(
    "stranger",
    [Principal(tenant="acme", subject="bob"), Principal(tenant="rival", subject="ann")],
)
async def test_a_rating_is_its_subjects_alone(records: Records, stranger: Principal) -> None:
    await conversations(records, "c1")
    await ended(records)
    await records.feedback.put(RATING)
    theirs = replace(RATING, tenant=stranger.tenant, subject=stranger.subject, rating="down")

    with pytest.raises(ConversationNotFound):
        await records.feedback.put(theirs)

    assert await _get(records, theirs) is None
    assert await _get(records) == RATING


async def test_a_conversation_that_is_not_there_takes_no_rating(records: Records) -> None:
    await conversations(records, "c1")

    with pytest.raises(ConversationNotFound):
        await records.feedback.put(replace(RATING, conversation_id="c9", run_id="c9-1"))


@pytest.mark.parametrize("odd", ODD)
async def test_any_text_serves(records: Records, odd: str) -> None:
    principal = Principal(tenant=odd, subject=odd)
    await conversations(records, odd, principal=principal)
    rating = replace(
        RATING, tenant=odd, subject=odd, conversation_id=odd, run_id=f"{odd}-1", comment=odd
    )

    await records.feedback.put(rating)

    assert await _get(records, rating) == rating


async def test_a_deleted_conversation_takes_its_ratings(records: Records) -> None:
    await conversations(records, "c1", "c2")
    await ended(records)
    await ended(records, conversation_id="c2")
    kept = replace(RATING, conversation_id="c2", run_id="c2-1")
    await records.feedback.put(RATING)
    await records.feedback.put(kept)

    await records.conversations.delete("c1", principal=ANN)

    assert await _get(records) is None
    assert await _get(records, kept) == kept
    with pytest.raises(ConversationNotFound):
        await records.feedback.put(RATING)


async def test_a_deleted_project_takes_its_ratings(records: Records) -> None:
    await conversations(records, "c1")
    await ended(records)
    await records.feedback.put(RATING)

    await records.projects.delete("p1", tenant="acme")

    assert await _get(records) is None
