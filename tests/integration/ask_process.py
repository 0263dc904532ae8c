"""A process of its own that runs one turn of the graph `ask`: to its pause, its end, or its death.

`python -m tests.integration.ask_process FILE RUN [INTERRUPT ANSWER [dies]]` prints one JSON line:
the pause or the answer, the tasks that the model was given, and the searches made.
"""

import asyncio
import json
import os
import sys
from contextlib import aclosing
from dataclasses import asdict
from pathlib import Path

from ibid.adapters.sqlite.saver import EmbeddedSaver
from ibid.domain.answers import TurnPause, TurnResult
from ibid.graphs.answer.build import build_answer_graph
from ibid.graphs.answer.pauses import pending_pause
from ibid.graphs.answer.turn import stream_turn
from tests.fakes.scripted_model import ScriptedModel
from tests.fakes.search import FakePassageSearch
from tests.unit.graphs.answer.asking import ASKED, TIED
from tests.unit.graphs.answer.turns import deps, resumed, turn

KILLED = 9
TERM_S = 0.3


async def _die() -> None:
    os._exit(KILLED)


async def _run(file: str, run: str, answer: list[str], *, dies: bool) -> dict[str, object]:
    saver = await EmbeddedSaver.open(Path(file), term_s=TERM_S)
    graph = build_answer_graph(clarify=True, checkpointer=saver)
    model = ScriptedModel(["It ", _die] if dies else ["It ", "is [1]."])
    search = FakePassageSearch(TIED)
    asked = turn(ASKED)
    if answer:
        asked = resumed(asked, answer[0], answer[1], run=run)
        await pending_pause(
            graph, "t-1", interrupt_id=answer[0], node="clarify", answered=run == "t-3"
        )
    found: dict[str, object] = {}
    async with aclosing(stream_turn(graph, asked, deps(model, search, lease_wait_s=60.0))) as items:
        async for item in items:
            if isinstance(item, TurnPause):
                found["pause"] = asdict(item)
            elif isinstance(item, TurnResult):
                found["answer"] = item.answer
                found["paths"] = [passage.file_path for passage in item.passages]
    await saver.close()
    return {
        **found,
        "tasks": [request.task for request in model.requests],
        "searches": len(search.searches),
    }


if __name__ == "__main__":
    _, FILE, RUN, *REST = sys.argv
    RESULT = asyncio.run(_run(FILE, RUN, REST[:2], dies=REST[2:] == ["dies"]))
    sys.stdout.write(json.dumps(RESULT) + "\n")
