"""What a program depends on beside its own file, as far as a look shows: when that changes, a failure may be mended."""

from __future__ import annotations

import glob
import os
from typing import Final

from haft.files import package_of
from haft.sources.identity import identity_at

DEPENDED_ON: Final = (
    "package.json", "package-lock.json", "npm-shrinkwrap.json", "pnpm-lock.yaml", "yarn.lock", "bun.lock", "bun.lockb",
    "deno.json", "deno.lock", "pyproject.toml", "uv.lock", "poetry.lock", "requirements.txt",
    "node_modules", "node_modules/.package-lock.json", ".venv", ".venv/pyvenv.cfg",
)  # fmt: skip
"""Of a package: what says which libraries it needs, and where they lie."""


def surroundings(path: str, folder: str | None = None) -> str:
    """Another text when any of it changed: of the package that a file is part of, of its directory, of its `folder`."""
    around = (package_of(path), os.path.dirname(os.path.realpath(path)), folder)
    found = []
    for place in dict.fromkeys(each for each in around if each is not None):
        names = [os.path.join(place, name) for name in DEPENDED_ON]
        names += sorted(glob.glob(os.path.join(glob.escape(place), ".venv", "lib", "python*", "site-packages")))
        found += [f"{name}={identity}" for name in names if (identity := identity_at(name)) is not None]
    return "\n".join(found)
