"""What holds for every test."""

import os

import hypothesis

# Both are read when langgraph is imported.
os.environ["LANGGRAPH_STRICT_MSGPACK"] = "true"
os.environ["LANGSMITH_TRACING"] = "false"

# A machine that is busy with something else must not fail a property.
hypothesis.settings.register_profile("ibid", deadline=None)
hypothesis.settings.load_profile("ibid")
