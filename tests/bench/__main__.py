"""Measure and write `docs/benchmarks.md`: `python -m tests.bench [SECTION ...]`.

Without names every section is measured; with some, only those are written anew. What needs the
shared data (`IBID_SHARED`) is left as it is without it, and that is said.
"""

import asyncio
import datetime as dt
import os
import platform
import re
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from importlib.metadata import version
from pathlib import Path

import psutil

from ibid.adapters.embedders.minilm import open_minilm
from ibid.adapters.models.extractive import ExtractiveModel
from ibid.bootstrap.models import open_model
from ibid.settings import Settings
from tests.bench import (
    checkpoint_tables,
    checkpoints,
    clarify,
    embed_speed,
    imports,
    index_speed,
    journal_speed,
    memory,
    quality,
    run_tables,
    runs,
    search_speed,
    streams,
    turn_cost,
)
from tests.bench.markdown import table
from tests.bench.vector_folder import FolderCachedEmbedder
from tests.fakes.ministack import environment, ministack

PAGE = Path("docs/benchmarks.md")
CACHE = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "ibid-bench"
NEEDS_DATA = {"clarify", "sets", "files", "indexing", "streams"}


def shared() -> Path:
    """Return the folder with the data for measuring."""
    return Path(os.environ["IBID_SHARED"])


def machine() -> str:
    """Describe where and when this was measured."""
    model = platform.processor() or platform.machine()
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            model = line.split(":", 1)[1].strip()
            break
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"],  # noqa: S607 - whichever git is there
        capture_output=True,
        text=True,
        check=False,
    ).stdout.strip()
    gib = psutil.virtual_memory().total / 2**30
    return (
        f"{dt.datetime.now(dt.UTC):%Y-%m-%d}, {os.cpu_count()} cores of {model}, "
        f"{gib:.0f} GiB, Python {platform.python_version()}, onnxruntime {version('onnxruntime')}, "
        f"commit {commit or 'unknown'}"
    )


def sets() -> str:
    """nDCG@10 and recall@10 on the five sets."""
    rows = quality.measure_sets(
        shared(), embedder=open_minilm(CACHE / "models"), vectors=CACHE / "vectors"
    )
    names = ("BM25", "MiniLM", "RRF", "min-max")
    return "nDCG@10 and recall@10, nothing tuned per set.\n\n" + table(
        ("set", "questions", "chunks", *names, "asked", "**Ibid nDCG@10**", "Ibid recall@10"),
        (
            (
                row["set"],
                row["queries"],
                row["chunks"],
                *(_score(row["baselines"].get(name)) for name in names),
                _score(row["baselines"]["floor"]),
                f"**{row['ndcg@10']:.3f}**",
                f"{row['recall@10']:.3f}",
            )
            for row in rows
        ),
    )


