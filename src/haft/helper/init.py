"""The init (pid 1) of one call: prepares the sandbox ahead, starts the command, supervises it and reports how it ended.

An init restricts itself and then spawns the command, which is cheaper than another fork. The init keeps its own
capabilities. The processes that it starts do not inherit these capabilities, and can neither trace nor signal the init.
When it ends, the kernel kills the remaining processes of its namespace.
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
from haft.helper.local_network import sockets_for_any_port
from haft.helper.meter import Meter, apply_rlimits, open_own_io, rlimits
from haft.helper.paths import Replaced, check_same
from haft.helper.protocol import argv_and_env, failure, never_started, programs, read_request, send_report
from haft.helper.sockets import largest_buffers
from haft.helper.supervisor import Supervisor, wake_on_children

STREAMS = 3


class NamespaceProcesses:
    """The processes of a call, as its init (pid 1) sees them: all processes of the namespace, except init itself and
    the pids in `but`."""

    def __init__(self, but: frozenset[int] = frozenset()) -> None:
        self._but = but | {1}

    def pids(self) -> list[int]:
        return [int(name) for name in os.listdir("/proc") if name.isdigit() and int(name) not in self._but]

    def signal(self, number: int) -> None:
        with contextlib.suppress(OSError):
            os.kill(-1, number)


class Init:
    """The init (pid 1) of one call's sandbox. It starts, and prepares the sandbox, before the call is known."""

    def __init__(
        self,
        orders: socket.socket,
        template: jail.Template,
        group: cgroups.Group | None,
        runners: Mapping[str, Callable[..., None]],
    ) -> None:
        """`runners` maps a field of the request to the function that runs such a request. These requests start programs
        that serve more than one call: a program that is kept loaded, or one that outlives its calls."""
        self._orders = orders
        self._runners = runners
        self._template = template
        self._group = group
        self._abi = landlock.version()
        self._filter = b""
        self._is_root = os.geteuid() == 0
        self._own_io = open_own_io()
        self._full_sockets = largest_buffers()
        self._witnesses: list[int] = []
        """Inotify descriptors from the host. When the next layer is mounted, each of them gets a watch on it."""
        self._last: Callable[[], None] | None = None
        """Called once the command runs: from then on, if memory runs out, the kernel kills the command before this
        process."""

    def live(self, kind: dict[str, Any]) -> None:
        """Prepare the sandbox, wait for the call, and run it."""
        self._filter = self._template.filters[kind["unasked"]]
        sandbox = jail.CallSandbox(
            self._template,
            network=kind["network"],
            extra=kind["extra"],
            links=kind["links"],
            sealed=kind.get("sealed", False),
            unasked=kind["unasked"],
            scoped=kind.get("scoped", False),
            sockets=kind.get("sockets", ()),
        )
        problem = self._prepare(sandbox)
        if kind.get("trial"):
            words = {
                "proc": sandbox.has_proc,
                "network": not sandbox.has_network,
                "packet_rules": not sandbox.has_network and bool(sockets_for_any_port()),
                "problem": problem and str(problem),
            }
            self._orders.sendall(json.dumps(words).encode())
        message, descriptors, _, _ = socket.recv_fds(self._orders, 1, 4 + STREAMS)
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
        self.take_descriptors(sandbox, request, descriptors, 1 + STREAMS)
        for word, carrier in self._runners.items():
            if request.get(word):
                carrier(self, sandbox, control, wake, request, descriptors[1:], problem)
                return
        main = self._begin(sandbox, request, control, descriptors[1:], problem)
        if main is not None:
            self.supervise_call(control, main, request, sandbox, wake)

    def take_descriptors(
        self, sandbox: jail.CallSandbox, request: dict[str, Any], descriptors: list[int], count: int
    ) -> None:
        """Take the descriptors of a call after the first `count`; the request says what each is for."""
        self._forget_witnesses()
        for name, descriptor in zip(request["handed"], descriptors[count:], strict=False):
            if name == "share":
                sandbox.share = socket.socket(fileno=descriptor)
            elif name == "network":
                sandbox.egress = socket.socket(fileno=descriptor)
            else:
                self._witnesses.append(descriptor)
        del descriptors[count:]

    def _forget_witnesses(self) -> None:
        while self._witnesses:
            os.close(self._witnesses.pop())

    def _prepare(self, sandbox: jail.CallSandbox) -> OSError | None:
        """Prepare everything that does not depend on the call. Returns the error if that fails, otherwise None. The
        error is reported when the call comes."""
        try:
            sandbox.build()
            kernel.limit_future_capabilities(kernel.ROOT_KEEPS if self._is_root else ())
            self._last = sandbox.kill_commands_first()
            kernel.prctl(kernel.PR_SET_DUMPABLE, 0, "prctl(PR_SET_DUMPABLE)")
            if self._is_root:
                self._filter_calls()  # Possible already now: root makes no more namespaces.
        except OSError as error:
            return error
        return None

    def _begin(
        self,
        sandbox: jail.CallSandbox,
        request: dict[str, Any],
        control: socket.socket,
        streams: list[int],
        problem: OSError | None,
    ) -> int | None:
        """Start the command and return its pid; None if it was not started and the host got the reason."""
        try:
            # If the workspace was removed, so were its mounts, and the sandbox cannot be built.
            is_stale = self.is_other_workspace(request)
            if problem is not None and not is_stale:
                raise problem
            if is_stale or not self._enter(sandbox, request):
                send_report(control, {"stale": True})
                return None
        except Replaced as error:
            send_report(control, {"replaced": error.filename})
            return None
        except (OSError, ValueError) as error:
            send_report(control, never_started([None, f"the sandbox around it could not be built: {error}"]))
            return None
        try:
            main = self._start(request, list(streams), control)
            self.be_killed_last()
        except (OSError, ValueError) as error:
            send_report(control, never_started(failure(error)))
            return None
        for descriptor in streams:
            os.close(descriptor)
        return main

    def is_other_workspace(self, request: dict[str, Any]) -> bool:
        """Whether the workspace was replaced since the helper started."""
        return bool(request["root"] != self._template.root)

    def be_killed_last(self) -> None:
        """When memory runs out, have the kernel kill this process after the processes that it started."""
        if self._last is not None:
            self._last()

    def _enter(self, sandbox: jail.CallSandbox, request: dict[str, Any]) -> bool:
        """Open the sandbox for this call, and change to its working directory. Returns False if somebody has replaced
        the workspace or this directory since the helper started."""
        confinement = request["sandbox"]
        if not self.open_for_call(sandbox, request):
            return False
        sandbox.close_host_sockets()
        os.chdir(os.fsencode(request["directory"]))
        if confinement["layer"] is None and not _is(b".", request["identity"]):
            return False
        self.restrict(sandbox, request, sandbox.writable_places(confinement))
        return True

    def open_for_call(self, sandbox: jail.CallSandbox, request: dict[str, Any]) -> bool:
        """Open the sandbox for this call. Returns False if the host must try again, because somebody has replaced the
        workspace, so that it is not the directory that the host means, or the egress process has ended."""
        found = os.stat(self._template.workspace)
        if not [found.st_dev, found.st_ino] == request["root"] == self._template.root:
            return False
        for path, *which in request["same"]:
            check_same(path, which)
        layer = request["sandbox"]["layer"]
        if layer is not None and not _is(os.fsencode(request["directory"]), request["identity"]):
            return False  # Checked before the layer is mounted, since inodes seen through a layer differ.
        sandbox.open_for_call(request["sandbox"])
        if not sandbox.idle_network and not sandbox.join_egress():
            return False
        for descriptor in self._witnesses if layer is not None else ():
            kernel.watch(descriptor, self._template.workspace)
        self._forget_witnesses()
        if self._group is not None:
            self._group.begin()
        return True

    def restrict(self, sandbox: jail.CallSandbox, request: dict[str, Any], writable: Sequence[str | int]) -> None:
        """Confine this process, and all processes that it starts, to the sandbox and the limits of a call."""
        limits = request["limits"]
        user = not self._is_root
        alone = user and bool(limits["max_processes"]) and self._count_alone(sandbox)
        apply_rlimits(rlimits(limits, user=user, calls=cgroups.TASKS_PER_PROCESS if alone else request["calls"]))
        kernel.prctl(kernel.PR_SET_NO_NEW_PRIVS, 1, "prctl(PR_SET_NO_NEW_PRIVS)")
        if self._abi:
            landlock.restrict(
                writable,
                tcp=may_use_tcp(sandbox, request["sandbox"]),
                abi=self._abi,
                executable=_executable(sandbox, request),
            )
        if not self._is_root:
            self._filter_calls()

    def rules(self, sandbox: jail.CallSandbox, confinement: dict[str, Any]) -> int | None:
        """A descriptor of the call's Landlock rules, with which a process restricts itself; None without Landlock."""
        if not self._abi:
            return None
        return landlock.ruleset(
            sandbox.writable_places(confinement), tcp=may_use_tcp(sandbox, confinement), abi=self._abi
        )

    def _filter_calls(self) -> None:
        if self._filter:
            seccomp.restrict(self._filter)
            if self._group is None or not self._group.counts_memory:
                seccomp.restrict(seccomp.uncounted_memory_filter())

    def _count_alone(self, sandbox: jail.CallSandbox) -> bool:
        """Enter one more user namespace. The kernel counts an ordinary user's processes in each user namespace, so the
        call gets a count of its own. With a shared count, a fork bomb would keep other calls from forking. Returns
        False if this process cannot enter a user namespace."""
        if not sandbox.has_proc:
            return False
        uid, gid = os.geteuid(), os.getegid()
        try:
            kernel.unshare(kernel.CLONE_NEWUSER, "users")
        except OSError:
            return False
        kernel.prctl(kernel.PR_SET_DUMPABLE, 1, "prctl(PR_SET_DUMPABLE)")  # Undumpable, its /proc files are root's.
        for name, words in kernel.maps_to_itself(uid, gid):
            sandbox.write_own_proc(name, words)
        kernel.prctl(kernel.PR_SET_DUMPABLE, 0, "prctl(PR_SET_DUMPABLE)")
        kernel.limit_future_capabilities(())
        return True

    @staticmethod
    def _start(request: dict[str, Any], streams: list[int], control: socket.socket) -> int:
        argv, env = argv_and_env(request)
        if not request["stdin"]:
            streams[0] = os.open("/dev/null", os.O_RDONLY | os.O_CLOEXEC)
        actions: Any = [(os.POSIX_SPAWN_DUP2, descriptor, target) for target, descriptor in enumerate(streams)]
        if request.get("terminal"):
            from haft.helper.terminal import Pseudoterminal  # Few programs need one.

            terminal = Pseudoterminal(*request["terminal"])
            terminal.hand_over(control)  # Before the program starts: a short one may end before the host asks for it.
            actions = terminal.actions()
        failed: OSError | None = None
        for program in programs(argv[0], env):
            try:
                return os.posix_spawn(
                    program, argv, env, file_actions=actions, setsid=True, setsigmask=(),
                    setsigdef=signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP},
                )  # fmt: skip
            except (FileNotFoundError, NotADirectoryError) as error:
                failed = failed or error
            except PermissionError as error:
                failed = error
        raise failed or FileNotFoundError(2, os.strerror(2))

    def supervise_call(
        self,
        control: socket.socket,
        main: int,
        request: dict[str, Any],
        sandbox: jail.CallSandbox,
        wake: int,
        others: frozenset[int] = frozenset(),
        at_end: Callable[[Supervisor], dict[str, Any]] = lambda _supervisor: {},
        orders: Callable[[dict[str, Any]], dict[str, Any]] = lambda _words: {},
    ) -> None:
        """Supervise the command until all processes of the call have ended, and send the report, with the fields that
        `at_end` adds. The processes in `others` do not belong to the call. `orders` carries out orders of the host."""
        control.setblocking(False)
        processes = NamespaceProcesses(others)
        meter = None
        if sandbox.has_proc:
            meter = Meter(
                request["limits"],
                processes.pids,
                scratch="/dev/shm",  # noqa: S108  private to the call
                roots=sandbox.disk_places(request["sandbox"]),
                group=self._group,
                own_io=self._own_io,
                shares_network=sandbox.has_network,
                full_sockets=self._full_sockets,
                thread_tmp=sandbox.thread_tmp,
            )
        name = " ".join(request["argv"])
        supervisor = Supervisor(control, main, name, processes, meter, has_others=bool(others), orders=orders)
        supervisor.await_network_use(sandbox.idle_network, sandbox.join_egress)
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
        send_report(control, {**supervisor.report(left, None), "spilled": spilled, **at_end(supervisor)})


def _executable(sandbox: jail.CallSandbox, request: dict[str, Any]) -> list[str] | None:
    """The only files that the call may execute; None if it may execute all."""
    if request["only"] is None:
        return None
    from haft.helper.executed import executed_files  # Only tests restrict what a call executes.

    argv, env = argv_and_env(request)
    return [*sandbox.stub_places(), *executed_files([argv[0], *map(os.fsencode, request["only"])], env)]


def may_use_tcp(sandbox: jail.CallSandbox, confinement: dict[str, Any]) -> bool:
    """Whether Landlock allows TCP: always if the call has its own network namespace, where TCP reaches only the call
    itself."""
    return bool(confinement["network"] or not sandbox.has_network)


def _is(directory: bytes, which: list[int]) -> bool:
    """Whether a directory exists and has this identity: device and inode."""
    try:
        found = os.stat(directory)
    except OSError:
        return False
    return [found.st_dev, found.st_ino] == which
