"""The default answerer over this package's own files: whatever it quotes, its citations hold."""

import random
import re
from pathlib import Path

import pytest

import ibid
from ibid.adapters.models.extractive import ExtractiveModel
from ibid.domain.answers import GroundingWarning, Style
from ibid.domain.passages import Passage
from ibid.graphs.answer.markdown import split_blocks
from tests.fakes.search import FakePassageSearch
from tests.unit.graphs.answer.turns import deps, passage, read, turn

ROOT = Path(next(iter(ibid.__path__)))
FILES = sorted(path for path in ROOT.rglob("*.py") if path.stat().st_size)
FALSE = {
    GroundingWarning.UNCITED_ANSWER,
    GroundingWarning.UNKNOWN_PATHS,
    GroundingWarning.UNKNOWN_SYMBOLS,
}


def _passages(chance: random.Random) -> list[Passage]:
    found: list[Passage] = []
    for path in chance.sample(FILES, k=chance.randint(1, 6)):
        lines = path.read_text(encoding="utf-8").split("\n")
        # no index holds a passage without text
        start = chance.choice([at for at, line in enumerate(lines) if line.strip()])
        found.append(
            passage(
                "\n".join(lines[start : start + chance.randint(3, 60)]),
                file_path=path.relative_to(ROOT).as_posix(),
                start_line=start + 1,
                symbol="",
            )
        )
    return found


@pytest.mark.parametrize("seed", range(40))
async def test_every_marker_of_a_default_answer_is_a_citation_that_holds(seed: int) -> None:
    chance = random.Random(seed)  # noqa: S311 - a seed, so that each run asks the same
    found = _passages(chance)
    words = re.findall(r"\w{4,}", " ".join(one.content for one in found)) or ["run"]
    question = f"How does {' '.join(chance.choices(words, k=4))} work?"
    style = Style(
        detail=chance.choice([None, "brief", "thorough"]),
        format=chance.choice([None, "prose", "bullets"]),
    )

    seen = await read(
        turn(question, style=style), deps(ExtractiveModel(), FakePassageSearch(found))
    )

    shown = {
        int(number)
        for block in split_blocks(seen.text)
        for number in re.findall(r"\[([0-9]+)\]", block.prose)
    }
    assert seen.result.cited_indexes == tuple(sorted(shown))
    assert not FALSE.intersection(seen.result.warnings)
