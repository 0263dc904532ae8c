"""What may be searched for in place of the asker's own words."""

MAX_QUERY_CHARACTERS = 512


def usable_query(query: object) -> str | None:
    """Return a helper's query without outer white space; None if it is empty, too long, no text."""
    if not isinstance(query, str):
        return None
    stripped = query.strip()
    return stripped if 0 < len(stripped) <= MAX_QUERY_CHARACTERS else None
