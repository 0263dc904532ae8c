"""Values that are compressed come back, and so do those that never were."""

from hypothesis import given
from hypothesis import strategies as st
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from ibid.adapters.checkpoints.serde import CompressedSerializer, compressing, expand, squeeze
from tests.fakes.cipher import KeyedCipher


@given(st.binary(max_size=2_000))
def test_squeezed_bytes_are_smaller_and_come_back(data: bytes) -> None:
    small = squeeze(data)

    assert small is None or (len(small) < len(data) and expand(small) == data)


def test_big_and_small_values_come_back_also_from_the_plain_serializer() -> None:
    serde = CompressedSerializer()
    for value in ("a" * 500, "a" * 100_000, "a", None, b"", b"b" * 500, bytearray(b"b" * 500)):
        kind, data = serde.dumps_typed(value)
        assert serde.loads_typed((kind, data)) == value
        assert serde.loads_typed(JsonPlusSerializer().dumps_typed(value)) == value
        assert len(data) <= 200


def test_langgraphs_serializers_are_given_compression_and_others_are_left() -> None:
    class Other(JsonPlusSerializer):
        pass

    other, cipher = Other(), KeyedCipher(b"key")
    assert compressing(other) is other
    assert type(compressing(None)) is CompressedSerializer
    listed = JsonPlusSerializer(allowed_msgpack_modules=[("a", "B")])
    made = compressing(listed)
    assert isinstance(made, CompressedSerializer)
    assert made._allowed_msgpack_modules == listed._allowed_msgpack_modules  # noqa: SLF001 - what must stay
    wrapped = compressing(EncryptedSerializer(cipher))
    assert isinstance(wrapped, EncryptedSerializer)
    assert len(wrapped.dumps_typed("a" * 10_000)[1]) < 200
