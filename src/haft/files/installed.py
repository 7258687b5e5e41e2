"""What a Python environment has installed by name only: sources that lie elsewhere, and are imported from there."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator
from typing import Final

MOST_FILES: Final = 50
LARGEST: Final = 64_000


def installed_by_name(prefix: str) -> Iterator[str]:
    """The directories that the `.pth` files of an environment name, where they are."""
    files = glob.glob(os.path.join(glob.escape(prefix), "lib", "python*", "site-packages", "*.pth"))
    for path in sorted(files)[:MOST_FILES]:
        try:
            with open(path, encoding="utf-8", errors="replace") as file:
                lines = file.read(LARGEST).splitlines()
        except OSError:
            continue
        for line in lines:
            if os.path.isabs(line) and os.path.isdir(line):
                yield os.path.realpath(line)
