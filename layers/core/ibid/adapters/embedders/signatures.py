"""A remote model's name as a part of a signature."""

from ibid.domain.errors import Misconfigured

_MAX_NAME = 150  # leaves room for provider and width in a signature's 200


def checked_model(name: str) -> str:
    """Return a model's name if a signature can hold it.

    Raises:
        Misconfigured: It is empty, too long or not printable.
    """
    if not 0 < len(name) <= _MAX_NAME or not name.isprintable():
        raise Misconfigured(f"an embedding model's name has 1 to {_MAX_NAME} printable characters")
    return name
