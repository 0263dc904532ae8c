"""What every ObjectStore does."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from ibid.domain.errors import ObjectExists, ObjectMissing, ValidationFailed
from ibid.ports.objects import ObjectStore

ODD_KEYS = [
    "a",
    "A",
    "a/b",
    "a/b/c",
    "a.object",
    "a.object/b",
    "a~/b",
    "~",
    "con",
    "nul.txt",
    "...",
    ".hidden/.unfinished/x",
    ".unfinished",
    "trailing. /dot.",
    "e\u0301",
    "\u00e9",
    "🧭#?&%2f\\:*|<>\"'",
    "null\x00byte\n",
    "%61",
    "x" * 900,
    "é" * 450,
    "/".join("s" * 450),
    "y" * 400 + "/" + "Z" * 400,
]


async def _pieces(*pieces: bytes) -> AsyncIterator[bytes]:
    for piece in pieces:
        await asyncio.sleep(0)
        yield piece


async def _put(objects: ObjectStore, key: str, body: bytes = b"body") -> None:
    await objects.put(key, _pieces(body), max_bytes=len(body))


async def _get(objects: ObjectStore, key: str) -> bytes:
    return b"".join([piece async for piece in objects.get(key)])


async def test_an_object_comes_back_as_it_was_put(objects: ObjectStore) -> None:
    size = await objects.put("a/b", _pieces(b"on", b"", b"e\x00", b"\xff"), max_bytes=5)

    assert size == 5
    assert await _get(objects, "a/b") == b"one\x00\xff"


async def test_an_empty_object_is_one(objects: ObjectStore) -> None:
    size = await objects.put("empty", _pieces(), max_bytes=0)

    assert size == 0
    assert await _get(objects, "empty") == b""
    assert list(await objects.keys("")) == ["empty"]


async def test_a_large_object_comes_in_pieces(objects: ObjectStore) -> None:
    body = bytes(range(256)) * 4096 * 3 + b"end"
    await _put(objects, "large", body)

    pieces = [piece async for piece in objects.get("large")]

    assert b"".join(pieces) == body
    assert max(map(len, pieces)) <= 1 << 20


async def test_a_put_replaces_what_was_there(objects: ObjectStore) -> None:
    await _put(objects, "a", b"long before")

    await _put(objects, "a", b"after")

    assert await _get(objects, "a") == b"after"


async def test_all_odd_keys_live_side_by_side(objects: ObjectStore) -> None:
    for number, key in enumerate(ODD_KEYS):
        await _put(objects, key, str(number).encode())

    bodies = [await _get(objects, key) for key in ODD_KEYS]

    assert bodies == [str(number).encode() for number in range(len(ODD_KEYS))]
    assert list(await objects.keys("")) == sorted(ODD_KEYS)


@pytest.mark.parametrize(
    "key",
    [
        "",
        "/",
        "/a",
        "a/",
        "a//b",
        ".",
        "..",
        "../a",
        "a/../b",
        "a/.",
        "x" * 901,
        "é" * 451,
        "\ud800",
    ],
)
async def test_a_key_outside_the_form_is_refused(objects: ObjectStore, key: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        await _put(objects, key)
    with pytest.raises(ValueError, match=r".+"):
        await _get(objects, key)
    with pytest.raises(ValueError, match=r".+"):
        await objects.delete(key)

    assert list(await objects.keys("")) == []


@pytest.mark.parametrize("prefix", ["", "a", "/", "../", "a/../", "a//"])
async def test_a_prefix_to_delete_is_whole_segments(objects: ObjectStore, prefix: str) -> None:
    await _put(objects, "a/b")

    with pytest.raises(ValueError, match=r".+"):
        await objects.delete_prefix(prefix)

    assert list(await objects.keys("")) == ["a/b"]


async def test_what_is_not_there_is_missing(objects: ObjectStore) -> None:
    await _put(objects, "a/b")

    for key in ("b", "a", "a/b/c", "A/b"):
        with pytest.raises(ObjectMissing):
            await anext(aiter(objects.get(key)))


async def test_too_large_an_object_is_refused_and_changes_nothing(objects: ObjectStore) -> None:
    await _put(objects, "a", b"before")

    with pytest.raises(ValidationFailed):
        await objects.put("a", _pieces(b"12345", b"6"), max_bytes=5)
    with pytest.raises(ValidationFailed):
        await objects.put("b", _pieces(b"123456"), max_bytes=5)

    assert await _get(objects, "a") == b"before"
    assert list(await objects.keys("")) == ["a"]


async def test_a_put_that_breaks_off_changes_nothing(objects: ObjectStore) -> None:
    async def broken() -> AsyncIterator[bytes]:
        yield b"half"
        raise ConnectionResetError

    await _put(objects, "a", b"before")

    with pytest.raises(ConnectionResetError):
        await objects.put("a", broken(), max_bytes=99)

    assert await _get(objects, "a") == b"before"


async def test_a_cancelled_put_changes_nothing(objects: ObjectStore) -> None:
    started, never = asyncio.Event(), asyncio.Event()

    async def endless() -> AsyncIterator[bytes]:
        yield b"half"
        started.set()
        await never.wait()

    putting = asyncio.create_task(objects.put("a", endless(), max_bytes=99))
    await started.wait()

    putting.cancel()
    await asyncio.gather(putting, return_exceptions=True)

    assert list(await objects.keys("")) == []


async def test_a_deletion_is_repeatable_and_takes_one_object(objects: ObjectStore) -> None:
    for key in ("a", "a/b", "ab"):
        await _put(objects, key)

    await objects.delete("a")
    await objects.delete("a")
    await objects.delete("never/there")

    assert list(await objects.keys("")) == ["a/b", "ab"]


async def test_a_prefix_takes_what_is_below_it_and_nothing_else(objects: ObjectStore) -> None:
    for key in ("a", "a/b", "a/b/c", "a/B/c", "a/bc", "A/b", "z" * 300 + "/x", "z" * 300 + "y/x"):
        await _put(objects, key)

    await objects.delete_prefix("a/b/")
    await objects.delete_prefix("a/b/")
    await objects.delete_prefix("z" * 300 + "/")

    assert list(await objects.keys("")) == ["A/b", "a", "a/B/c", "a/b", "a/bc", "z" * 300 + "y/x"]


async def test_keys_are_listed_by_any_prefix_in_code_point_order(objects: ObjectStore) -> None:
    for key in ("t/é", "t/z", "t/Z", "t/🦊", "t/a/b", "t/ab", "u/a"):
        await _put(objects, key)

    assert list(await objects.keys("t/")) == ["t/Z", "t/a/b", "t/ab", "t/z", "t/é", "t/🦊"]
    assert list(await objects.keys("t/a")) == ["t/a/b", "t/ab"]
    assert list(await objects.keys("t/a/b")) == ["t/a/b"]
    assert list(await objects.keys("nothing/here")) == []


async def test_of_many_puts_at_once_one_is_seen_whole(objects: ObjectStore) -> None:
    bodies = [bytes([number]) * 70_000 for number in range(8)]

    await asyncio.gather(
        *(objects.put("a", _pieces(body[:9], body[9:]), max_bytes=70_000) for body in bodies)
    )

    assert await _get(objects, "a") in bodies


async def test_a_new_object_never_replaces_one(objects: ObjectStore) -> None:
    size = await objects.put_new("a/b", _pieces(b"be", b"fore"), max_bytes=6)

    with pytest.raises(ObjectExists):
        await objects.put_new("a/b", _pieces(b"after"), max_bytes=5)

    assert size == 6
    assert await _get(objects, "a/b") == b"before"
    await objects.delete("a/b")
    await objects.put_new("a/b", _pieces(b"after"), max_bytes=5)
    assert await _get(objects, "a/b") == b"after"
    assert list(await objects.keys("")) == ["a/b"]


async def test_too_large_a_new_object_leaves_the_key_free(objects: ObjectStore) -> None:
    with pytest.raises(ValidationFailed):
        await objects.put_new("a", _pieces(b"123456"), max_bytes=5)
    with pytest.raises(ValueError, match=r".+"):
        await objects.put_new("a/../b", _pieces(b"1"), max_bytes=5)

    await objects.put_new("a", _pieces(b"12345"), max_bytes=5)

    assert await _get(objects, "a") == b"12345"


async def test_of_many_new_objects_at_once_one_is_kept(objects: ObjectStore) -> None:
    bodies = [bytes([number]) * 7_000 for number in range(8)]

    ends = await asyncio.gather(
        *(objects.put_new("a", _pieces(body[:9], body[9:]), max_bytes=7_000) for body in bodies),
        return_exceptions=True,
    )

    (kept,) = (body for body, end in zip(bodies, ends, strict=True) if end == 7_000)
    assert sum(isinstance(end, ObjectExists) for end in ends) == 7
    assert await _get(objects, "a") == kept
    assert list(await objects.keys("")) == ["a"]


async def test_puts_and_deletions_at_once_disturb_nobody(objects: ObjectStore) -> None:
    async def come_and_go(name: str) -> None:
        for _ in range(10):
            await _put(objects, f"deep/er/{name}")
            await objects.delete(f"deep/er/{name}")

    await asyncio.gather(*(come_and_go(name) for name in "abcd"))
    await _put(objects, "deep/er/e")

    assert list(await objects.keys("")) == ["deep/er/e"]
