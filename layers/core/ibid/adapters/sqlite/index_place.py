"""Where a generation's file lies: names that any tenant's and project's id can be turned into."""

import hashlib
import re
import secrets
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_SEALED: Final = re.compile(r"(\d+)\.ibid")
_UNSEALED: Final = re.compile(r"(\d+)\.[0-9a-f]+\.writing")


def _digest(name: str) -> str:
    # Digests have one case and no separators, so no two ids meet in one folder on any file system
    return hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:40]


@dataclass(frozen=True, slots=True)
class ProjectPlace:
    """The folder of one project's generations.

    Attributes:
        root: The whole index's folder.
        tenant: Any text.
        project_id: Any text; its letters and digits show in the folder's name.
    """

    root: Path
    tenant: str
    project_id: str

    @property
    def folder(self) -> Path:
        """Name the folder, which need not exist."""
        readable = re.sub(r"[^a-z0-9]+", "-", self.project_id.lower()).strip("-")[:32]
        return self.root / _digest(self.tenant) / f"{readable}-{_digest(self.project_id)}"

    def generation(self, number: int) -> "GenerationPlace":
        """Name one generation's place."""
        return GenerationPlace(self, number)

    def sealed(self) -> Sequence[int]:
        """List the numbers of the sealed generations, rising."""
        return self._numbers(_SEALED)

    def all(self) -> Sequence[int]:
        """List the numbers of all generations, those in the making included, rising."""
        return sorted({*self._numbers(_SEALED), *self._numbers(_UNSEALED)})

    def __str__(self) -> str:
        return f"project {self.project_id!r}"

    def _numbers(self, form: re.Pattern[str]) -> list[int]:
        try:
            names = [entry.name for entry in self.folder.iterdir()]
        except FileNotFoundError:
            return []
        return sorted(int(match[1]) for name in names if (match := form.fullmatch(name)))


@dataclass(frozen=True, slots=True)
class GenerationPlace:
    """One generation: its file once it is sealed, and before that a folder for each writer."""

    project: ProjectPlace
    number: int

    @property
    def file(self) -> Path:
        """Name the sealed file, which need not exist."""
        return self.project.folder / f"{self.number}.ibid"

    def new_workshop(self) -> Path:
        """Make a folder for one writer, on the sealed file's file system."""
        folder = self.project.folder / f"{self.number}.{secrets.token_hex(8)}.writing"
        folder.mkdir(parents=True)
        return folder

    def workshops(self) -> Sequence[Path]:
        """List the writers' folders, those that a killed process left included."""
        return sorted(self.project.folder.glob(f"{self.number}.*.writing"))

    def folders(self) -> Sequence[Path]:
        """List the folders whose entries make the sealed file found, the innermost first."""
        return self.file.parents[:4]  # project, tenant, root, and where the root is

    def remove(self) -> None:
        """Remove the sealed file, every writer's folder and broken-off migrations; repeatable."""
        if self.file.is_dir() and not self.file.is_symlink():  # no file of ours
            shutil.rmtree(self.file)
        self.file.unlink(missing_ok=True)
        for draft in self.project.folder.glob(f"{self.file.name}.*.migrating"):
            draft.unlink(missing_ok=True)
        for workshop in self.workshops():
            shutil.rmtree(workshop, ignore_errors=True)

    def __str__(self) -> str:
        return f"generation {self.number} of project {self.project.project_id!r}"
