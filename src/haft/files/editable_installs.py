"""The source directories of editable installs: packages that a Python environment imports from outside itself."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator
from typing import Final

MAX_FILES: Final = 50
LARGEST: Final = 64_000


def editable_sources(prefix: str) -> Iterator[str]:
    """The existing directories that the `.pth` files of an environment name."""
    files = glob.glob(os.path.join(glob.escape(prefix), "lib", "python*", "site-packages", "*.pth"))
    for path in sorted(files)[:MAX_FILES]:
        try:
            with open(path, encoding="utf-8", errors="replace") as file:
                lines = file.read(LARGEST).splitlines()
        except OSError:
            continue
        for line in lines:
            if os.path.isabs(line) and os.path.isdir(line):
                yield os.path.realpath(line)
