"""Hosts that die, or find the disk full, at the n-th thing they do to the disk while a change set is brought about.

A program: for every line of JSON on its input it forks a host, ready at once because everything is imported by then.
The host does what the line says, says what came of it in one line, and is gone. What counts as a thing done is every
call that changes a file or directory, seen where Python makes it, in the thread that settles the changes and nowhere
else."""

from __future__ import annotations

import asyncio
import ctypes
import errno
import functools
import json
import os
import signal
import sys
import tempfile
import threading
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from haft.changes import recovery, tools
from haft.changes.commit import area, journal, tree
from haft.changes.engines import declared, overlay, snapshot
from haft.changes.published.publisher import Publisher
from haft.contracts import StorageFailed
from haft.service import ToolService, recover_dead_hosts
from haft.service import changes as service_changes
from haft.storage import StateHome
from haft.storage.sqlite.change_sets import SqliteLedger

sys.path.insert(0, str(Path(__file__).parent))
from held_views import Held

DONE_TO_THE_DISK = (
    "rename", "mkdir", "rmdir", "unlink", "chmod", "chown", "fchmod", "fchown", "symlink", "link", "mknod", "utime",
    "write", "pwrite", "ftruncate", "fsync", "removexattr",
)  # fmt: skip
TAKES_ROOM = (
    "rename", "renameat2", "mkdir", "symlink", "link", "mknod", "write", "pwrite", "ftruncate", "fsync", "open",
)  # fmt: skip
NEEDS_ROOM = ("mkdir", "symlink", "mknod", "write", "pwrite", "open")
"""What a full disk refuses from then on; a rename mostly goes through."""


