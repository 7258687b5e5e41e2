"""Functions on the descriptor of a directory: list its names, make them durable.

The descriptors come from `walk` and may be O_PATH, which can neither be listed nor synced, so each function opens a
descriptor of its own.
"""

from __future__ import annotations

import errno
import os
from itertools import islice

_READABLE = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC


def some_names(directory: int, most: int) -> list[str]:
    """Up to `most` names in `directory`, for hints; empty if it cannot be read."""
    try:
        descriptor = os.open(".", _READABLE, dir_fd=directory)
    except OSError:
        return []
    try:
        with os.scandir(descriptor) as entries:
            return [entry.name for entry in islice(entries, most)]
    except OSError:
        return []
    finally:
        os.close(descriptor)


def sync_directory(directory: int) -> None:
    """Make the names in `directory` durable, if its file system supports that."""
    try:
        descriptor = os.open(".", _READABLE, dir_fd=directory)
    except PermissionError:
        return  # writable but not readable: there is nothing to sync through
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):
            raise
    finally:
        os.close(descriptor)
