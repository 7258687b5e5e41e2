"""The program that runs in place of a stubbed program. Its text is copied into every stub, so that a stub needs nothing
but the interpreter in its first line.

A stub reports its arguments, environment and working directory, then its stdin, through one pipe that it can only write
to. The recorder notes the call, and only then answers through another pipe, which the stub can only read: so a stub
that answered was recorded.
"""

from __future__ import annotations

import contextlib
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

    Call = tuple[int, bytes, int, bytes]
    """The pipe of the reports, the id of the call, the number of its pipe for the answer, and its stdin."""

BEGIN, INPUT, OUTPUT = 1, 2, 3
HEADER = struct.Struct("=4s16sHBBH")
"""The head of a report: `MAGIC`, the id of the call, the pipe for the answer, the part, whether the part is complete,
and the length of what follows."""
ANSWER = struct.Struct("=16si")
"""The answer: the id of the call, and the number of the answer file, or one of `UNKNOWN` and `REFUSED`."""
MAGIC = b"hft1"
UNKNOWN, REFUSED = -1, -2
MAX_STDIN = 1 << 20
MAX_FILES = 10_000
"""How many files are looked at to find those that a real program writes."""
IDLE_SECONDS = 2.0
"""How long a stub waits for more stdin: a program that never reads its stdin must not wait for the end of it."""


def main(program: str, places: tuple[str, ...]) -> None:
    """Be the stub of `program`. `places` are the paths at which the directory of the pipes may be visible."""
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    place = next((each for each in places if os.path.isdir(each)), None)
    try:
        answer, call = ask(program, place)
        if answer == UNKNOWN:
            fail(program, "the scenario has no answer for these arguments")
        elif answer == REFUSED:
            fail(program, "the test records no more calls")
        with open(f"{place}/answers/{answer}") as file:
            told = json.load(file)
    except OSError as error:
        fail(program, f"it cannot reach the test that stubbed it: {error}")
    else:
        if "real" in told:
            pass_on(program, told["real"], call)
        give(program, told)


def ask(program: str, place: str | None) -> tuple[int, Call]:
    """Report the call, and return the number of its answer, and what a later report of the same call needs."""
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
    stdin = read_stdin()
    send(reports, identity, number, INPUT, json.dumps(stdin.decode("utf-8", "backslashreplace")).encode())
    while True:
        data = os.read(slot, ANSWER.size)
        if not data:  # Nobody records any more.
            return REFUSED, (reports, identity, number, stdin)
        told, answer = ANSWER.unpack(data)
        if told == identity:  # Another answer is for a stub that was killed.
            return int(answer), (reports, identity, number, stdin)


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


def pass_on(program: str, real: str, call: Call) -> None:
    """Call the real program, report what it answers, and end as it did."""
    reports, identity, number, stdin = call
    before = files()
    stdout, stderr, code = run_real(program, real, stdin)
    told = {
        "stdout": stdout.decode("utf-8", "backslashreplace"),
        "stderr": stderr.decode("utf-8", "backslashreplace"),
        "exit": code,
        "writes": written(before),
    }
    send(reports, identity, number, OUTPUT, json.dumps(told).encode())
    os._exit(code)


