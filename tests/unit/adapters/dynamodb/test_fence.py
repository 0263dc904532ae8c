"""Which items count, once writers have been cut off."""

import pytest

from ibid.adapters.dynamodb.fence import (
    NO_FENCE,
    Cut,
    Fence,
    attributes_of,
    fence_of,
)

CUT = Cut(token=3, heads={"": "b", "child": "d"}, sealed=True)
FENCE = Fence(token=3, owner="one", nonce="n", beat=7, held=True, cuts=(CUT,))


@pytest.mark.parametrize(
    ("checkpoint_ns", "checkpoint_id", "token", "counts"),
    [
        ("", "b", 2, True),
        ("", "a", 2, True),
        ("", "c", 2, False),
        ("", "c", 3, True),
        ("child", "d", 2, True),
        ("child", "e", 2, False),
        ("another", "a", 2, True),  # of a task that ended before the head
        ("another", "c", 2, False),
        ("", "c", 0, False),
    ],
)
def test_a_checkpoint_counts_up_to_the_cut_of_its_writer(
    checkpoint_ns: str, checkpoint_id: str, token: int, *, counts: bool
) -> None:
    assert FENCE.admits(checkpoint_ns, checkpoint_id, token) is counts


@pytest.mark.parametrize(
    ("checkpoint_id", "token", "sealed", "counts"),
    [
        ("a", 2, False, True),  # its successor is stored
        ("b", 2, False, False),
        ("b", 2, True, True),
        ("b", 3, False, True),
    ],
)
def test_writes_to_an_open_checkpoint_count_if_they_are_sealed(
    checkpoint_id: str, token: int, *, sealed: bool, counts: bool
) -> None:
    assert FENCE.admits_writes("", checkpoint_id, token, sealed=sealed) is counts


def test_until_the_taker_has_sealed_all_of_them_count() -> None:
    fence = Fence(token=3, cuts=(Cut(token=3, heads={"": "b"}, sealed=False),))

    assert fence.admits_writes("", "b", 2, sealed=False)


def test_the_first_cut_after_a_writer_is_its_own() -> None:
    later = FENCE.with_cut(Cut(token=5, heads={"": "z"}, sealed=True))

    assert not later.admits("", "c", 2)
    assert later.admits("", "c", 4)


def test_nothing_of_a_thread_that_is_gone_counts_and_everything_of_one_without_a_fence() -> None:
    assert not Fence(token=4, gone=True).admits("", "a", 4)
    assert NO_FENCE.admits("", "a", 0)
    assert NO_FENCE.admits_writes("", "a", 0, sealed=False)


def test_a_fence_comes_back_from_its_attributes() -> None:
    assert fence_of(attributes_of(FENCE)) == FENCE


def test_of_many_cuts_the_last_fifty_are_kept() -> None:
    fence = NO_FENCE
    for token in range(1, 61):
        fence = fence.with_cut(Cut(token=token, heads={}, sealed=True))

    assert [fence.cuts[0].token, fence.cuts[-1].token, len(fence.cuts)] == [11, 60, 50]


def test_cuts_of_hundreds_of_namespaces_stay_small_enough_for_an_item_and_the_last_stays() -> None:
    fence = NO_FENCE
    for token in range(1, 11):
        heads = {f"child:{number}": "a" for number in range(600 if token == 10 else 200)}
        fence = fence.with_cut(Cut(token=token, heads=heads, sealed=True))
        assert sum(len(cut.heads) for cut in fence.cuts) <= 600

    assert [cut.token for cut in fence.cuts] == [10]
