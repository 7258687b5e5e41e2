"""The workspace: the current directory of a command, and its `.context/`.

The folders in `.context/` are checked before their files are used: a link or a file in place of a folder is refused, so
that nothing outside the workspace is read or written.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib import resources
from typing import Final

from cdd import files
from cdd.refusals import Refused

DOCUMENTS: Final = ("product.md", "tech-stack.md", "domain.md")
"""Facts for every track: the product, its technology and its vocabulary."""

_UNFINISHED: Final = re.compile(r"\.(?:starting|deleting)-[0-9a-f]{12}")


@dataclass(frozen=True, slots=True)
class Workspace:
    """The paths of the folders and files in `.context/`. Other modules handle the content of the files."""

    root: str

    @property
    def context(self) -> str:
        return os.path.join(self.root, ".context")

    @property
    def tracks(self) -> str:
        return os.path.join(self.context, "tracks")

    @property
    def archive(self) -> str:
        return os.path.join(self.context, "archive")

    @property
    def specs(self) -> str:
        return os.path.join(self.context, "specs")

    @property
    def inbox(self) -> str:
        return os.path.join(self.context, "inbox.md")

    def required(self) -> Workspace:
        """Return this workspace, or raise `Refused` if it has no valid `.context/` folder."""
        if not files.is_folder(self.context):
            raise Refused("There is no .context folder in this directory.", "make it with `cdd init`.")
        for folder in (self.tracks, self.archive, self.specs):
            files.is_folder(folder)
        return self

    def make_folders(self) -> list[str]:
        """Make the missing folders. Returns the relative paths of the folders that were made."""
        folders = (self.context, self.tracks, self.archive, self.specs)
        for folder in folders:
            files.is_folder(folder)
        return [os.path.relpath(folder, self.root) + "/" for folder in folders if files.make_folder(folder)]

    def write_documents(self) -> list[str]:
        """Write the missing documents. Returns the relative paths of the documents that were written."""
        made = []
        for name in DOCUMENTS:
            path = os.path.join(self.context, name)
            if not os.path.lexists(path):
                files.write(path, packaged_text("context", name).encode())
                made.append(os.path.relpath(path, self.root))
        return made

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        """Lock the tracks, and remove the hidden folders that a killed command left behind."""
        with files.locked(self.tracks):
            for name in os.listdir(self.tracks):
                if _UNFINISHED.fullmatch(name):
                    with suppress(OSError):
                        shutil.rmtree(os.path.join(self.tracks, name))
            yield


def current_workspace() -> Workspace:
    """The workspace of the current directory."""
    return Workspace(os.getcwd())


def packaged_text(folder: str, name: str) -> str:
    """A text that comes with the package."""
    return resources.files("cdd").joinpath("texts", folder, name).read_text(encoding="utf-8")