class Meter:
    """Counts what is done, and does something else at the n-th."""

    def __init__(self, at: int, how: str) -> None:
        self.at = at
        self.how = how
        self.count = 0
        self.struck = False
        self.seen: list[str] = []
        self._here = threading.local()

    def around(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """What this does is counted."""

        @functools.wraps(function)
        def counted(*words: Any, **named: Any) -> Any:
            outer = getattr(self._here, "on", False)
            self._here.on = True
            try:
                return function(*words, **named)
            finally:
                self._here.on = outer

        return counted

    def step(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def stepping(*words: Any, **named: Any) -> Any:
            creates = name != "open" or words[1] & os.O_CREAT
            if getattr(self._here, "on", False) and creates:
                answer = self.tick(name)
                if answer is not None:
                    return answer
            return function(*words, **named)

        return stepping

    def tick(self, name: str) -> Any:
        if self.how == "kill":
            self.count += 1
            self.seen.append(name)
            if self.count == self.at:
                os.kill(os.getpid(), signal.SIGKILL)
        elif self.how in ("failing", "faltering"):
            self.count += 1
            self.seen.append(name)
            since = self.count - self.at
            if self.at > 0 and since >= 0 and (self.how == "failing" or since % 2 == 0):
                self.struck = True
                return _refuse(name, errno.EIO)
        elif name in (TAKES_ROOM if self.how == "full" else NEEDS_ROOM):
            self.count += 1
            self.seen.append(name)
            if self.count == self.at or (self.how == "full-on" and self.count > self.at > 0):
                self.struck = True
                return _refuse(name, errno.ENOSPC)
        return None

    def install(self) -> None:
        for name in (*DONE_TO_THE_DISK, "open"):
            setattr(os, name, self.step(name, getattr(os, name)))
        call = tree._renameat2()
        if call is not None:
            tree._found[0] = self.step("renameat2", call)
        for method in ("put", "set_state"):
            setattr(SqliteLedger, method, self.step(f"ledger.{method}", getattr(SqliteLedger, method)))
        for kind in (overlay.OverlayTransaction, declared.DeclaredTransaction, snapshot.SnapshotTransaction):
            kind.finish = self.around(kind.finish)  # type: ignore[method-assign]
        Publisher.flush = self.around(Publisher.flush)  # type: ignore[method-assign]
        for name in ("reverse", "apply", "drop"):
            setattr(tools, name, self.around(getattr(tools, name)))
        recovery.recover = self.around(recovery.recover)
        service_changes.recover_changes = self.around(service_changes.recover_changes)


def _refuse(name: str, number: int) -> int:
    """As a disk does that is full, or broken."""
    if name == "renameat2":
        ctypes.set_errno(number)
        return -1
    if name.startswith("ledger."):
        raise StorageFailed("the database cannot be written", OSError(number, os.strerror(number)))
    raise OSError(number, os.strerror(number))


async def yes(_request: Any) -> bool:
    return True


async def live(order: dict[str, Any]) -> dict[str, Any]:
    """Do what is to be done first, and then, under the meter, what the host may die of."""
    if order.get("copies"):
        area.can_rename_between = lambda *_places: False  # type: ignore[assignment]
    meter = Meter(order["at"], order.get("how", "kill"))
    runs: list[str] = []
    if order["do"][0] == "recover":
        meter.install()
        recover_dead_hosts(StateHome(order["home"]))
        return {"ops": meter.count, "seen": meter.seen, "struck": meter.struck}
    settings = {"changes.engine": order.get("engine", "auto"), "limits.max_seconds": 300}
    held = Held()
    if order.get("pinned"):
        settings["changes.flush_seconds"] = 0
    async with ToolService.open(
        order["workspace"], approver=yes, home=order["home"], installed=False, settings=settings, tools=[held.tool()]
    ) as service:

        async def do(verb: str, *words: Any) -> Any:
            if verb in ("undo", "redo", "apply", "drop"):
                run = getattr(service, verb)(*(runs[word] if isinstance(word, int) else word for word in words))
            elif verb == "write":
                run = service.call("write_file", {"path": words[0], "content": words[1]})
            else:
                run = service.call("shell", {"command": words[0]})
            say({"run": run.id})
            runs.append(run.id)
            return await run

        for each in order.get("first", ()):
            outcome = await do(*each)
            say({"first": [outcome.status, outcome.changes.state, outcome.error and outcome.error.message]})
        say({"ready": True})
        if order.get("pinned"):  # Another call keeps its view, so that what is done is published first.
            holding = service.call("hold")
            await held.begun.wait()
        meter.install()
        if order.get("unsynced"):  # Dies as soon as it has answered, before anything is swept up.
            service._transactions._sync = lambda: None
            await swept(service)  # What is still to be done for those before would be done for this one too.
            await do(*order["do"])
            os.kill(os.getpid(), signal.SIGKILL)
        outcome = await do(*order["do"])
        if order.get("pinned"):
            say({"answered": outcome.changes.state})
            held.opened.set()
            await holding
            await asyncio.to_thread(service._transactions.publisher.settle)
        found = {
            "ops": meter.count,
            "seen": meter.seen,
            "struck": meter.struck,
            "status": outcome.status,
            "state": outcome.changes.state,
            "complete": outcome.changes.complete,
            "engine": outcome.changes.engine,
            "error": outcome.error and [outcome.error.code, outcome.error.message],
        }
        meter.at, meter.how = 0, "kill"
    return found


async def swept(service: ToolService) -> None:
    """All that was put off until now is done."""
    done = threading.Event()
    service._transactions.run_later(done.set)
    await asyncio.to_thread(done.wait)


def say(words: dict[str, Any]) -> None:
    os.write(1, json.dumps(words).encode() + b"\n")


async def warm_up() -> None:
    """Import whatever is imported late."""
    with tempfile.TemporaryDirectory() as directory:
        os.mkdir(f"{directory}/workspace")
        home = f"{directory}/home"
        async with ToolService.open(f"{directory}/workspace", approver=yes, home=home, installed=False) as service:
            await service.call("shell", {"command": "true"})
            await service.call("write_file", {"path": "x", "content": "x"})
            await service.undo()
            service.runs()


def main() -> None:
    os.fsync = lambda _descriptor: None  # type: ignore[assignment]  # What counts is that it was asked for.
    journal.sync_filesystem = lambda _descriptor: None
    asyncio.run(warm_up())
    for line in sys.stdin:
        order = json.loads(line)
        host = os.fork()
        if host == 0:
            try:
                say({"done": asyncio.run(live(order))})
            except BaseException:
                say({"failed": traceback.format_exc()})
            os._exit(0)
        _pid, status = os.waitpid(host, 0)
        say({"gone": os.waitstatus_to_exitcode(status)})


if __name__ == "__main__":
    main()
