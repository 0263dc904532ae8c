"""The adapters that the suites of the app store and of the object store are run on."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from ibid.adapters.folder_objects import FolderObjects
from ibid.adapters.sqlite.records import SqliteRecords
from ibid.ports.objects import ObjectStore
from tests.fakes.app_table import AppTable
from tests.fakes.objects import FakeObjects
from tests.fakes.records import FakeRecords, Records


@pytest.fixture(params=["fake", "embedded", pytest.param("dynamodb", marks=pytest.mark.ministack)])
async def records(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Records]:
    if request.param == "fake":
        yield FakeRecords()
        return
    if request.param == "dynamodb":
        async with AppTable.opened(request.getfixturevalue("ministack_url")) as table:
            yield table.records
        return
    embedded = await SqliteRecords.open(tmp_path / "app.sqlite")
    yield embedded
    await embedded.close()


@pytest.fixture(params=["fake", "embedded"])
def objects(request: pytest.FixtureRequest, tmp_path: Path) -> ObjectStore:
    return FakeObjects() if request.param == "fake" else FolderObjects(tmp_path / "objects")
