"""Texts get small and come back, from one item or from parts."""

import hashlib
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ibid.adapters.dynamodb.records import blobs
from ibid.adapters.dynamodb.records.dictionary import DICTIONARY
from ibid.adapters.dynamodb.records.wire import Value, pack, unpack


@given(text=st.text(st.characters(), max_size=500))
def test_any_text_comes_back_and_is_a_byte_longer_at_most(text: str) -> None:
    small = blobs.squeeze(text)

    assert blobs.expand(small) == text
    assert len(small) <= len(text.encode("utf-8", "surrogatepass")) + 1


@given(text=st.text(min_size=1), at=st.integers(1, 1_000))
def test_bytes_that_were_cut_are_told(text: str, at: int) -> None:
    small = blobs.squeeze(text * 50)

    with pytest.raises(zlib.error):
        blobs.expand(small[: 1 + at % (len(small) - 1)])


def test_the_dictionary_is_what_kept_texts_were_made_with() -> None:
    assert (
        hashlib.sha256(DICTIONARY).hexdigest()
        == "b1df989ad611a0d08e0ce96e2136c0dac3391a67bc08fdca9080f353775686d8"
    )
    kept = bytes.fromhex("01c3e7de34603467eb271614603adc1800")
    assert blobs.expand(kept) == '{"index":1,"file_path":"src/flask/app.py","start_line":3'


def test_what_is_too_large_for_an_item_is_cut_into_parts() -> None:
    data = bytes(range(256)) * 2_000

    whole, cut = blobs.blob(data[: blobs.INLINE_BYTES]), blobs.blob(data)

    assert (whole.attributes, whole.parts) == ({"body": data[: blobs.INLINE_BYTES]}, ())
    assert b"".join(cut.parts) == data
    assert cut.attributes["parts"] == len(cut.parts) == 3
    assert "body" not in cut.attributes


@given(
    item=st.dictionaries(
        st.text(),
        st.text()
        | st.integers()
        | st.binary()
        | st.booleans()
        | st.frozensets(st.text(), min_size=1),
    )
)
def test_plain_values_come_back_from_an_item(item: dict[str, Value]) -> None:
    assert unpack(pack(item)) == item
    assert unpack(pack({**item, "absent": None})) == {
        name: value for name, value in item.items() if name != "absent"
    }
