"""A cache of the last measurement of a large store, so that showing the usage is quick.

A maintenance pass clears the cache. A small store is measured each time and not cached.
"""

from __future__ import annotations

import contextlib
import os
import time
from dataclasses import dataclass, field
from itertools import chain
from typing import Final

from haft.storage import decode, encode

LARGE: Final = 5_000
"""A store is large if it has at least this many runs, blobs and outputs together."""
_NAME: Final = "measured"


@dataclass(slots=True)
class Measurement:
    """The disk usage of a store when `seq` was the highest sequence number in the ledger."""

    seq: int
    kept: dict[str, tuple[int, int]] = field(default_factory=dict)
    """By area: the bytes of originals, and the bytes of manifests."""
    blobs: int = 0
    contents: int = 0
    outputs: int = 0
    at: float = field(default_factory=time.time)


def load(home: str) -> Measurement | None:
    """The cached measurement; None if there is none, or if the file is damaged."""
    wrong = (OSError, ValueError, TypeError, KeyError, AttributeError)
    with contextlib.suppress(*wrong), open(os.path.join(home, _NAME), "rb") as file:
        words = decode(file.read())
        kept = {os.fsdecode(area.encode("latin-1")): (one, other) for area, one, other in words.pop("kept")}
        found = Measurement(**words, kept=kept)
        counts = (found.seq, found.blobs, found.contents, found.outputs, *chain.from_iterable(kept.values()))
        if all(isinstance(count, int) and count >= 0 for count in counts) and 0 <= found.at <= time.time():
            return found
    return None


def save(home: str, found: Measurement) -> None:
    """Cache a measurement until the next maintenance pass. If the file cannot be written, nothing is cached."""
    kept = [[os.fsencode(area).decode("latin-1"), *sizes] for area, sizes in found.kept.items()]
    words = {"seq": found.seq, "blobs": found.blobs, "contents": found.contents, "outputs": found.outputs}
    fresh = os.path.join(home, f"{_NAME}.{os.urandom(8).hex()}")
    try:
        with open(fresh, "wb") as file:
            file.write(encode({**words, "at": found.at, "kept": kept}))
        os.rename(fresh, os.path.join(home, _NAME))
    except OSError:
        with contextlib.suppress(OSError):
            os.unlink(fresh)


def clear(home: str) -> None:
    """Remove the cached measurement, after a maintenance pass changed the store."""
    with contextlib.suppress(OSError):
        os.unlink(os.path.join(home, _NAME))