def _score(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def files() -> str:
    """hit@1, hit@5 and MRR by file on the two repositories."""
    rows = quality.measure_files(
        shared(), embedder=open_minilm(CACHE / "models"), vectors=CACHE / "vectors"
    )

    def three(values: tuple[float, float, float]) -> str:
        return "/".join(f"{value:.3f}" for value in values)

    return "hit@1/hit@5/MRR by file, cut by the product's own chunker.\n\n" + table(
        ("repository", "questions", "chunks", "ordered by", "BM25 windows", "asked", "**Ibid**"),
        (
            (
                row["repository"],
                row["queries"],
                row["chunks"],
                row["by"],
                three(row["baselines"]["BM25 windows"]),
                three(row["baselines"]["floor"]),
                f"**{three((row['hit@1'], row['hit@5'], row['mrr']))}**",
            )
            for row in rows
        ),
    )


def search() -> str:
    """Search over 5,000 and 50,000 chunks."""
    rows = search_speed.measure()
    names = list(rows[0])
    return (
        "In process, 384 dimensions; the time to embed the question is not in it "
        "(4 to 9 ms).\n\n" + table(names, ([f"{row[name]:,.1f}" for name in names] for row in rows))
    )


def indexing() -> str:
    """Indexing flask: the whole, the rest without the embedder, and nothing new."""
    source = next((shared() / "data" / "swe-qa").glob("flask.source.*.tar.gz"))
    cache = CACHE / "models"

    def bare(texts: Sequence[str]) -> float:
        return embed_speed.measure(texts, cache=cache)["tokens_per_s"]

    figures = asyncio.run(index_speed.measure(source, open_minilm(cache), bare))
    asked: Mapping[str, str] = {
        "lexical_s": "under 5",
        "of_bare": "at least 0.9",
        "unchanged_run_share": "under 0.05",
    }
    rest = figures["rest_chunks_per_s"] / (
        figures["bare_tokens_per_s"] / figures["run_tokens_per_s"] * figures["run_chunks_per_s"]
    )
    rows = [(name, f"{value:,.3f}", asked.get(name, "")) for name, value in figures.items()]
    rows.append(("rest_against_embedder", f"{rest:,.1f}", "at least 20"))
    return "flask at the pinned commit, the default embedder.\n\n" + table(
        ("figure", "measured", "asked"), rows
    )


def streaming() -> str:
    """The whole stack beside the floor and the peer."""
    rows = asyncio.run(streams.measure(shared() / "peers", CACHE))
    floors = {row.streams: row for row in rows if row.server == "floor"}
    return (
        "A scripted model of 200 tokens without gaps, the client on the same machine. The floor "
        "keeps nothing; the peer is `langgraph dev`; Ibid keeps run and messages.\n\n"
        + table(
            (
                "server",
                "streams",
                "first event",
                "first token",
                "whole",
                "tokens/s",
                "of the floor",
            ),
            (
                (
                    row.server,
                    row.streams,
                    f"{row.first_event_ms:.0f} ms",
                    f"{row.first_token_ms:.0f} ms",
                    f"{row.whole_ms:.0f} ms",
                    f"{row.tokens_per_s:,.0f}",
                    f"{row.tokens_per_s / floors[row.streams].tokens_per_s:.2f}",
                )
                for row in rows
            ),
        )
    )


def importing() -> str:
    """Import time of `ibid.bootstrap.runtime`."""
    figures = imports.measure()
    return table(
        ("bare third-party imports", "`import ibid.bootstrap.runtime`", "ratio", "asked"),
        [
            (
                f"{figures['bare_s']:.2f} s",
                f"{figures['whole_s']:.2f} s",
                f"{figures['ratio']:.2f}",
                "under 1.4",
            )
        ],
    )


def resident() -> str:
    """Memory of a server that has indexed 10,000 chunks."""
    figures = memory.measure()
    return table(
        ("chunks", "resident", "peak", "asked"),
        [
            (
                f"{figures['chunks']:,.0f}",
                f"{figures['rss_mb']:.0f} MB",
                f"{figures['peak_mb']:.0f} MB",
                "under 600 MB",
            )
        ],
    )


def clarifying() -> str:
    """When to ask back, and what is out of scope."""
    embedder = FolderCachedEmbedder(open_minilm(CACHE / "models"), CACHE / "vectors")
    asked = {"rules alone": clarify.measure_asking(shared(), embedder, ExtractiveModel())}
    if (name := Settings().model) != "extractive":
        asked[f"rules and {name}"] = asyncio.run(_judged(embedder))
    code = clarify.measure_code(shared(), embedder)
    scope = clarify.measure_scope(shared())
    away = clarify.measure_floor(shared(), embedder)
    embedder.save()
    judged = (
        ""
        if len(asked) > 1
        else " A model that `IBID_MODEL` names is measured as well: none could be had here."
    )
    return "\n\n".join(
        (
            "`mtragun_even`: last questions of conversations, each with the passages that people "
            "had before them, as an index of its own. Precision and recall are of UNDERSPECIFIED "
            "against ANSWERABLE; at most 10 % of the ANSWERABLE may be asked back." + judged,
            table(
                (
                    "decided by",
                    *(f"asked of {label}" for label in clarify.LABELS),
                    "precision",
                    "recall",
                    "**ANSWERABLE asked back**",
                ),
                (
                    (
                        by,
                        *(f"{it.asked[label]}/{it.questions[label]}" for label in clarify.LABELS),
                        f"{it.precision:.2f}",
                        f"{it.recall:.2f}",
                        f"**{it.rate:.1%}**",
                    )
                    for by, it in asked.items()
                ),
            ),
            "The code questions of `swe-qa` all have an answer; rules alone.",
            table(
                ("repository", "questions", "asked back", "at most"),
                ((name, of, f"{back} ({back / of:.1%})", "10%") for name, (back, of) in code),
            ),
            _SCOPE,
            table(
                ("requests", "refused by classify", "refused, or nothing found in flask"),
                (
                    (kind, f"{refused}/{of} ({refused / of:.1%})", f"{gone}/{n} ({gone / n:.1%})")
                    for (kind, (refused, of)), (gone, n) in zip(scope, away, strict=True)
                ),
            ),
        )
    )


_SCOPE = """\
`clinc150`, requests to an assistant: what the default answerer's classify refuses by rules, and \
what the search of flask then finds nothing for. Its rules refuse a few plain kinds of small talk \
only, so it is the search's floor that turns the rest away; CLINC's own in-scope requests \
(banking, travel) are out of scope for a code base too."""


async def _judged(embedder: FolderCachedEmbedder) -> clarify.Asked:
    async with AsyncExitStack() as stack:
        model = open_model(Settings(), stack)
        return await clarify.asking(shared(), embedder, model)


def checkpointing() -> str:
    """Our DynamoDB saver beside its peers."""
    found = checkpoints.measure()
    return (
        "ministack 1.5.33; the reference workload is five nodes in line, a pause in the third, "
        "20 KB of text in the state, the second invocation on a saver of its own. Of two figures "
        "the second is that one's. Write units hold the lease's; milliseconds don't. A kill is a "
        "process that ends right after its k-th store call, for every k; another one goes on.\n\n"
        + table(checkpoint_tables.ASKED, checkpoint_tables.asked(found))
        + f"\n\nMilliseconds: medians of {checkpoints.PASSES * checkpoints.ROUNDS} rounds in which "
        "the savers take turns, with 5 ms of delay in every call; in brackets the 95 % interval of "
        "the median difference to the peer named, slower if it lies above 0.\n\n"
        + table(checkpoint_tables.SAVERS, checkpoint_tables.savers(found))
    )


_RUNS = """\
Servers of their own on one store (SQLite, or ministack 1.5.33 for DynamoDB), a model that keeps a \
pace, one client that reads all clocks. A follower, a cancel and a replay go to another process \
than the run's."""


def following_runs() -> str:
    """What becomes of runs over HTTP, on both stores, and what keeping them costs."""
    measured = [asyncio.run(runs.measure("sqlite"))]
    costs = "Without ministack, which could not be installed, nothing was measured on DynamoDB."
    if _has_ministack():
        with ministack() as url:
            measured.append(asyncio.run(runs.measure("dynamodb", url)))
            turns = asyncio.run(_plain_turns(url))
        costs = (
            "Calls, write and read units of one plain turn of 500 tokens in the app table ([more]"
            "(cost.md)):\n\n" + run_tables.units(turns)
        )
    return "\n\n".join(
        [
            _RUNS,
            run_tables.replays(measured),
            run_tables.lags(measured),
            run_tables.cancels(measured),
            run_tables.waves(measured),
            f"Memory from the last wave but one to the last: {run_tables.growth(measured)}.",
            "The engine on SQLite beside the engine on a store in memory, 200 tokens a stream as "
            "fast as it takes them, medians:\n\n" + run_tables.journal(journal_speed.ratios()),
            costs,
        ]
    )


def _has_ministack() -> bool:
    try:
        environment()
    except (OSError, subprocess.CalledProcessError):
        return False
    return True


async def _plain_turns(url: str) -> Sequence[turn_cost.PlainTurn]:
    return [turn async for turn in turn_cost.plain_turns(url)]


SECTIONS: Mapping[str, tuple[str, Callable[[], str]]] = {
    "sets": ("Retrieval: passages", sets),
    "files": ("Retrieval: files", files),
    "search": ("Search speed", search),
    "indexing": ("Indexing", indexing),
    "clarify": ("Asking back", clarifying),
    "streams": ("Streaming", streaming),
    "runs": ("Runs", following_runs),
    "imports": ("Imports", importing),
    "memory": ("Memory", resident),
    "checkpoints": ("Checkpoints on DynamoDB", checkpointing),
}


def main(names: list[str]) -> None:
    """Measure the sections named, or all, and write the page."""
    unknown = set(names) - set(SECTIONS)
    if unknown:
        sys.exit(f"no section {', '.join(sorted(unknown))}; there are {', '.join(SECTIONS)}")
    CACHE.mkdir(parents=True, exist_ok=True)
    page = PAGE.read_text()
    for name in names or SECTIONS:
        if name in NEEDS_DATA and "IBID_SHARED" not in os.environ:
            print(f"{name}: skipped, IBID_SHARED does not name the data")
            continue
        title, measure = SECTIONS[name]
        print(f"== {title}", flush=True)
        body = f"{measure()}\n\nMeasured {machine()}: `python -m tests.bench {name}`."
        print(body, flush=True)
        page = replaced(page, name, body)
        PAGE.write_text(page)


def replaced(page: str, name: str, body: str) -> str:
    """Put a section's body between its two marks."""
    marks = rf"(<!-- {name} -->\n).*?(<!-- end {name} -->)"
    new, count = re.subn(
        marks, lambda found: f"{found[1]}{body}\n{found[2]}", page, flags=re.DOTALL
    )
    if count != 1:
        raise LookupError(f"{PAGE} has no section {name}")
    return new


if __name__ == "__main__":
    main(sys.argv[1:])
