"""Watching over one call: its command, everything below it, its limits, and how it ends.

The same for both helpers; they differ in how they see the processes of a call (`Company`). A supervisor that is pid 1
of the call's own namespace sees nothing else; a plain one looks for its descendants.
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
from haft.helper.words import read_request, tell

MOST_NAME = 400
MOST_NAMES = 1000
POLL_SECONDS = 0.02
ORDER, VIEW = b"R", b"V"
"""Before a message about a program that outlives its calls; and what goes with a descriptor, before the answer."""
GRACE_SECONDS = 1.0
LEFTOVER_GRACE = 0.2
"""Seconds between TERM and KILL for what a command left behind when it ended by itself."""
NAMING_SECONDS = 0.05
GIVE_UP_SECONDS = 5.0
"""How long a process may resist KILL (uninterruptible sleep, another user's) before it is reported as left."""


class Company(Protocol):
    """The processes of a call."""

    def pids(self) -> list[int]: ...

    def signal(self, number: int) -> None: ...


def command_of(pid: int) -> str:
    """What a process calls itself, for people."""
    with contextlib.suppress(OSError):
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            line = file.read(MOST_NAME).replace(b"\0", b" ").strip()
        if not line:
            with open(f"/proc/{pid}/comm", "rb") as file:
                line = b"[" + file.read(64).strip() + b"]"
        return line.decode("utf-8", "replace")
    return ""


def wake_on_children() -> int:
    """A descriptor that becomes readable when a child changes state."""
    reading, writing = os.pipe()
    os.set_blocking(reading, False)
    os.set_blocking(writing, False)
    signal.signal(signal.SIGCHLD, lambda _number, _frame: None)
    signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    return reading


def forget_signals() -> None:
    """As a new program expects them: what the host ignores, its tools would ignore too, TERM included."""
    signal.set_wakeup_fd(-1)
    for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
        if signal.getsignal(number) is not signal.SIG_DFL:
            signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())


def drain(descriptor: int) -> None:
    """Forget what woke us."""
    with contextlib.suppress(BlockingIOError):
        while os.read(descriptor, 512):
            pass


def reap(options: int = 0) -> tuple[dict[int, int], bool]:
    """The children that ended, with their wait status, and whether any are left. With `WUNTRACED` as option, those that
    were stopped are killed: a supervisor that stands still watches over nothing."""
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
    """One call."""

    def __init__(
        self,
        control: socket.socket,
        main: int,
        name: str,
        company: Company,
        meter: Meter | None,
        *,
        has_others: bool = False,
        orders: Callable[[dict[str, Any]], dict[str, Any]] = lambda _words: {},
    ) -> None:
        """`has_others`: there are children besides that are no part of the call. `orders` does what the host wants done
        with a program that outlives its calls."""
        self._orders = orders
        self.control = control
        self.main = main
        self.name = name[:MOST_NAME]
        self.company = company
        self.meter = meter
        """What it is held to; None where nothing can be measured."""
        self.look_at = time.monotonic() + (0.0 if meter is None else meter.pause())
        self.status: int | None = None
        self.hit: tuple[str, float] | None = None
        self.ended: dict[int, str] = {}
        self.kill_at: float | None = None
        """When TERM has had its chance; None while the command may run."""
        self.give_up_at = 0.0
        self.was_told = False
        """Whether the host wanted an end, or is gone."""
        self._has_others = has_others

    def terminate(self, grace: float) -> None:
        """TERM everything, and set the time for KILL."""
        if self.kill_at is None or self.kill_at > time.monotonic() + grace:
            self.kill_at = time.monotonic() + grace
            self.give_up_at = self.kill_at + GIVE_UP_SECONDS
        self.note_others()
        self.company.signal(signal.SIGTERM)
        self.company.signal(signal.SIGCONT)

    def let_them_exec(self) -> None:
        """What was forked a moment ago still bears the command's own name: give it a moment to become what it is."""
        until = time.monotonic() + NAMING_SECONDS
        while any(command_of(pid) == self.name for pid in self.company.pids()) and time.monotonic() < until:
            time.sleep(0.002)

    def note_others(self) -> None:
        """What is not the command itself is remembered by name: nobody reads more than so many."""
        for pid in self.company.pids():
            if len(self.ended) >= MOST_NAMES:
                return
            if pid != self.main and pid not in self.ended:
                self.ended[pid] = command_of(pid)

    def kill(self) -> None:
        # Stopped first, so that a tree that forks as fast as we kill loses the race, and does not run while we look.
        self.company.signal(signal.SIGSTOP)
        self.note_others()
        self.company.signal(signal.SIGKILL)

    def told(self) -> bool:
        """Read what the host says. False when it is gone."""
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
        self.was_told = True
        self.terminate(0.0 if b"K" in words else GRACE_SECONDS)
        return True

    def _ordered(self) -> bool:
        """Do what the host wants done with a program that goes on. False when the host is gone."""
        self.control.setblocking(True)
        try:
            words = read_request(self.control)
        except EOFError:
            return False
        finally:
            self.control.setblocking(False)
        if words["do"] == "call" and self.meter is not None:
            self.meter.begin_call()
        answer = self._orders(words)
        if (view := answer.pop("view", None)) is not None:
            with contextlib.suppress(OSError):
                socket.send_fds(self.control, [VIEW], [view])
            os.close(view)
        tell(self.control, {"told": answer})
        self.control.setblocking(False)
        return True

    def check_limits(self, now: float) -> None:
        if self.meter is None or self.hit is not None or now < self.look_at:
            return
        self.hit = self.meter.look()
        self.look_at = time.monotonic() + self.meter.pause()
        if self.hit is not None:
            # No TERM first: what has gone too far is not given time to go further.
            self.kill()
            self.kill_at = now
            self.give_up_at = now + GIVE_UP_SECONDS

    def watch(self, wake: int) -> list[int]:
        """Until nothing is left. What could not be killed, where that happened."""
        host_is_there = True
        while True:
            ended, any_left = reap()
            if self.main in ended:
                self.status = ended[self.main]
            if not any_left or (self._has_others and self._is_alone_over()):
                if self.meter is not None and self.hit is None and not self.was_told:
                    self.hit = self.meter.last_look()
                return []
            if self.status is not None and self.kill_at is None:
                self.let_them_exec()
                self.terminate(LEFTOVER_GRACE)
            now = time.monotonic()
            self.check_limits(now)
            if self.kill_at is not None and now >= self.kill_at:
                self.kill()
                if now >= self.give_up_at:
                    return self.company.pids()
            sources = [wake, self.control.fileno()] if host_is_there else [wake]
            ready, _, _ = select.select(sources, [], [], self.patience(now))
            if wake in ready:
                drain(wake)
            if self.control.fileno() in ready and not self.told():
                host_is_there, self.was_told = False, True
                self.terminate(grace=0.0)

    def _is_alone_over(self) -> bool:
        """Whether the command ended by itself, and left nothing."""
        return self.status is not None and self.kill_at is None and not self.company.pids()

    def patience(self, now: float) -> float | None:
        """How long to sleep at most."""
        if self.kill_at is not None:
            return POLL_SECONDS
        return None if self.meter is None else max(0.0, self.look_at - now)

    def report(self, left: list[int], complaint: list[Any] | None) -> dict[str, Any]:
        """How it ended, in words for the host."""
        return {
            "failed": complaint,
            "status": 0 if self.status is None else os.waitstatus_to_exitcode(self.status),
            "ended": [[pid, name] for pid, name in self.ended.items() if pid not in left],
            "left": [[pid, command_of(pid)] for pid in left],
            "hit": self.hit,
        }
