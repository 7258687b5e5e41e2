"""Runs a program that outlives its calls, in its own sandbox, where a layer is mounted over the workspace.

The init is not restricted, so that it can replace the layer by a fresh one. The program is a child of the init, and
restricts itself before it starts. When a call begins or ends, the host sends `stop`, applies the changes in the layer,
and sends `turn` with the name of a fresh layer; `go` resumes the program with the same layer.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
from typing import Any, NoReturn

from haft.helper import jail, kernel, rotation
from haft.helper.init import Init, NamespaceProcesses
from haft.helper.paths import Replaced
from haft.helper.protocol import argv_and_env, failure, never_started, programs, send_report
from haft.helper.supervisor import forget_signals


def run_session(
    init: Init,
    sandbox: jail.CallSandbox,
    control: socket.socket,
    wake: int,
    request: dict[str, Any],
    streams: list[int],
    problem: OSError | None,
) -> None:
    """In this init, run a program that outlives its calls."""
    SessionRunner(init, sandbox).live(control, wake, request, streams, problem)


class SessionRunner:
    """Starts a program that outlives its calls, and replaces its layer by fresh ones."""

    def __init__(self, init: Init, sandbox: jail.CallSandbox) -> None:
        self._init = init
        self._sandbox = sandbox
        self._confinement: dict[str, Any] = {}
        self._processes = NamespaceProcesses()
        self._stopped: set[int] = set()
        self._past: list[rotation.OldLayer] = []
        """Unmounted layers in which some process still has something open."""

    def live(
        self,
        control: socket.socket,
        wake: int,
        request: dict[str, Any],
        streams: list[int],
        problem: OSError | None,
    ) -> None:
        """Start the program, and replace its layer whenever the host says so, until the program has ended."""
        sandbox = self._sandbox
        self._confinement = request["sandbox"]
        try:
            if self._init.is_other_workspace(request):
                send_report(control, {"stale": True})
                return
            if problem is not None or not sandbox.has_proc:
                raise problem or FileNotFoundError("there is no /proc")
            sandbox.detach_layers()
            sandbox.keep_lower()
            if not self._init.open_for_call(sandbox, request):
                send_report(control, {"stale": True})
                return
            sandbox.release_layer()
        except Replaced as error:
            send_report(control, {"replaced": error.filename})
            return
        except (OSError, ValueError) as error:
            send_report(control, never_started([None, f"the sandbox around it could not be built: {error}"]))
            return
        main, complaint = self._start(request, streams)
        if complaint is not None:
            send_report(control, never_started(complaint))
            return
        self._init.be_killed_last()
        for descriptor in streams:
            os.close(descriptor)
        self._init.supervise_call(control, main, request, sandbox, wake, orders=self.handle_order)

    def _start(self, request: dict[str, Any], streams: list[int]) -> tuple[int, list[Any] | None]:
        """Start the program. Returns the program's pid, and the error if the program could not be executed, otherwise
        None."""
        reading, writing = os.pipe()
        pid = os.fork()
        if pid == 0:
            try:
                os.close(reading)
                self._become(request, streams)
            except BaseException as error:
                os.write(writing, json.dumps(failure(error)).encode())
            finally:
                os._exit(127)
        os.close(writing)
        with open(reading, "rb") as pipe:  # Exec closes it.
            complaint = pipe.read()
        return pid, json.loads(complaint) if complaint else None

    def _become(self, request: dict[str, Any], streams: list[int]) -> NoReturn:
        """In the child: restrict this process, then execute the program."""
        argv, env = argv_and_env(request)
        os.setsid()
        forget_signals()
        os.chdir(os.fsencode(request["directory"]))
        self._init.restrict(self._sandbox, request, self._sandbox.lasting_places())
        for target, descriptor in enumerate(streams):
            os.dup2(descriptor, target)
        failed: OSError = FileNotFoundError(2, os.strerror(2))
        for program in programs(argv[0], env):
            try:
                os.execve(program, argv, env)  # noqa: S606  the process is restricted by now
            except (FileNotFoundError, NotADirectoryError):
                continue
            except PermissionError as error:
                failed = error
        raise failed

    def handle_order(self, words: dict[str, Any]) -> dict[str, Any]:
        """Carry out an order of the host, and return the answer."""
        try:
            if words["do"] == "stop":
                return self._stop()
            return self._turn(words["layer"], view=words["view"]) if words["do"] == "turn" else {}
        finally:
            if words["do"] in ("turn", "go"):
                rotation.resume(self._stopped)
                self._stopped = set()

    def _stop(self) -> dict[str, Any]:
        problem = None
        try:
            self._stopped |= rotation.stop_all(self._processes.pids)
        except rotation.StillRunning as error:
            problem = str(error)
        current = rotation.current_layer(self._sandbox.workspace)
        # The kernel may give the device number of a removed layer to a new one.
        self._past = [one for one in self._past if one.device != current.device]
        pids = self._processes.pids()
        found = rotation.holders(pids, [current])
        stale = rotation.holders(pids, self._past)
        self._past = [one for one in self._past if rotation.holders(pids, [one])]
        if found:
            self._past.append(current)
        return {"problem": problem, "holders": [*dict.fromkeys([*found, *stale])]}

    def _turn(self, layer: dict[str, str], *, view: bool) -> dict[str, Any]:
        """Replace the layer by a fresh one. With `view`, the answer has a descriptor of the workspace as the program
        now sees it."""
        self._confinement = {**self._confinement, "layer": layer}
        try:
            rotation.replace_layer(self._sandbox.workspace, lambda: self._sandbox.open_for_call(self._confinement))
        except OSError as error:
            return {"failed": str(error)}
        finally:
            with contextlib.suppress(OSError):
                self._sandbox.release_layer()
        if not view:
            return {}
        top = os.open(self._sandbox.workspace, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            return {"view": kernel.clone_mounts(top)}
        finally:
            os.close(top)
