from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ibid.adapters.sqlite.index_place import ProjectPlace

ROOT = Path("/root/of/it")


@given(tenant=st.text(max_size=128), project_id=st.text(max_size=128))
def test_any_ids_name_a_folder_two_below_the_root(tenant: str, project_id: str) -> None:
    folder = ProjectPlace(ROOT, tenant, project_id).folder

    assert folder.parents[1] == ROOT
    assert ".." not in folder.parts
    assert folder.name == folder.name.lower()
    assert folder.name.isascii()
    assert len(folder.name) < 100


@given(st.text(max_size=20), st.text(max_size=20), st.text(max_size=20), st.text(max_size=20))
def test_other_ids_name_another_folder(one: str, two: str, three: str, four: str) -> None:
    same = (one, two) == (three, four)
    folders = {ProjectPlace(ROOT, one, two).folder, ProjectPlace(ROOT, three, four).folder}

    assert (len(folders) == 1) is same


def test_a_folder_shows_which_project_it_is() -> None:
    assert ProjectPlace(ROOT, "t", "Night/Owl").folder.name.startswith("night-owl-")


def test_strange_files_are_no_generations(tmp_path: Path) -> None:
    project = ProjectPlace(tmp_path, "t", "p")
    project.folder.mkdir(parents=True)
    for name in ("1.ibid", "x.ibid", "2.ibid.7.migrating", ".DS_Store", "-3.ibid", "4.ibid~"):
        (project.folder / name).touch()
    project.generation(5).new_workshop()

    assert project.sealed() == [1]
    assert project.all() == [1, 5]


def test_a_broken_off_migration_is_removed_with_its_generation(tmp_path: Path) -> None:
    place = ProjectPlace(tmp_path, "t", "p").generation(2)
    place.project.folder.mkdir(parents=True)
    for name in ("2.ibid", "2.ibid.7f.migrating", "12.ibid.7f.migrating"):
        (place.project.folder / name).touch()

    place.remove()

    assert [path.name for path in place.project.folder.iterdir()] == ["12.ibid.7f.migrating"]


def test_workshops_are_each_generation_s_own(tmp_path: Path) -> None:
    project = ProjectPlace(tmp_path, "t", "p")
    one, eleven = project.generation(1), project.generation(11)
    made = [one.new_workshop(), one.new_workshop()]
    eleven.new_workshop()

    assert one.workshops() == sorted(made)
    one.remove()
    assert project.all() == [11]


@pytest.mark.parametrize("number", [0, 1, 10**18])
def test_a_place_says_which_it_is(number: int) -> None:
    assert str(ProjectPlace(ROOT, "t", "p's").generation(number)) == (
        f'generation {number} of project "p\'s"'
    )