def run_real(program: str, real: str, stdin: bytes) -> tuple[bytes, bytes, int]:
    """Run the real program, show its output as it comes, and return stdout, stderr and the exit code."""
    own = os.path.dirname(os.path.abspath(sys.argv[0]))
    places = [each for each in os.environ.get("PATH", "").split(os.pathsep) if os.path.abspath(each) != own]
    env = {**os.environ, "PATH": os.pathsep.join(places)}
    given, feeder = feed(stdin)
    pipes = {1: os.pipe(), 2: os.pipe()}
    actions = [(os.POSIX_SPAWN_DUP2, given, 0)]
    actions += [(os.POSIX_SPAWN_DUP2, end, descriptor) for descriptor, (_, end) in pipes.items()]
    try:
        child = os.posix_spawn(real, [program, *sys.argv[1:]], env, file_actions=actions, setsigdef=[signal.SIGPIPE])
    except OSError as error:
        fail(program, f"the real program cannot run: {error.strerror}", code=126)
        raise
    os.close(given)
    left = {}
    for descriptor, (end, other) in pipes.items():
        os.close(other)
        left[end] = descriptor
    kept: dict[int, list[bytes]] = {1: [], 2: []}
    while left:
        for end in select.select([*left], [], [])[0]:
            if data := os.read(end, 1 << 16):
                kept[left[end]].append(data)
                write(left[end], data)
            else:
                del left[end]
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    os.kill(feeder, signal.SIGKILL)  # Something that the program left running may hold the pipe, and read nothing.
    os.waitpid(feeder, 0)
    return b"".join(kept[1]), b"".join(kept[2]), code if code >= 0 else 128 - code


def feed(data: bytes) -> tuple[int, int]:
    """A pipe from which the data can be read, and the process that writes it."""
    end, other = os.pipe()
    feeder = os.fork()
    if not feeder:
        os.close(end)
        write(other, data)
        os._exit(0)
    os.close(other)
    return end, feeder


def files() -> dict[str, tuple[int, int]]:
    """The files below the working directory, with their times and sizes; only the first ones if there are very many."""
    found = {}
    for at, folders, names in os.walk("."):
        folders[:] = [each for each in folders if each != ".git"]
        for name in names:
            path = os.path.normpath(os.path.join(at, name))
            with contextlib.suppress(OSError):
                each = os.lstat(path)
                if stat.S_ISREG(each.st_mode):
                    found[path] = (each.st_mtime_ns, each.st_size)
            if len(found) >= MAX_FILES:
                return found
    return found


def written(before: dict[str, tuple[int, int]]) -> dict[str, str]:
    """The texts of the files that changed since, without those that another process has open to write: a shell that
    redirects the output of the stub to a file, and the next programs of a pipeline, write these themselves."""
    found = {}
    others = open_files()
    for path, state in files().items():
        if before.get(path) != state and state[1] <= MAX_STDIN:
            with contextlib.suppress(OSError):
                each = os.lstat(path)
                if (each.st_dev, each.st_ino) in others:
                    continue
            with contextlib.suppress(OSError, UnicodeDecodeError), open(path, encoding="utf-8", newline="") as file:
                found[path] = file.read()
    return found


def open_files() -> set[tuple[int, int]]:
    """The files that this process, or another one that it may look at, has open to write, by device and inode."""
    found = set()
    processes = [each for each in os.listdir("/proc") if each.isdecimal()] if os.path.isdir("/proc") else []
    for process in processes:
        with contextlib.suppress(OSError):
            for name in os.listdir(f"/proc/{process}/fd"):
                with contextlib.suppress(OSError, ValueError, StopIteration):
                    with open(f"/proc/{process}/fdinfo/{name}") as file:
                        flags = next(line for line in file if line.startswith("flags:"))
                    each = os.stat(f"/proc/{process}/fd/{name}")
                    if int(flags.split()[1], 8) & os.O_ACCMODE and stat.S_ISREG(each.st_mode):
                        found.add((each.st_dev, each.st_ino))
    for descriptor in (1, 2):  # Without /proc, at least those of this process are known.
        with contextlib.suppress(OSError):
            each = os.fstat(descriptor)
            found.add((each.st_dev, each.st_ino))
    return found


def write(descriptor: int, data: bytes) -> None:
    """Write all data."""
    while data:
        data = data[os.write(descriptor, data) :]


def fail(program: str, why: str, code: int = 125) -> None:
    """End as a program does that could not do its work."""
    write(2, f"{program} (stub): {why}\n".encode("utf-8", "backslashreplace"))
    os._exit(code)
