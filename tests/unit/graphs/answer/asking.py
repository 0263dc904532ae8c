"""What the tests of the graph `ask` share: two functions of one name, and what dies with a run."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import ChannelVersions, Checkpoint, CheckpointMetadata

from ibid.graphs.answer.build import AnswerGraph, build_answer_graph
from tests.fakes.leased_memory import LeasedMemorySaver
from tests.unit.graphs.answer.turns import passage

CONFIG = passage("def load(path):\n    return toml(path)", file_path="src/config.py", symbol="load")
DATA = passage("def load(path):\n    return rows(path)", file_path="src/data.py", symbol="load")
TESTS = passage("def load(path):\n    return path", file_path="src/fixtures.py", symbol="load")
OTHER = passage("Use load.", file_path="docs/guide.md", symbol="", score=0.1)
TIED = [CONFIG, DATA, OTHER]
ASKED = "What does load do?"


def ask_graph(saver: LeasedMemorySaver | None = None) -> AnswerGraph:
    return build_answer_graph(clarify=True, checkpointer=saver or LeasedMemorySaver())


class Killed(BaseException):
    """What a dead process would not even raise."""


@dataclass
class Life:
    """How many writes were stored, and how many more will be."""

    stored: int = 0
    left: int | None = None


class MortalSaver(LeasedMemorySaver):
    """Dies right after the last write or checkpoint that its life has left."""

    def __init__(self) -> None:
        super().__init__()
        self.life = Life()  # LangGraph works with copies of a saver: they share it

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        stored = await super().aput(config, checkpoint, metadata, new_versions)
        self._die()
        return stored

    async def aput_writes(
        self,
        config: RunnableConfig,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str = "",
    ) -> None:
        await super().aput_writes(config, writes, task_id, task_path)
        self._die()

    def _die(self) -> None:
        self.life.stored += 1
        if self.life.left is not None:
            self.life.left -= 1
            if self.life.left == 0:
                self.life.left = None
                raise Killed
