"""Names that a store may trip over."""

ODD = [
    "ann#bob",
    "a/b",
    "../up",
    "a b\tc\nd",
    "CON",
    "x" * 128,
    "é" * 128,
    "🧭🦊",
    "e\u0301",
    "\u202eright to left",
    "null\x00byte",
    "%s%20'\"\\",
    "{}",
    "_",
    "%",
]
