"""A source, whatever its kind, as a folder on disk for as long as it is indexed."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import assert_never

from ibid.domain.errors import SourceRejected
from ibid.domain.projects import FolderSource, GitSource, Source, UploadSource
from ibid.indexing.commits import head_of
from ibid.indexing.fetched import Fetched
from ibid.ports.objects import ObjectStore


class SourceOpener:
    """Opens folders, uploaded archives and git repositories.

    Args:
        objects: Where uploads are.
    """

    def __init__(self, objects: ObjectStore) -> None:
        self._objects = objects

    @asynccontextmanager
    async def opened(
        self, source: Source, *, tenant: str, project_id: str
    ) -> AsyncIterator[Fetched]:
        """Bring a source to disk, and remove at the end what was brought.

        Raises:
            SourceRejected: It is not there, or not one to index.
            ObjectStoreUnavailable: The upload could not be read.
        """
        match source:
            case FolderSource():
                yield await asyncio.to_thread(_folder, source)
            case UploadSource() | GitSource():
                raise SourceRejected("not yet")
            case _:
                assert_never(source)


def _folder(source: FolderSource) -> Fetched:
    root = Path(source.path)
    if not root.is_absolute() or not root.is_dir():
        raise SourceRejected(f"There is no folder {source.path!r}")
    return Fetched(root=root, head=head_of(root))
