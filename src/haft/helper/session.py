"""A program that outlives its calls and works above a layer, in a room of its own.

Its init stays outside of what holds the program, so that it can exchange the layer: the program is a child that
restricts itself before it starts. The host says `stop` when a call begins or ends, takes in what lies in the layer, and
says `turn` with the name of a fresh one; `go` lets the program go on above the same.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
from typing import Any, NoReturn

from haft.helper import jail, kernel, rotation
from haft.helper.init import Everyone, Init
from haft.helper.paths import WrittenFile
from haft.helper.supervisor import forget_signals
from haft.helper.words import argv_and_env, failure, never_started, programs, tell


def stay(
    init: Init,
    room: jail.Room,
    control: socket.socket,
    wake: int,
    request: dict[str, Any],
    streams: list[int],
    problem: OSError | None,
) -> None:
    """What an init does for such a program."""
    Stay(init, room).live(control, wake, request, streams, problem)


class Stay:
    """The life of such a room, in its init."""

    def __init__(self, init: Init, room: jail.Room) -> None:
        self._init = init
        self._room = room
        self._confinement: dict[str, Any] = {}
        self._everyone = Everyone()
        self._stopped: set[int] = set()
        self._past: list[rotation.Old] = []
        """Layers that were taken away, and that someone still holds."""

    def live(
        self,
        control: socket.socket,
        wake: int,
        request: dict[str, Any],
        streams: list[int],
        problem: OSError | None,
    ) -> None:
        """Start the program, and exchange its layer whenever the host says so, until it has ended."""
        room = self._room
        self._confinement = request["sandbox"]
        try:
            if self._init.is_elsewhere(request):
                tell(control, {"stale": True})
                return
            if problem is not None or not room.has_proc:
                raise problem or FileNotFoundError("there is no /proc")
            room.put_layers_away()
            room.keep_lower()
            if not self._init.open_up(room, request):
                tell(control, {"stale": True})
                return
            room.let_go()
        except WrittenFile as error:
            tell(control, {"replaced": error.filename})
            return
        except (OSError, ValueError) as error:
            tell(control, never_started([None, f"the sandbox around it could not be built: {error}"]))
            return
        main, complaint = self._start(request, streams)
        if complaint is not None:
            tell(control, never_started(complaint))
            return
        self._init.go_last()
        for descriptor in streams:
            os.close(descriptor)
        self._init.carry(control, main, request, room, wake, orders=self.told)

    def _start(self, request: dict[str, Any], streams: list[int]) -> tuple[int, list[Any] | None]:
        """The program's pid, and why it could not be started where it could not."""
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
        """In the child: held to everything, then the program itself."""
        argv, env = argv_and_env(request)
        os.setsid()
        forget_signals()
        os.chdir(os.fsencode(request["directory"]))
        self._init.restrict(self._room, request, self._room.lasting_places())
        for target, descriptor in enumerate(streams):
            os.dup2(descriptor, target)
        told: OSError = FileNotFoundError(2, os.strerror(2))
        for program in programs(argv[0], env):
            try:
                os.execve(program, argv, env)  # noqa: S606  held to everything by now
            except (FileNotFoundError, NotADirectoryError):
                continue
            except PermissionError as error:
                told = error
        raise told

    def told(self, words: dict[str, Any]) -> dict[str, Any]:
        """What the host wants done, and what came of it."""
        try:
            if words["do"] == "stop":
                return self._stop()
            return self._turn(words["layer"], view=words["view"]) if words["do"] == "turn" else {}
        finally:
            if words["do"] in ("turn", "go"):
                rotation.go_on(self._stopped)
                self._stopped = set()

    def _stop(self) -> dict[str, Any]:
        problem = None
        try:
            self._stopped |= rotation.stopped(self._everyone.pids)
        except rotation.StillRunning as error:
            problem = str(error)
        current = rotation.old_layer(self._room.workspace)
        # The number of one that is gone for good may be given to another.
        self._past = [one for one in self._past if one.device != current.device]
        pids = self._everyone.pids()
        found = rotation.holders(pids, [current])
        stale = rotation.holders(pids, self._past)
        self._past = [one for one in self._past if rotation.holders(pids, [one])]
        if found:
            self._past.append(current)
        return {"problem": problem, "holders": [*dict.fromkeys([*found, *stale])]}

    def _turn(self, layer: dict[str, str], *, view: bool) -> dict[str, Any]:
        """Exchange the layer; with `view`, the answer brings a descriptor of what the program sees from then on."""
        self._confinement = {**self._confinement, "layer": layer}
        try:
            rotation.replaced(self._room.workspace, lambda: self._room.open_up(self._confinement))
        except OSError as error:
            return {"failed": str(error)}
        finally:
            with contextlib.suppress(OSError):
                self._room.let_go()
        if not view:
            return {}
        top = os.open(self._room.workspace, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            return {"view": kernel.cloned(top)}
        finally:
            os.close(top)
