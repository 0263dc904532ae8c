"""A source, whatever its kind, as a folder on disk for as long as it is indexed."""

import asyncio
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import assert_never

from ibid.domain.errors import ObjectMissing, SourceRejected
from ibid.domain.projects import FolderSource, GitSource, Source, UploadSource
from ibid.domain.uploads import upload_key
from ibid.indexing.archives import unpack
from ibid.indexing.clone import cloned
from ibid.indexing.commits import head_of
from ibid.indexing.ending import to_the_end
from ibid.indexing.fetched import Fetched
from ibid.indexing.transfer import Transfer
from ibid.ports.objects import ObjectStore

AT_ONCE = 2
"""Archives and repositories brought to disk at the same time; more wait."""

Secrets = Callable[[str], Awaitable[str]]


class SourceOpener:
    """Opens folders, uploaded archives and git repositories.

    Args:
        objects: Where uploads are.
        secrets: Gives the secret that a git source's `credential` names; without it, such a
            source is refused.
        transfer: Makes the limits of one clone.
        workspace: Where temporary folders are made; None means the system's place.
    """

    def __init__(
        self,
        objects: ObjectStore,
        *,
        secrets: Secrets | None = None,
        transfer: Callable[[], Transfer] = Transfer,
        workspace: Path | None = None,
    ) -> None:
        self._objects = objects
        self._secrets = secrets
        self._transfer = transfer
        self._workspace = workspace
        self._turns = asyncio.Semaphore(AT_ONCE)

    @asynccontextmanager
    async def opened(
        self, source: Source, *, tenant: str, project_id: str
    ) -> AsyncIterator[Fetched]:
        """Bring a source to disk, and remove at the end what was brought.

        Raises:
            SourceRejected: It is not there, or not one to index.
            ObjectStoreUnavailable: The upload could not be read.
        """
        if isinstance(source, FolderSource):
            yield await asyncio.to_thread(_folder, source)
            return
        folder = tempfile.TemporaryDirectory(
            prefix="ibid-source-", dir=self._workspace, ignore_cleanup_errors=True
        )
        try:
            async with self._turns:
                fetched = await self._fetch(source, Path(folder.name), tenant, project_id)
            yield fetched
        finally:
            await to_the_end(asyncio.to_thread(folder.cleanup))

    async def _fetch(
        self, source: GitSource | UploadSource, folder: Path, tenant: str, project_id: str
    ) -> Fetched:
        files = folder / "files"
        files.mkdir()
        match source:
            case GitSource():
                secret = await self._secret(source.credential)
                return await cloned(source, files, self._transfer(), secret)
            case UploadSource():
                key = upload_key(
                    tenant=tenant,
                    project_id=project_id,
                    upload_id=source.upload_id,
                    file_name=source.file_name,
                )
                archive = folder / "archive"
                await self._download(key, archive)
                return await to_the_end(
                    asyncio.to_thread(_unpacked, archive, source.file_name, files)
                )
            case _:
                assert_never(source)

    async def _secret(self, credential: str | None) -> str | None:
        if credential is None:
            return None
        if self._secrets is None:
            raise SourceRejected(f"There is no credential {credential!r}")
        return await self._secrets(credential)

    async def _download(self, key: str, to: Path) -> None:
        try:
            with to.open("wb") as file:
                async for piece in self._objects.get(key):
                    await asyncio.to_thread(file.write, piece)
        except ObjectMissing:
            raise SourceRejected("The upload is gone, or was never finished") from None


def _folder(source: FolderSource) -> Fetched:
    root = Path(source.path)
    if not root.is_absolute() or not root.is_dir():
        raise SourceRejected(f"There is no folder {source.path!r}")
    return Fetched(root=root, head=head_of(root))


def _unpacked(archive: Path, file_name: str, into: Path) -> Fetched:
    writer = unpack(archive, file_name, into)
    return Fetched(root=writer.top, skipped=writer.skipped)
