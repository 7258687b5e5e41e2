"""The SHA-256 of bytes and of open files, in hexadecimal.

All digests in haft have this form: change sets, definitions and caches compare these strings.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import BinaryIO

from haft.contracts import ToolFailed

_CHUNK = 1 << 20


def digest_of(content: bytes) -> str:
    """The digest of bytes."""
    import hashlib  # loads OpenSSL, which most starts of the program never need

    return hashlib.sha256(content).hexdigest()


def digest_of_file(file: BinaryIO, stopped: Callable[[], bool] | None = None) -> str:
    """The digest of an open file from its current position on, with little memory. `stopped` is called between chunks;
    if it returns True, `ToolFailed` is raised."""
    import hashlib

    digest = hashlib.sha256()
    while chunk := file.read(_CHUNK):
        digest.update(chunk)
        if stopped is not None and stopped():
            raise ToolFailed("the call was stopped while it read a file")
    return digest.hexdigest()
