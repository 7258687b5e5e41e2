"""Supervises one call: its command, all its processes, its limits, and its end.

Both helpers, with and without a sandbox, use this module; they differ in how they find the processes of a call
(`CallProcesses`). In a sandbox, the supervisor is pid 1 of the call's own namespace and sees only these processes.
Without a sandbox, the supervisor searches for its descendants.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
import time
from collections.abc import Callable
from typing import Any, Protocol

from haft.helper.meter import Meter
from haft.helper.protocol import read_request, send_report
from haft.helper.socket_owner import inode_of, owner_of

MAX_NAME = 400
MAX_NAMES = 1000
POLL_SECONDS = 0.02
ORDER, CALL, VIEW, CRASH = b"R", b"C", b"V", b"X"
"""The first byte of an order of the host about a program that outlives its calls; the news that a call of such a
program begins; and the first byte of a message with a descriptor, which the host gets before the answer to its
order."""
GRACE_SECONDS = 1.0
LEFTOVER_GRACE = 0.2
"""Seconds between TERM and KILL for processes that a command left behind when it ended by itself."""
NAMING_SECONDS = 0.05
GIVE_UP_SECONDS = 5.0
"""How long to wait for a process that KILL does not end (uninterruptible sleep, another user) before it is reported as
left."""


class CallProcesses(Protocol):
    """The processes of a call."""

    def pids(self) -> list[int]: ...

    def signal(self, number: int) -> None: ...


def command_of(pid: int) -> str:
    """The command line of a process, to show to people."""
    with contextlib.suppress(OSError):
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            line = file.read(MAX_NAME).replace(b"\0", b" ").strip()
        if not line:
            with open(f"/proc/{pid}/comm", "rb") as file:
                line = b"[" + file.read(64).strip() + b"]"
        return line.decode("utf-8", "replace")
    return ""


def program_of(address: str, port: int, pids: list[int]) -> str | None:
    """The command line of the process that has a TCP socket with this address and port; None if it is not found."""
    inode = inode_of(address, port)
    pid = None if inode is None else owner_of(inode, pids)
    return None if pid is None else command_of(pid)


def wake_on_children() -> int:
    """A descriptor that becomes readable when a child changes state."""
    reading, writing = os.pipe()
    os.set_blocking(reading, False)
    os.set_blocking(writing, False)
    signal.signal(signal.SIGCHLD, lambda _number, _frame: None)
    signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    return reading


def forget_signals() -> None:
    """Reset the signals: a program would otherwise ignore the signals that the host ignores, even TERM."""
    signal.set_wakeup_fd(-1)
    for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
        if signal.getsignal(number) is not signal.SIG_DFL:
            signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())


def drain(descriptor: int) -> None:
    """Empty the pipe that woke this process."""
    with contextlib.suppress(BlockingIOError):
        while os.read(descriptor, 512):
            pass


def reap(options: int = 0) -> tuple[dict[int, int], bool]:
    """The children that ended, each with its wait status; and whether any children are left. With `WUNTRACED` as
    option, stopped children are killed: a stopped supervisor supervises nothing."""
    ended: dict[int, int] = {}
    try:
        while True:
            pid, status = os.waitpid(-1, os.WNOHANG | options)
            if pid == 0:
                return ended, True
            if os.WIFSTOPPED(status):
                with contextlib.suppress(OSError):
                    os.kill(pid, signal.SIGKILL)
            else:
                ended[pid] = status
    except ChildProcessError:
        return ended, False


class Supervisor:
    """Supervises one call."""

    def __init__(
        self,
        control: socket.socket,
        main: int,
        name: str,
        processes: CallProcesses,
        meter: Meter | None,
        *,
        has_others: bool = False,
        orders: Callable[[dict[str, Any]], dict[str, Any]] = lambda _words: {},
    ) -> None:
        """`has_others`: there are also children that do not belong to the call. `orders` carries out orders of the host
        about a program that outlives its calls."""
        self._orders = orders
        self.control = control
        self.main = main
        self.name = name[:MAX_NAME]
        self.processes = processes
        self.meter = meter
        """Measures the call against its limits; None if nothing can be measured."""
        self.look_at = time.monotonic() + (0.0 if meter is None else meter.pause())
        self.status: int | None = None
        self.hit: tuple[str, float] | None = None
        self.ended: dict[int, str] = {}
        self.kill_at: float | None = None
        """The time of KILL after TERM; None while the command may run."""
        self.give_up_at = 0.0
        self.was_asked_to_end = False
        """Whether the host ended the call, or is gone."""
        self._has_others = has_others
        self._network: dict[int, socket.socket] = {}
        self._network_is_used: Callable[[], object] = lambda: None

    def await_network_use(self, sockets: list[socket.socket], is_used: Callable[[], object]) -> None:
        """Call `is_used` when one of the sockets becomes readable for the first time."""
        self._network = {end.fileno(): end for end in sockets}
        self._network_is_used = is_used

    def terminate(self, grace: float) -> None:
        """Send TERM to all processes, and set the time for KILL."""
        if self.kill_at is None or self.kill_at > time.monotonic() + grace:
            self.kill_at = time.monotonic() + grace
            self.give_up_at = self.kill_at + GIVE_UP_SECONDS
        self.record_names()
        self.processes.signal(signal.SIGTERM)
        self.processes.signal(signal.SIGCONT)

    def wait_for_exec(self) -> None:
        """Wait a moment: a process that was just forked has the command's own name until it executes its program."""
        until = time.monotonic() + NAMING_SECONDS
        while any(command_of(pid) == self.name for pid in self.processes.pids()) and time.monotonic() < until:
            time.sleep(0.002)

    def record_names(self) -> None:
        """Record the names of the processes besides the command, up to a limit."""
        for pid in self.processes.pids():
            if len(self.ended) >= MAX_NAMES:
                return
            if pid != self.main and pid not in self.ended:
                self.ended[pid] = command_of(pid)

    def kill(self) -> None:
        # Stop them first: otherwise a tree that forks as fast as we kill would win, and would run while we list it.
        self.processes.signal(signal.SIGSTOP)
        self.record_names()
        self.processes.signal(signal.SIGKILL)

    def read_order(self) -> bool:
        """Read a message of the host and act on it. Returns False if the host is gone."""
        try:
            words = self.control.recv(1)
        except (BlockingIOError, InterruptedError):
            return True
        except OSError:
            return False
        if not words:
            return False
        if words == ORDER:
            return self._ordered()
        if words == CALL:
            if self.meter is not None:
                self.meter.begin_call()
            return True
        if words == CRASH:
            self.kill()
            return True
        self.was_asked_to_end = True
        self.terminate(0.0 if b"K" in words else GRACE_SECONDS)
        return True

    def _ordered(self) -> bool:
        """Carry out an order of the host about the running program. Returns False if the host is gone."""
        self.control.setblocking(True)
        try:
            words = read_request(self.control)
        except EOFError:
            return False
        finally:
            self.control.setblocking(False)
        answer: dict[str, Any]
        if words["do"] == "whose":
            answer = {"program": program_of(words["address"], words["port"], self.processes.pids())}
        else:
            answer = self._orders(words)
        if (view := answer.pop("view", None)) is not None:
            with contextlib.suppress(OSError):
                socket.send_fds(self.control, [VIEW], [view])
            os.close(view)
        send_report(self.control, {"told": answer})
        self.control.setblocking(False)
        return True

    def check_limits(self, now: float) -> None:
        if self.meter is None or self.hit is not None or now < self.look_at:
            return
        self.hit = self.meter.look()
        self.look_at = time.monotonic() + self.meter.pause()
        if self.hit is not None:
            # No TERM before KILL: the call would get time to use even more.
            self.kill()
            self.kill_at = now
            self.give_up_at = now + GIVE_UP_SECONDS

    def watch(self, wake: int) -> list[int]:
        """Supervise until all processes have ended, or the remaining processes cannot be killed. Returns the pids of
        these remaining processes."""
        host_is_there = True
        while True:
            ended, any_left = reap()
            if self.main in ended:
                self.status = ended[self.main]
            if not any_left or (self._has_others and self._ended_alone()):
                if self.meter is not None and self.hit is None and not self.was_asked_to_end:
                    self.hit = self.meter.last_look()
                return []
            if self.status is not None and self.kill_at is None:
                self.wait_for_exec()
                self.terminate(LEFTOVER_GRACE)
            now = time.monotonic()
            self.check_limits(now)
            if self.kill_at is not None and now >= self.kill_at:
                self.kill()
                if now >= self.give_up_at:
                    return self.processes.pids()
            sources = [wake, self.control.fileno()] if host_is_there else [wake]
            ready, _, _ = select.select([*sources, *self._network], [], [], self.patience(now))
            if wake in ready:
                drain(wake)
            if not self._network.keys().isdisjoint(ready):
                self._network.clear()
                with contextlib.suppress(OSError):
                    self._network_is_used()
            if self.control.fileno() in ready and not self.read_order():
                host_is_there, self.was_asked_to_end = False, True
                self.terminate(grace=0.0)

    def _ended_alone(self) -> bool:
        """Whether the command ended by itself and left no process behind."""
        return self.status is not None and self.kill_at is None and not self.processes.pids()

    def patience(self, now: float) -> float | None:
        """How many seconds to wait for an event at most; None for no limit."""
        if self.kill_at is not None:
            return POLL_SECONDS
        return None if self.meter is None else max(0.0, self.look_at - now)

    def report(self, left: list[int], complaint: list[Any] | None) -> dict[str, Any]:
        """The report to the host about how the call ended."""
        return {
            "failed": complaint,
            "status": 0 if self.status is None else os.waitstatus_to_exitcode(self.status),
            "ended": [[pid, name] for pid, name in self.ended.items() if pid not in left],
            "left": [[pid, command_of(pid)] for pid in left],
            "hit": self.hit,
        }
