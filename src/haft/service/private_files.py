"""Small files of the state home that only their owner can read: tokens, keys."""

from __future__ import annotations

import os
import secrets


def write_new(directory: str, name: str, content: bytes, *, is_synced: bool = True) -> None:
    """Write a new file with mode 0600 in a directory with mode 0700. Raises `FileExistsError` if the file exists. No
    process sees the file half written. If `is_synced`, it is whole or missing after a power loss, too."""
    os.makedirs(directory, mode=0o700, exist_ok=True)
    temporary = os.path.join(directory, f".{secrets.token_hex(8)}.tmp")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(temporary, flags, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            if is_synced:
                os.fsync(file.fileno())
        os.link(temporary, os.path.join(directory, name))
    finally:
        os.unlink(temporary)
    if is_synced:
        sync_directory(directory)


def sync_directory(directory: str) -> None:
    """Make new and removed names in a directory survive a power loss."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def replace_file(directory: str, name: str, content: bytes) -> None:
    """Write a file with mode 0600 in a directory with mode 0700, in place of an earlier one. Any process sees the old
    content or the new one, also after a power loss."""
    os.makedirs(directory, mode=0o700, exist_ok=True)
    temporary = f".{secrets.token_hex(8)}.tmp"
    write_new(directory, temporary, content)
    try:
        os.rename(os.path.join(directory, temporary), os.path.join(directory, name))
    except OSError:
        os.unlink(os.path.join(directory, temporary))
        raise
    sync_directory(directory)
