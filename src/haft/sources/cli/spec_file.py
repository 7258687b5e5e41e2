"""Reads a spec file from disk."""

from __future__ import annotations

import os
import stat

from haft.contracts import BadConfig
from haft.sources.cli.spec import LARGEST, Command, read_spec


def read_spec_file(path: str, *, prefix: str | None = None) -> list[Command]:
    """The commands of the spec file at a path. Raises `BadConfig` if the file cannot be read or is not a valid spec."""
    try:
        with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise BadConfig(f"{path} cannot be read: it is not a regular file")
            text = file.read(LARGEST + 1).decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise BadConfig(f"{path} cannot be read: {error}") from error
    return read_spec(text, path, prefix=prefix)
