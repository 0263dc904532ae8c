"""What every model of the wire shares: one case, frozen, and no field that is not named."""

from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, StringConstraints
from pydantic.alias_generators import to_camel


class Wire(BaseModel):
    """A body or an event, camelCase outside and snake_case inside."""

    model_config = ConfigDict(
        alias_generator=to_camel,
        extra="forbid",
        frozen=True,
        hide_input_in_errors=True,
        serialize_by_alias=True,
        validate_by_name=True,
        validate_by_alias=True,
    )


class Asked(Wire):
    """A body that a caller sends: only the wire's own names and types are known."""

    model_config = ConfigDict(strict=True, validate_by_name=False)


class SnakeWire(Wire):
    """A body or an event of the surfaces that are snake_case outside as well."""

    model_config = ConfigDict(alias_generator=None)


class SnakeAsked(SnakeWire):
    """A body that a caller sends to a surface in snake_case."""

    model_config = ConfigDict(strict=True)


def without_nul(text: str) -> str:
    """Return the text unless it holds a NUL, which not every store takes.

    Half of a surrogate pair, which JSON may escape and UTF-8 can't hold, is refused by pydantic
    itself wherever a string has constraints.

    Raises:
        ValueError: It holds one.
    """
    if "\x00" in text:
        raise ValueError("holds a NUL character")
    return text


def whole(text: str) -> str:
    """Return the text with lone halves of surrogate pairs replaced, as UTF-8 can't carry them."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def is_absent(value: object) -> bool:
    """Say if a field is left out of a body altogether."""
    return value is None


def as_integer(value: object) -> object:
    """Return a number without a fraction as an integer, which it is in JSON."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


# Both stand after a type's other constraints, which hold for plain types only.
JsonInteger = BeforeValidator(as_integer)
WellFormed = AfterValidator(without_nul)

Title = Annotated[
    str, StringConstraints(strip_whitespace=True, min_length=1, max_length=200), WellFormed
]
ReplyLanguage = Literal["en", "pt-BR", "es-419"]
