"""Content by name: the SHA-256 of bytes and of open files, in hexadecimal.

The one spelling of a digest in haft: change sets, definitions and caches compare these strings.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import BinaryIO

from haft.contracts import ToolFailed

_CHUNK = 1 << 20


def digest_of(content: bytes) -> str:
    """Of bytes in memory."""
    import hashlib  # loads OpenSSL, which most starts of the program never need

    return hashlib.sha256(content).hexdigest()


def digest_of_file(file: BinaryIO, stopped: Callable[[], bool] | None = None) -> str:
    """Of an open file from its current position on, with little memory. `stopped` is asked between chunks."""
    import hashlib

    digest = hashlib.sha256()
    while chunk := file.read(_CHUNK):
        digest.update(chunk)
        if stopped is not None and stopped():
            raise ToolFailed("the call was stopped while it read a file")
    return digest.hexdigest()
