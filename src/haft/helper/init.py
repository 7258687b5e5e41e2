"""Pid 1 of one call: prepares its room ahead, starts the command in it, watches over it and has the last word.

An init restricts itself and then spawns the command, which is cheaper than forking once more. It keeps its own
capabilities, which nothing it starts inherits, and nothing can trace or signal it from below. When it ends, the kernel
kills what is left in its namespace.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from haft.helper import cgroups, jail, kernel, landlock, seccomp
from haft.helper.meter import Meter, apply_rlimits, opened_own_io, rlimits
from haft.helper.paths import WrittenFile, check_same
from haft.helper.sockets import fullest
from haft.helper.supervisor import Supervisor, wake_on_children
from haft.helper.words import argv_and_env, failure, never_started, programs, read_request, tell

STREAMS = 3


class Everyone:
    """The processes of a call, seen by pid 1 of its namespace: all there are, but for those that were there before."""

    def __init__(self, but: frozenset[int] = frozenset()) -> None:
        self._but = but | {1}

    def pids(self) -> list[int]:
        return [int(name) for name in os.listdir("/proc") if name.isdigit() and int(name) not in self._but]

    def signal(self, number: int) -> None:
        with contextlib.suppress(OSError):
            os.kill(-1, number)


class Init:
    """Pid 1 of one call, from before the call is known."""

    def __init__(
        self,
        orders: socket.socket,
        template: jail.Template,
        group: cgroups.Group | None,
        carriers: Mapping[str, Callable[..., None]],
    ) -> None:
        """`carriers`, by the word in a request, carry what is no single call: a program that is kept loaded, and one
        that outlives calls."""
        self._orders = orders
        self._carriers = carriers
        self._template = template
        self._group = group
        self._abi = landlock.version()
        self._filter = b""
        self._is_root = os.geteuid() == 0
        self._own_io = opened_own_io()
        self._full_sockets = fullest()
        self._witnesses: list[int] = []
        """Where the host watches the layer that is mounted next."""
        self._last: Callable[[], None] | None = None
        """Once the command runs: makes the kernel kill this process after it, where memory runs out."""

    def live(self, kind: dict[str, Any]) -> None:
        """Prepare, wait for the call, carry it to its end."""
        self._filter = self._template.filters[kind["unasked"]]
        room = jail.Room(
            self._template,
            network=kind["network"],
            extra=kind["extra"],
            links=kind["links"],
            sealed=kind.get("sealed", False),
            unasked=kind["unasked"],
            scoped=kind.get("scoped", False),
        )
        problem = self._prepare(room)
        if kind.get("trial"):
            words = {"proc": room.has_proc, "network": not room.has_network, "problem": problem and str(problem)}
            self._orders.sendall(json.dumps(words).encode())
        message, descriptors, _, _ = socket.recv_fds(self._orders, 1, 3 + STREAMS)
        if not message:
            return
        for descriptor in descriptors:
            os.set_inheritable(descriptor, False)  # `recv_fds` drops MSG_CMSG_CLOEXEC in some Pythons.
        control = socket.socket(fileno=descriptors[0])
        wake = wake_on_children()
        try:
            request = read_request(control)
        except EOFError:
            return
        self.take_handed(room, request, descriptors, 1 + STREAMS)
        for word, carrier in self._carriers.items():
            if request.get(word):
                carrier(self, room, control, wake, request, descriptors[1:], problem)
                return
        main = self._begin(room, request, control, descriptors[1:], problem)
        if main is not None:
            self.carry(control, main, request, room, wake)

    def take_handed(self, room: jail.Room, request: dict[str, Any], descriptors: list[int], count: int) -> None:
        """Take what came with a call after so many descriptors: what each is for, the request says."""
        self._forget_witnesses()
        for name, descriptor in zip(request["handed"], descriptors[count:], strict=False):
            if name == "share":
                room.share = socket.socket(fileno=descriptor)
            else:
                self._witnesses.append(descriptor)
        del descriptors[count:]

    def _forget_witnesses(self) -> None:
        while self._witnesses:
            os.close(self._witnesses.pop())

    def _prepare(self, room: jail.Room) -> OSError | None:
        """Everything that does not depend on the call. What went wrong is told when there is someone to tell."""
        try:
            room.furnish()
            kernel.limit_future_capabilities(kernel.ROOT_KEEPS if self._is_root else ())
            self._last = room.let_commands_go_first()
            kernel.prctl(kernel.PR_SET_DUMPABLE, 0, "prctl(PR_SET_DUMPABLE)")
            if self._is_root:
                self._filter_calls()  # Ahead, since root needs no namespace any more.
        except OSError as error:
            return error
        return None

    def _begin(
        self,
        room: jail.Room,
        request: dict[str, Any],
        control: socket.socket,
        streams: list[int],
        problem: OSError | None,
    ) -> int | None:
        """Start the command. Its pid; None where it was not started, and the host was told why."""
        try:
            # A workspace that is gone takes its mounts with it, and the room cannot be furnished.
            is_stale = self.is_elsewhere(request)
            if problem is not None and not is_stale:
                raise problem
            if is_stale or not self._enter(room, request):
                tell(control, {"stale": True})
                return None
        except WrittenFile as error:
            tell(control, {"replaced": error.filename})
            return None
        except (OSError, ValueError) as error:
            tell(control, never_started([None, f"the sandbox around it could not be built: {error}"]))
            return None
        try:
            main = self._start(request, list(streams))
            self.go_last()
        except (OSError, ValueError) as error:
            tell(control, never_started(failure(error)))
            return None
        for descriptor in streams:
            os.close(descriptor)
        return main

    def is_elsewhere(self, request: dict[str, Any]) -> bool:
        """Whether the host has another workspace by now than when the zygote began."""
        return bool(request["root"] != self._template.root)

    def go_last(self) -> None:
        """Have this process killed after what it started."""
        if self._last is not None:
            self._last()

    def _enter(self, room: jail.Room, request: dict[str, Any]) -> bool:
        """Open the room as far as this call may, and stand in its directory. False where that is another one than the
        host meant: the workspace was replaced since the zygote began."""
        confinement = request["sandbox"]
        if not self.open_up(room, request):
            return False
        room.forget_host()
        os.chdir(os.fsencode(request["directory"]))
        if confinement["layer"] is None and not _is(b".", request["identity"]):
            return False
        self.restrict(room, request, room.writable_places(confinement))
        return True

    def open_up(self, room: jail.Room, request: dict[str, Any]) -> bool:
        """Open the room as far as this call may. False where the workspace is another one than the host meant."""
        found = os.stat(self._template.workspace)
        if not [found.st_dev, found.st_ino] == request["root"] == self._template.root:
            return False
        for path, *which in request["same"]:
            check_same(path, which)
        layer = request["sandbox"]["layer"]
        if layer is not None and not _is(os.fsencode(request["directory"]), request["identity"]):
            return False  # Looked at before it is covered: under a layer everything has other numbers.
        room.open_up(request["sandbox"])
        for descriptor in self._witnesses if layer is not None else ():
            kernel.watch(descriptor, self._template.workspace)
        self._forget_witnesses()
        if self._group is not None:
            self._group.begin()
        return True

    def restrict(self, room: jail.Room, request: dict[str, Any], writable: Sequence[str | int]) -> None:
        """From now on this process, and what it starts, is held to the sandbox and the limits of a call."""
        limits = request["limits"]
        user = not self._is_root
        alone = user and bool(limits["max_processes"]) and self._count_alone(room)
        apply_rlimits(rlimits(limits, user=user, calls=cgroups.TASKS_PER_PROCESS if alone else request["calls"]))
        kernel.prctl(kernel.PR_SET_NO_NEW_PRIVS, 1, "prctl(PR_SET_NO_NEW_PRIVS)")
        if self._abi:
            landlock.restrict(writable, tcp=may_use_tcp(room, request["sandbox"]), abi=self._abi)
        if not self._is_root:
            self._filter_calls()

    def rules(self, room: jail.Room, confinement: dict[str, Any]) -> int | None:
        """The second layer of a call, for whoever restricts itself by it; None where there is none."""
        if not self._abi:
            return None
        return landlock.ruleset(room.writable_places(confinement), tcp=may_use_tcp(room, confinement), abi=self._abi)

    def _filter_calls(self) -> None:
        if self._filter:
            seccomp.restrict(self._filter)
            if self._group is None or not self._group.counts_memory:
                seccomp.restrict(seccomp.for_uncounted_memory())

    def _count_alone(self, room: jail.Room) -> bool:
        """The kernel counts an ordinary user's processes by user namespace: one more, and this call has a count of its
        own. In the one that all calls share, a fork bomb would keep the others from forking."""
        if not room.has_proc:
            return False
        uid, gid = os.geteuid(), os.getegid()
        try:
            kernel.unshare(kernel.CLONE_NEWUSER, "users")
        except OSError:
            return False
        kernel.prctl(kernel.PR_SET_DUMPABLE, 1, "prctl(PR_SET_DUMPABLE)")  # Else its files in /proc are root's.
        for name, words in kernel.maps_to_itself(uid, gid):
            room.tell_kernel(name, words)
        kernel.prctl(kernel.PR_SET_DUMPABLE, 0, "prctl(PR_SET_DUMPABLE)")
        kernel.limit_future_capabilities(())
        return True

    @staticmethod
    def _start(request: dict[str, Any], streams: list[int]) -> int:
        argv, env = argv_and_env(request)
        if not request["stdin"]:
            streams[0] = os.open("/dev/null", os.O_RDONLY | os.O_CLOEXEC)
        actions = [(os.POSIX_SPAWN_DUP2, descriptor, target) for target, descriptor in enumerate(streams)]
        told: OSError | None = None
        for program in programs(argv[0], env):
            try:
                return os.posix_spawn(
                    program, argv, env, file_actions=actions, setsid=True, setsigmask=(),
                    setsigdef=signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP},
                )  # fmt: skip
            except (FileNotFoundError, NotADirectoryError) as error:
                told = told or error
            except PermissionError as error:
                told = error
        raise told or FileNotFoundError(2, os.strerror(2))

    def carry(
        self,
        control: socket.socket,
        main: int,
        request: dict[str, Any],
        room: jail.Room,
        wake: int,
        others: frozenset[int] = frozenset(),
        at_end: Callable[[Supervisor], dict[str, Any]] = lambda _supervisor: {},
        orders: Callable[[dict[str, Any]], dict[str, Any]] = lambda _words: {},
    ) -> None:
        """Watch over the command until nothing of the call is left, and have the last word, with what `at_end` adds to
        it. Who is among the `others` is no part of the call. `orders` does what the host wants done meanwhile."""
        control.setblocking(False)
        everyone = Everyone(others)
        meter = None
        if room.has_proc:
            meter = Meter(
                request["limits"],
                everyone.pids,
                scratch="/dev/shm",  # noqa: S108  the call's own, as are all that lie in memory
                roots=room.disk_places(request["sandbox"]),
                group=self._group,
                own_io=self._own_io,
                shares_network=room.has_network,
                full_sockets=self._full_sockets,
                kept=room.kept,
            )
        name = " ".join(request["argv"])
        supervisor = Supervisor(control, main, name, everyone, meter, has_others=bool(others), orders=orders)
        left = supervisor.watch(wake)
        if supervisor.hit is None and supervisor.status and meter is not None and (full := meter.scratch_is_full()):
            supervisor.hit = "memory_bytes", full
        if self._group is not None and supervisor.hit is None:
            if self._group.killed_for_memory():
                supervisor.hit = "memory_bytes", self._group.memory_used()
            elif refused := self._group.refused_forks():
                supervisor.hit = "max_processes", request["limits"]["max_processes"] + refused
        if meter is not None:
            meter.final_count()
            supervisor.hit = supervisor.hit or meter.spilled
        spilled = None if meter is None else meter.spilled
        tell(control, {**supervisor.report(left, None), "spilled": spilled, **at_end(supervisor)})


def may_use_tcp(room: jail.Room, confinement: dict[str, Any]) -> bool:
    """Without a network of its own the second layer has to do; else programs may reach themselves."""
    return bool(confinement["network"] or not room.has_network)


def _is(directory: bytes, which: list[int]) -> bool:
    """Whether it is the one that the host meant."""
    try:
        found = os.stat(directory)
    except OSError:
        return False
    return [found.st_dev, found.st_ino] == which
