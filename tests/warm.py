"""The program, loaded once: every call of it is a process of its own, forked from that one, and begins where loading
ends.

`Warm` starts this file as a program, with one end of a socket as its standard input. A request is four descriptors (the
three streams of the call and a pipe for the answer) and JSON: its words, directory and environment, and what its
machine shall lack (`sandbox/without.py`). The answer is the number of its process and, when it has ended, its exit
code. What only a process that begins from nothing can show (what is loaded when, a signal) is tested with one.

A shell can be started from it too, in a session of its own. The program `STUB` is how that shell, and whatever it
starts, calls haft: it asks this process to fork, lends the call its streams, and ends as the call does.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import fcntl
import gc
import io
import json
import os
import pkgutil
import re
import runpy
import select
import signal
import socket
import subprocess
import sys
import termios
import threading
import time
from collections.abc import Sequence
from importlib import import_module, invalidate_caches
from importlib.util import find_spec
from io import FileIO
from pathlib import Path
from typing import Any

from forge import Forge, forged_helpers

PROGRAM = [sys.executable, "-m", "haft"]
PATIENCE = 30.0
LENGTH = 8
LIBRARIES = ("jsonschema_rs", "tree_sitter", "tree_sitter_bash")

STUB = """\
#!/bin/sh
exec 7<&0 8>&1 9>&2
calls={calls}
if [ -p $calls/asked ] && mkfifo $calls/$$; then
    : > $calls/$$.words
    [ $# = 0 ] || printf '%s\\0' "$@" > $calls/$$.words
    env -0 > $calls/$$.env
    echo $$ > $calls/asked
    read -r code < $calls/$$
    [ "$code" = cold ] || exit "$code"
fi
exec {program} "$@" 7<&- 8>&- 9>&-
"""
LENT = (7, 8, 9)
"""Where the stub keeps its streams: they are elsewhere for a moment when it asks."""
_PIDFD_GETFD = 438
"""The number of this system call on every machine."""


class Warm:
    """The program, loaded once. Each call of it is a process of its own."""

    def __init__(self) -> None:
        self._asking, theirs = socket.socketpair()
        self._one_at_a_time = threading.Lock()
        with theirs:
            self._process = subprocess.Popen([sys.executable, __file__], stdin=theirs)

    def run(
        self, words: Sequence[str], stdin: bytes, cwd: Path, env: dict[str, str], without: Sequence[str] = ()
    ) -> tuple[int, bytes, bytes]:
        """Its exit code, what it printed and what it said."""
        return self._run({"words": list(words), "cwd": str(cwd), "env": env, "without": list(without)}, stdin)

    def run_script(self, script: Path, cwd: Path, env: dict[str, str]) -> tuple[int, bytes, bytes]:
        """The same of a Python script that uses haft."""
        return self._run({"words": [], "cwd": str(cwd), "env": env, "script": str(script)}, b"")

    def _run(self, asked: dict[str, Any], stdin: bytes) -> tuple[int, bytes, bytes]:
        pipes = [os.pipe() for _ in range(4)]
        theirs = [pipes[0][0], *(write for _, write in pipes[1:])]
        self._ask(asked, theirs)
        for descriptor in theirs:
            os.close(descriptor)
        giving = threading.Thread(target=_give, args=(pipes[0][1], stdin))
        giving.start()
        try:
            out, err, answer = _read_all([read for read, _ in pipes[1:]])
        finally:
            giving.join()
        return int(answer.split()[1]), out, err

    def start(self, words: Sequence[str], terminal: int, cwd: Path, env: dict[str, str]) -> Started:
        """Start it on a terminal of its own."""
        read, write = os.pipe()
        self._ask({"words": list(words), "cwd": str(cwd), "env": env, "leads": True}, [*[terminal] * 3, write])
        os.close(write)
        return Started(open(read, "rb", buffering=0))

    def begin(self, words: Sequence[str], cwd: Path, env: dict[str, str]) -> Begun:
        """Start it with nothing to read, and with pipes for what it prints and says."""
        pipes = [os.pipe() for _ in range(3)]
        theirs = [os.open(os.devnull, os.O_RDONLY), *(write for _, write in pipes)]
        self._ask({"words": list(words), "cwd": str(cwd), "env": env}, theirs)
        for descriptor in theirs:
            os.close(descriptor)
        out, err, answer = (open(read, "rb", buffering=0) for read, _ in pipes)
        return Begun(answer, out, err)

    def shell(self, script: Path, terminal: int, cwd: Path, env: dict[str, str], calls: Path) -> None:
        """Start bash with a script on a terminal, and answer what `STUB` asks for in `calls`. The terminal tells when
        it has ended."""
        os.mkfifo(calls / "asked")
        nowhere = os.open(os.devnull, os.O_WRONLY)
        asked = {"shell": str(script), "cwd": str(cwd), "env": env, "calls": str(calls), "leads": True}
        self._ask(asked, [*[terminal] * 3, nowhere])
        os.close(nowhere)

    def _ask(self, asked: dict[str, Any], descriptors: Sequence[int]) -> None:
        request = json.dumps(asked).encode()
        with self._one_at_a_time:
            socket.send_fds(self._asking, [b"%8d" % len(request)], descriptors)
            self._asking.sendall(request)

    def close(self) -> None:
        self._asking.close()
        self._process.wait(timeout=PATIENCE)


class Started:
    """A call that goes on, used like a `subprocess.Popen`."""

    def __init__(self, answer: FileIO) -> None:
        self._answer = answer
        self._said = b""
        self.returncode: int | None = None
        while b"\n" not in self._said:
            self._said += answer.read(1) or b"-1\n"
        self.pid = int(self._said)

    def poll(self) -> int | None:
        return self._look(0)

    def wait(self, timeout: float | None = None) -> int:
        code = self._look(timeout)
        if code is None:
            raise subprocess.TimeoutExpired("haft", timeout or 0)
        return code

    def _look(self, timeout: float | None) -> int | None:
        if self.returncode is None and select.select([self._answer], [], [], timeout)[0]:
            self.returncode = int(self._answer.read(LENGTH) or b"-1")
            self._answer.close()
        return self.returncode

    def kill(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)


class Begun(Started):
    """The same, with pipes."""

    def __init__(self, answer: FileIO, stdout: FileIO, stderr: FileIO) -> None:
        super().__init__(answer)
        self.stdout = stdout
        self.stderr = stderr
        self._read = {stdout: b"", stderr: b""}

    def until_said(self, pattern: bytes) -> re.Match[bytes]:
        """Read what it says on stderr, until the pattern is found there."""
        while (found := re.search(pattern, self._read[self.stderr])) is None:
            part = self.stderr.read(65536)
            assert part, f"it ended, and said only: {self._read[self.stderr]!r}"
            self._read[self.stderr] += part
        return found

    def communicate(self, timeout: float | None = None) -> tuple[bytes, bytes]:
        """Everything that was not read yet, and what `until_said` read."""
        waiting = {stream for stream in self._read if not stream.closed}
        end = None if timeout is None else time.monotonic() + timeout
        while waiting:
            left = None if end is None else max(end - time.monotonic(), 0)
            ready = select.select(waiting, [], [], left)[0]
            if not ready:
                raise subprocess.TimeoutExpired("haft", timeout or 0)
            for stream in ready:
                part = stream.read(65536)
                self._read[stream] += part
                if not part:
                    waiting.remove(stream)
                    stream.close()
        self.wait(timeout)
        return self._read[self.stdout], self._read[self.stderr]

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)


def _give(descriptor: int, data: bytes) -> None:
    with open(descriptor, "wb") as file, contextlib.suppress(BrokenPipeError):
        file.write(data)


def _read_all(descriptors: list[int]) -> list[bytes]:
    """Everything from each of them. The last tells who writes: ended if that takes too long."""
    data = dict.fromkeys(descriptors, b"")
    waiting, end = set(descriptors), time.monotonic() + PATIENCE * 2
    while waiting:
        if time.monotonic() > end:
            os.kill(int(data[descriptors[-1]].split()[0]), signal.SIGKILL)
            raise AssertionError(f"it did not end in time; it said: {data}")
        for one in select.select(waiting, [], [], 0.2)[0]:
            part = os.read(one, 65536)
            data[one] += part
            if not part:
                waiting.remove(one)
                os.close(one)
    return list(data.values())


# The program itself.


def load():
    """Everything of haft, but for the programs that run beside it, and what it imports on use. What extras need may be
    missing here."""
    for found in pkgutil.walk_packages(import_module("haft").__path__, "haft."):
        if not found.name.startswith(("haft.helper", "haft.adapters.")):
            with contextlib.suppress(ModuleNotFoundError):
                import_module(found.name)
    for name in LIBRARIES:
        import_module(name)


def serve(asking):
    """Fork for every request, and answer when what was forked has ended. Returns, in the process that is to run the
    program, what it was asked for."""
    running = {}
    awake, wakes = os.pipe()
    os.set_blocking(wakes, False)
    signal.set_wakeup_fd(wakes, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    while True:
        ready = select.select([asking, awake], [], [])[0]
        if awake in ready:
            os.read(awake, 4096)
            _answer_for_ended(running)
        if asking not in ready:
            continue
        head, received, _, _ = socket.recv_fds(asking, LENGTH, 4)
        if not head:
            os._exit(0)
        request = b""
        while len(request) < int(head):
            request += asking.recv(int(head) - len(request))
        *streams, answering = received
        pid = os.fork()
        if not pid:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            asking.close()
            for descriptor in (awake, wakes, answering, *running.values()):
                os.close(descriptor)
            return json.loads(request), streams
        for stream in streams:
            os.close(stream)
        running[pid] = answering
        _answer(answering, pid)


def _answer_for_ended(running):
    for pid, answering in [*running.items()]:
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            _answer(answering, os.waitstatus_to_exitcode(status))
            os.close(answering)
            del running[pid]


def _answer(answering, number):
    with contextlib.suppress(BrokenPipeError):  # Who asked may be gone.
        os.write(answering, f"{number}\n".encode())


def lead(terminal):
    """Begin a session of its own, on this terminal."""
    os.setsid()
    fcntl.ioctl(terminal, termios.TIOCSCTTY, 0)


def _take(streams):
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)


def serve_shell(asked, streams):
    """Start the shell, and fork for each call that it makes. Returns, in the process that is to run the program, what
    it was asked for."""
    _take(streams)
    bash = subprocess.Popen(["bash", "--noprofile", "--norc", asked["shell"]], cwd=asked["cwd"], env=asked["env"])
    ended, calls = os.pidfd_open(bash.pid), Path(asked["calls"])
    lines = os.open(calls / "asked", os.O_RDWR)  # Written to by nobody here: so it never ends.
    while ended not in (ready := select.select([lines, ended], [], [])[0]):
        for pid in os.read(lines, 4096).split() if lines in ready else ():
            call = calls / os.fsdecode(pid)
            if not os.fork():
                os.close(lines)
                os.close(ended)
                try:
                    borrowed = _streams_of(int(pid))
                except OSError:  # Not allowed here.
                    call.write_text("cold\n")
                    os._exit(0)
                running = os.fork()
                if not running:
                    return _call_of(call), borrowed
                for stream in borrowed:
                    os.close(stream)
                code = os.waitstatus_to_exitcode(os.waitpid(running, 0)[1])
                signal.alarm(int(PATIENCE))  # Who asked may have been killed, and nobody reads it.
                call.write_text(f"{code if code >= 0 else 128 - code}\n")
                os._exit(0)
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
    os._exit(0)


def _streams_of(pid):
    """The streams of another process, to be used as its own."""
    system = ctypes.CDLL(None, use_errno=True).syscall
    handle = os.pidfd_open(pid)
    found = [system(_PIDFD_GETFD, handle, number, 0) for number in LENT]
    os.close(handle)
    if -1 in found:
        raise OSError(ctypes.get_errno(), "its streams cannot be had")
    return found


def _call_of(call):
    words, variables = (
        [os.fsdecode(word) for word in call.with_suffix(kind).read_bytes().split(b"\0")[:-1]]
        for kind in (".words", ".env")
    )
    env = dict(each.split("=", 1) for each in variables)
    return {"words": words, "cwd": env["PWD"], "env": env}


def become(asked, streams):
    """Begin as `python -m` would have: with these streams, here, and with this environment alone."""
    _take(streams)
    sys.stdin = io.TextIOWrapper(open(0, "rb", closefd=False), "utf-8")
    sys.stdout = io.TextIOWrapper(open(1, "wb", closefd=False), "utf-8")
    sys.stderr = io.TextIOWrapper(open(2, "wb", closefd=False), "utf-8", "backslashreplace", line_buffering=True)
    if asked.get("without"):
        sys.path.append(str(Path(__file__).parent / "sandbox"))
        import_module("without").restrict(asked["without"])
        sys.path.pop()
    os.chdir(asked["cwd"])
    os.environ.clear()
    os.environ.update(asked["env"])
    sys.path[:1] = [asked["cwd"], *filter(None, asked["env"].get("PYTHONPATH", "").split(":"))]
    sys.dont_write_bytecode = bool(asked["env"].get("PYTHONDONTWRITEBYTECODE"))
    sys.argv[1:] = asked["words"]
    sys.modules["__main__"].__spec__ = find_spec("haft.__main__")  # What its worker processes load.
    invalidate_caches()


def run_script(path):
    """Run it as `python FILE` does."""
    sys.argv[0], sys.path[0] = path, str(Path(path).parent)
    runpy.run_path(path, run_name="__main__")
    finish(0)


def finish(code):
    """End as Python does, but do not take apart what was loaded: that takes longer than most commands."""
    threading._shutdown()
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    load()
    forge = Forge(import_module("haft.processes.helper").SOURCE) if sys.platform == "linux" else None
    gc.freeze()
    asked, streams = serve(socket.socket(fileno=os.dup(0)))
    if asked.get("leads"):
        lead(streams[0])
    if "shell" in asked:
        asked, streams = serve_shell(asked, streams)
    become(asked, streams)
    # A helper that was forked elsewhere would not lack what this process lacks.
    helpers = forged_helpers(forge) if forge and not asked.get("without") else contextlib.nullcontext()
    try:
        with helpers:
            if "script" in asked:
                run_script(asked["script"])
            else:
                import_module("haft.__main__").main()
    except SystemExit as end:
        finish(end.code)
