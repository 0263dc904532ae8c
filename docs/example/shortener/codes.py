"""Short codes: how they are made, and how one is read back."""

ALPHABET = "23456789abcdefghjkmnpqrstuvwxyz"  # nothing that looks like something else


def encode(number: int) -> str:
    """Write a row number as a short code, lowest digit last."""
    if number < 0:
        raise ValueError("a row number is never negative")
    digits = ""
    while True:
        number, digit = divmod(number, len(ALPHABET))
        digits = ALPHABET[digit] + digits
        if number == 0:
            return digits


def decode(code: str) -> int:
    """Read a short code back as the row number that it was made from."""
    number = 0
    for digit in code.lower():
        number = number * len(ALPHABET) + ALPHABET.index(digit)
    return number
