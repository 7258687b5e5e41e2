"""The workspace: the directory a command is called in, and its `.context/`.

Above are the things that lie in it; below, `files`. Every folder on the way to a file is looked at before it is used: a
link or a file in its place is refused, so that nothing outside is read or written.
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
"""What is true for every track: what is built, with what, and in which words."""

_UNFINISHED: Final = re.compile(r"\.(?:starting|deleting)-[0-9a-f]{12}")


@dataclass(frozen=True, slots=True)
class Workspace:
    """Where the files are. Nothing is known about what is in them."""

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
        """Itself, where there is a `.context/` with sound folders in it; a refusal otherwise."""
        if not files.is_folder(self.context):
            raise Refused("There is no .context folder in this directory.", "make it with `cdd init`.")
        for folder in (self.tracks, self.archive, self.specs):
            files.is_folder(folder)
        return self

    def prepared(self) -> list[str]:
        """Make the folders that are missing; their names."""
        folders = (self.context, self.tracks, self.archive, self.specs)
        for folder in folders:
            files.is_folder(folder)
        return [os.path.relpath(folder, self.root) + "/" for folder in folders if files.make_folder(folder)]

    def documented(self) -> list[str]:
        """Write the documents that are missing; their names."""
        made = []
        for name in DOCUMENTS:
            path = os.path.join(self.context, name)
            if not os.path.lexists(path):
                files.write(path, shipped("context", name).encode())
                made.append(os.path.relpath(path, self.root))
        return made

    @contextmanager
    def changing(self) -> Iterator[None]:
        """Be the only one who adds or takes tracks, and clear away what one that was killed left half done."""
        with files.locked(self.tracks):
            for name in os.listdir(self.tracks):
                if _UNFINISHED.fullmatch(name):
                    with suppress(OSError):
                        shutil.rmtree(os.path.join(self.tracks, name))
            yield


def here() -> Workspace:
    """The workspace of the current directory."""
    return Workspace(os.getcwd())


def shipped(folder: str, name: str) -> str:
    """A text that comes with the package."""
    return resources.files("cdd").joinpath("texts", folder, name).read_text(encoding="utf-8")
