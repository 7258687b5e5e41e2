"""The program that runs in place of a stubbed program. Its text is copied into every stub, so that a stub needs nothing
but the interpreter in its first line.

A stub reports its arguments, environment and working directory, then its stdin, through one pipe that it can only write
to. The recorder notes the call, and only then answers through another pipe, which the stub can only read: so a stub
that answered was recorded.
"""

from __future__ import annotations

import fcntl
import json
import os
import select
import signal
import stat
import struct
import sys
import time

TYPE_CHECKING = False  # `typing` takes long to load, and stubs run often.
if TYPE_CHECKING:
    from typing import Any

BEGIN, INPUT = 1, 2
HEADER = struct.Struct("=4s16sHBBH")
"""The head of a report: `MAGIC`, the id of the call, the pipe for the answer, the part, whether the part is complete,
and the length of what follows."""
ANSWER = struct.Struct("=16si")
"""The answer: the id of the call, and the number of the answer file, or one of `UNKNOWN` and `REFUSED`."""
MAGIC = b"hft1"
UNKNOWN, REFUSED = -1, -2
MAX_STDIN = 1 << 20
IDLE_SECONDS = 2.0
"""How long a stub waits for more stdin: a program that never reads its stdin must not wait for the end of it."""


def main(program: str, places: tuple[str, ...]) -> None:
    """Be the stub of `program`. `places` are the paths at which the directory of the pipes may be visible."""
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    place = next((each for each in places if os.path.isdir(each)), None)
    try:
        answer = ask(program, place)
        if answer == UNKNOWN:
            fail(program, "the scenario has no answer for these arguments")
        elif answer == REFUSED:
            fail(program, "the test records no more calls")
        with open(f"{place}/answers/{answer}") as file:
            told = json.load(file)
    except OSError as error:
        fail(program, f"it cannot reach the test that stubbed it: {error}")
    else:
        give(program, told)


def ask(program: str, place: str | None) -> int:
    """Report the call, and return the number of its answer."""
    if place is None:
        raise FileNotFoundError("its directory is not there")
    identity = os.urandom(16)
    number, slot = take_slot(place)
    reports = os.open(f"{place}/reports", os.O_WRONLY | os.O_NONBLOCK)  # Fails if nobody records.
    os.set_blocking(reports, True)
    facts = {
        "program": program,
        "args": [text(word) for word in sys.argv[1:]],
        "cwd": text(os.getcwd()),
        "env": environment(),
    }
    send(reports, identity, number, BEGIN, json.dumps(facts).encode())
    send(reports, identity, number, INPUT, json.dumps(read_stdin().decode("utf-8", "backslashreplace")).encode())
    while True:
        data = os.read(slot, ANSWER.size)
        if not data:  # Nobody records any more.
            return REFUSED
        told, answer = ANSWER.unpack(data)
        if told == identity:  # Another answer is for a stub that was killed.
            return int(answer)


def take_slot(place: str) -> tuple[int, int]:
    """Reserve one of the pipes for answers: its number and a descriptor."""
    names = sorted(os.listdir(f"{place}/slots"), key=int)
    for name in names:
        slot = open_slot(f"{place}/slots/{name}")
        try:
            fcntl.flock(slot, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return int(name), slot
        except BlockingIOError:
            os.close(slot)
    name = names[os.getpid() % len(names)]
    slot = open_slot(f"{place}/slots/{name}")
    fcntl.flock(slot, fcntl.LOCK_EX)
    return int(name), slot


def open_slot(path: str) -> int:
    """Open a pipe for answers, without waiting until somebody writes to it."""
    slot = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    os.set_blocking(slot, True)
    return slot


def send(reports: int, identity: bytes, slot: int, part: int, data: bytes) -> None:
    """Report one part of the call, in pieces that the kernel writes without mixing them with those of other stubs."""
    most = select.PIPE_BUF - HEADER.size
    pieces = [data[start : start + most] for start in range(0, len(data), most)] or [b""]
    for index, piece in enumerate(pieces):
        is_last = index == len(pieces) - 1
        os.write(reports, HEADER.pack(MAGIC, identity, slot, part, is_last, len(piece)) + piece)


def environment() -> dict[str, str]:
    """The environment variables."""
    try:
        with open("/proc/self/environ", "rb") as file:  # As it was given: Python may have set a locale since.
            pairs = [each.partition(b"=") for each in file.read().split(b"\0") if each]
    except OSError:
        pairs = [(name, b"=", value) for name, value in os.environb.items()]
    return {text(name): text(value) for name, _, value in pairs}


def text(word: str | bytes) -> str:
    """A word as a text, in which bytes that are not UTF-8 are written as `\\xNN`."""
    return os.fsencode(word).decode("utf-8", "backslashreplace")


def read_stdin() -> bytes:
    """What is on stdin; the rest after `MAX_STDIN` bytes is dropped. The stdin of the tool itself is read only if
    nobody can write to it any more: it may belong to a conversation between the tool and haft."""
    kept: list[bytes] = []
    size = 0
    try:
        if os.isatty(0) or (is_shared_with_tool() and not has_ended()):
            return b""
        while select.select([0], [], [], IDLE_SECONDS)[0]:
            data = os.read(0, 1 << 16)
            if not data:
                break
            kept.append(data[: max(MAX_STDIN - size, 0)])
            size += len(data)
    except (OSError, ValueError):
        pass  # There is no stdin, or it cannot be read.
    return b"".join(kept)


def is_shared_with_tool() -> bool:
    """Whether stdin is that of the tool's first process, which leads the session of all its processes."""
    leader = os.getsid(0)
    if leader == os.getpid():
        return False
    try:
        return os.path.samestat(os.fstat(0), os.stat(f"/proc/{leader}/fd/0"))
    except OSError:
        return False


def has_ended() -> bool:
    """Whether nobody can write to stdin any more."""
    poll = select.poll()
    poll.register(0, select.POLLIN)
    is_closed = any(event & select.POLLHUP for _, event in poll.poll(0))
    mode = os.fstat(0).st_mode
    return is_closed or stat.S_ISREG(mode) or stat.S_ISCHR(mode)


def give(program: str, answer: dict[str, Any]) -> None:
    """Do what the scenario says."""
    time.sleep(answer["seconds"])
    for path, content in answer["writes"].items():
        try:
            os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
            with open(path, "w", encoding="utf-8", newline="") as file:
                file.write(content)
        except OSError as error:
            fail(program, f"it cannot write {path}: {error.strerror}", code=1)
    write(1, answer["stdout"].encode())
    write(2, answer["stderr"].encode())
    os._exit(answer["exit"])


def write(descriptor: int, data: bytes) -> None:
    """Write all data."""
    while data:
        data = data[os.write(descriptor, data) :]


def fail(program: str, why: str, code: int = 125) -> None:
    """End as a program does that could not do its work."""
    write(2, f"{program} (stub): {why}\n".encode("utf-8", "backslashreplace"))
    os._exit(code)
