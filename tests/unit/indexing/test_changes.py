from pathlib import Path

from ibid.indexing.changes import Changes, compare, hashes_of, marks_of_generation
from tests.unit.indexing.world import PROJECT, TENANT, World


def test_files_are_counted_by_what_became_of_them() -> None:
    before = {"a": ((1, "x"),), "b": ((1, "x"),), "c": ((1, "x"),)}
    now = {"a": ((1, "x"),), "b": ((2, "x"),), "d": ((1, "x"),)}

    assert compare(before, now) == Changes(new=1, modified=1, deleted=1, unchanged=1)
    assert hashes_of(now) == ["x", "x", "x"]


async def test_a_generation_of_many_pages_is_read_whole(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.write({f"{n:04}.py": f"x = {n}\n" for n in range(1_001)})
    await world.create()
    await world.run()

    marks = await marks_of_generation(world.index, tenant=TENANT, project_id=PROJECT, generation=2)

    assert len(marks) == 1_001
    assert {len(mark) for mark in marks.values()} == {1}


async def test_a_generation_that_is_gone_or_never_was_has_no_files(tmp_path: Path) -> None:
    index = World(tmp_path).index

    for generation in (None, 7):
        assert (
            await marks_of_generation(
                index, tenant=TENANT, project_id=PROJECT, generation=generation
            )
            == {}
        )
