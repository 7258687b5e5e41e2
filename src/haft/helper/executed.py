"""The files that the kernel executes when a program starts: the program, its interpreter, and their loader."""

from __future__ import annotations

import os
import struct
from collections.abc import Iterable, Iterator

from haft.helper.protocol import programs

MAX_LINE = 256
"""How much of the first line of a script the kernel reads."""
LOADER = 3
"""The type of the ELF program header that names the loader."""


def executed_files(names: Iterable[bytes], env: dict[bytes, bytes]) -> list[str]:
    """The real paths of all files that the kernel executes when the programs `names` start. Names are looked up on
    PATH. A script that is started through `env` also needs the program that `env` looks up."""
    found: dict[bytes, None] = {}
    waiting = list(names)
    while waiting:
        name = waiting.pop()
        path = next((each for each in programs(name, env) if os.path.isfile(each)), None)
        if path is None:
            continue
        real = os.path.realpath(path)
        if real not in found:
            found[real] = None
            waiting += _needed(real)
    return [os.fsdecode(path) for path in found]


def _needed(path: bytes) -> Iterator[bytes]:
    """What the kernel, or `env`, executes to run a file, in addition to the file itself."""
    try:
        with open(path, "rb") as file:
            head = file.read(MAX_LINE)
            if head.startswith(b"#!"):
                words = head[2:].split(b"\n", 1)[0].split()
                yield from words[:1]
                if words and os.path.basename(words[0]) == b"env":
                    yield from [word for word in words[1:] if not word.startswith(b"-") and b"=" not in word][:1]
            elif head.startswith(b"\x7fELF"):
                file.seek(0)
                yield from _loader(file.read(1 << 16))
    except OSError:
        return


def _loader(data: bytes) -> Iterator[bytes]:
    """The loader that an ELF file of this machine's kind names."""
    if len(data) < 64 or data[4] != 2:
        return  # A 32-bit program: it needs a loader that no tool of this machine should need.
    order = "<" if data[5] == 1 else ">"
    (start,) = struct.unpack_from(f"{order}Q", data, 32)
    size, count = struct.unpack_from(f"{order}HH", data, 54)
    for number in range(count):
        at = start + number * size
        if at + 56 > len(data):
            return
        (kind,) = struct.unpack_from(f"{order}I", data, at)
        if kind == LOADER:
            (offset,) = struct.unpack_from(f"{order}Q", data, at + 8)
            (length,) = struct.unpack_from(f"{order}Q", data, at + 32)
            yield data[offset : offset + length].rstrip(b"\0")
