"""The state of the files that a program depends on, such as lock files. If describing a program failed, haft tries
again when this state changes."""

from __future__ import annotations

import glob
import os
from typing import Final

from haft.files import package_of
from haft.sources.identity import identity_at

DEPENDENCY_FILES: Final = (
    "package.json", "package-lock.json", "npm-shrinkwrap.json", "pnpm-lock.yaml", "yarn.lock", "bun.lock", "bun.lockb",
    "deno.json", "deno.lock", "pyproject.toml", "uv.lock", "poetry.lock", "requirements.txt",
    "node_modules", "node_modules/.package-lock.json", ".venv", ".venv/pyvenv.cfg",
)  # fmt: skip
"""Files of a package that list its libraries, and the directories that hold these libraries."""


def dependency_state(path: str, folder: str | None = None) -> str:
    """A text that changes when a dependency file changes in the package of the program at `path`, in the program's
    directory, or in `folder`."""
    around = (package_of(path), os.path.dirname(os.path.realpath(path)), folder)
    found = []
    for place in dict.fromkeys(each for each in around if each is not None):
        names = [os.path.join(place, name) for name in DEPENDENCY_FILES]
        names += sorted(glob.glob(os.path.join(glob.escape(place), ".venv", "lib", "python*", "site-packages")))
        found += [f"{name}={identity}" for name in names if (identity := identity_at(name)) is not None]
    return "\n".join(found)
