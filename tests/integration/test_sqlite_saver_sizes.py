"""What is large comes back byte for byte: there is no limit to fall over near 400 KB or 1 MB."""

from pathlib import Path
from typing import Any

from ibid.adapters.sqlite.saver import EmbeddedSaver
from tests.contract.saver_graphs import heavy, noise, thread
from tests.unit.adapters.sqlite.saver_samples import opened, place, put, the

SIZES = range(340_000, 421_000, 1_000)
BIG = noise(SIZES[-1])


async def written(saver: EmbeddedSaver) -> list[tuple[str, Any]]:
    return [(channel, value) for _, channel, value in (await the(saver)).pending_writes or []]


async def test_a_checkpoint_of_every_size_from_340_to_420_kilobytes_comes_back(
    tmp_path: Path,
) -> None:
    async with opened(tmp_path) as saver:
        config = place()
        for size in SIZES:
            config = await put(saver, config, values={"blob": BIG[:size]})

            found = await the(saver)

            assert found.checkpoint["channel_values"] == {"blob": BIG[:size]}
            assert found.config == config


async def test_a_write_of_every_size_from_340_to_420_kilobytes_comes_back(tmp_path: Path) -> None:
    async with opened(tmp_path) as saver:
        for size in SIZES:
            config = await put(saver)

            # in one call, and in one that replaces a special write of an earlier one
            await saver.aput_writes(config, [("__error__", b""), ("c", BIG[:-size])], "a")
            await saver.aput_writes(config, [("__error__", BIG[:size])], "a")

            assert await written(saver) == [("__error__", BIG[:size]), ("c", BIG[:-size])]


async def test_more_than_a_megabyte_of_pending_writes_is_read_whole(tmp_path: Path) -> None:
    async with opened(tmp_path) as saver:
        config = await put(saver)
        blobs = [noise(200_000, seed=number) for number in range(12)]

        for number, blob in enumerate(blobs):
            await saver.aput_writes(config, [("c", blob)], f"task{number:02}")

        assert await written(saver) == [("c", blob) for blob in blobs]


async def test_a_task_may_have_a_thousand_writes(tmp_path: Path) -> None:
    writes = [("__pregel_tasks", {"node": "n", "arg": number}) for number in range(1_000)]
    async with opened(tmp_path) as saver:
        config = await put(saver)

        await saver.aput_writes(config, writes, "task")

        assert await written(saver) == writes


async def test_a_node_may_write_five_megabytes(tmp_path: Path) -> None:
    async with opened(tmp_path) as saver:
        await heavy(saver).ainvoke({"size": 5_000_000}, thread("t"))

        state = await heavy(saver).aget_state(thread("t"))
    assert state.values["blob"] == noise(5_000_000)
    assert state.values["log"] == ["make", "after"]
