"""Helper programs, forked from one that has loaded them: a host then starts in half the time.

`forged_helpers` is in force in most packages; tests of processes, and of what the sandbox denies, start helpers as
hosts do. A helper that was forked is in no other way different: no variables, no descriptors but its own, a session of
its own.

`Forge` starts this file as a program, with one end of a socket as its standard input. A request is the name of a helper
program, with its end of the host's socket and a socket for the answer, which is the number of its process.
"""

from __future__ import annotations

import contextlib
import gc
import os
import select
import signal
import socket
import sys
from collections.abc import Iterator
from importlib import import_module
from typing import Any

PROGRAMS = ("zygote", "plain")


class Forge:
    """Forks helpers. May be used by processes that its owner forks."""

    def __init__(self, source: str) -> None:
        import subprocess

        self._asking, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            words = [sys.executable, "-I", "-S", __file__, source]
            self._process = subprocess.Popen(words, stdin=theirs, env={}, cwd="/", start_new_session=True)

    def start(self, program: str, descriptor: int) -> Forged:
        answer, theirs = socket.socketpair()
        with answer:
            with theirs:
                socket.send_fds(self._asking, [program.encode()], [descriptor, theirs.fileno()])
            return Forged(int(answer.recv(20)))

    def close(self) -> None:
        self._asking.close()
        self._process.wait()


class Forged:
    """As much of a `Popen` as hosts use."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._end = -1
        with contextlib.suppress(ProcessLookupError):
            self._end = os.pidfd_open(pid)

    def wait(self, timeout: float | None = None) -> int:
        from subprocess import TimeoutExpired

        if self._end >= 0:
            if not select.select([self._end], [], [], timeout)[0]:
                raise TimeoutExpired("a helper", timeout or 0)
            os.close(self._end)
            self._end = -1
        return 0

    def kill(self) -> None:
        if self._end >= 0:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._end, signal.SIGKILL)

    def __del__(self) -> None:
        if self._end >= 0:
            os.close(self._end)


@contextlib.contextmanager
def forged_helpers(forge: Forge) -> Iterator[None]:
    """Hosts of this process, and of those it forks, have their helpers from the forge."""
    from haft.processes import helper

    real = helper.subprocess
    known = {helper.BOOT.format(program): program for program in PROGRAMS}

    class Starting:
        """The module `subprocess`, as hosts see it."""

        def __getattr__(self, name: str) -> Any:
            return getattr(real, name)

        def Popen(self, argv: list[str], **options: Any) -> Any:
            program = known.get(argv[4]) if len(argv) == 7 and argv[0] == python else None
            if program is None or argv[5] != helper.SOURCE:
                return real.Popen(argv, **options)
            return forge.start(program, *options["pass_fds"])

    python = sys.executable
    helper.subprocess = Starting()  # type: ignore[assignment]
    try:
        yield
    finally:
        helper.subprocess = real


# The program itself.


def serve(asking: socket.socket) -> tuple[str, int]:
    """Fork for every request. Returns, in the process that is to be the helper, which one, and its socket."""
    while True:
        name, received, _, _ = socket.recv_fds(asking, 20, 2)
        if not name:
            os._exit(0)
        descriptor, answer = received
        if not os.fork():
            os.setsid()
            with socket.socket(fileno=answer) as telling:
                telling.send(str(os.getpid()).encode())
            asking.close()
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            return name.decode(), descriptor
        os.close(descriptor)
        os.close(answer)


def main(source: str) -> None:
    sys.path.append(source)
    programs = {name: import_module(f"haft.helper.{name}") for name in PROGRAMS}
    asking = socket.socket(fileno=os.dup(0))
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in range(3):
        os.dup2(nothing, stream)
    os.close(nothing)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the kernel reaps them
    gc.freeze()
    name, descriptor = serve(asking)
    try:
        programs[name].main(descriptor)
    finally:
        os._exit(0)


if __name__ == "__main__":
    main(sys.argv[1])
