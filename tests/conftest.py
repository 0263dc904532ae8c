"""What holds for every test."""

import os
from collections.abc import Iterator

import hypothesis
import pytest

# Both are read when langgraph is imported.
os.environ["LANGGRAPH_STRICT_MSGPACK"] = "true"
os.environ["LANGSMITH_TRACING"] = "false"

# A machine that is busy with something else must not fail a property, nor chance a run: look for
# more with `--hypothesis-seed`.
hypothesis.settings.register_profile(
    "ibid",
    deadline=None,
    derandomize=True,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
hypothesis.settings.load_profile("ibid")


@pytest.fixture(scope="session")
def ministack_url() -> Iterator[str]:
    """The URL of one stand-in for AWS a session, started when a test asks for it."""
    from tests.fakes.ministack import ministack  # noqa: PLC0415 - after the variables above

    with ministack() as url:
        yield url
