"""Makes the program stubs of a scenario, and records their calls while a service runs."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import select
import shutil
import stat
import sys
import threading
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from types import TracebackType
from typing import Any, Final, Self

from haft.contracts import STAND_INS, BadUsage, StandIns
from haft.testing.programs import stub as stub_module
from haft.testing.programs.recorder import Recorder
from haft.testing.programs.stub import ANSWER
from haft.testing.scenarios.scenario import ProgramAnswer, Programs, ProgramStub

SLOTS: Final = 32
"""How many stubs can wait for their answers at once; further ones wait for one of these."""
MAX_INTERPRETER: Final = 100
PROBE: Final = "true"
"""The program that haft starts to find out whether calls can run in layers."""
DEFAULT_PATH: Final = "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"


class ProgramStubs:
    """Executables that stand for the programs of a scenario. They exist, and their calls are recorded, inside `with`.

    with ProgramStubs(programs, directory) as stubs:
        async with ToolService.open(workspace, conditions=Conditions(programs=stubs.stand_ins)) as service:
            ...
        print(stubs.calls())
    """

    def __init__(self, programs: Programs, directory: str, *, path: str | None = None) -> None:
        """`directory` must exist, and be private; the stubs are made in a new directory inside. `path` is the PATH of
        the calls, on which named programs are looked up (default: that of this process)."""
        self._programs = programs
        self._token = secrets.token_hex(8)
        self._path = os.environ.get("PATH", DEFAULT_PATH) if path is None else path
        self._root = os.path.join(os.path.realpath(directory), f"stubs-{self._token}")
        self._lock = threading.Lock()
        self._closing = contextlib.ExitStack()
        self._answering = contextlib.ExitStack()
        self._slots: list[int] = []
        self._reports = -1
        self._before: dict[str, Any] = {}
        self.stand_ins: StandIns | None = None
        """For `Conditions`; None if there is nothing to stand for."""

    def __enter__(self) -> Self:
        if self._programs == Programs():
            return self
        try:
            self._make()
        except BaseException:
            self._closing.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._closing.close()

    # What came of it.

    def calls(self) -> tuple[Mapping[str, Any], ...]:
        """The calls so far, in their order: `program`, `args`, `stdin`, `cwd`, `env`."""
        if self.stand_ins is None:
            return ()
        with self._lock:
            self._drain()
            return self._recorder.calls()

    def problems(self) -> tuple[str, ...]:
        """Why the recorded calls do not hold, in sentences; empty if they do."""
        if self.stand_ins is None:
            return ()
        self.calls()
        found = list(self._recorder.problems)
        if self._state() != self._before:
            found.append("the tool changed the program stubs, so their recorded calls do not hold")
        return tuple(found)

    # The files.

    def _make(self) -> None:
        os.mkdir(self._root, 0o755)
        self._closing.callback(shutil.rmtree, self._root, ignore_errors=True)
        run = os.path.join(self._root, self._run)
        for path in (run, f"{run}/answers", f"{run}/slots", f"{self._root}/bin", f"{self._root}/covers"):
            os.mkdir(path, 0o755)
        answers = self._write_answers(f"{run}/answers")
        self._reports = _pipe(f"{run}/reports", 0o200, self._closing)
        self._closing.push(self._answering)
        self._slots = [_pipe(f"{run}/slots/{number}", 0o400, self._answering) for number in range(SLOTS)]
        covers = self._write_stubs()
        self._recorder = Recorder(answers, self._reply)
        refuses = self._programs.others == "refuse"
        explicit = [each.program for each in self._programs.stubs if _is_path(each) and not each.real]
        needs = "`others: refuse`" if refuses else f"the stub of {explicit[0]}" if explicit else None
        real = tuple(each.program for each in self._programs.stubs if each.real)
        self._before = self._state()
        self.stand_ins = StandIns(
            self._root,
            "bin",
            f"{self._run}/reports",
            tuple(covers.items()),
            needs,
            (_interpreter(), *real) if refuses else None,
        )
        self._listen()

    @property
    def _run(self) -> str:
        return f"run-{self._token}"

    def _write_answers(self, directory: str) -> dict[str, list[tuple[int, ProgramAnswer]]]:
        found: dict[str, list[tuple[int, ProgramAnswer]]] = {}
        count = 0
        for one in self._programs.stubs:
            for answer in () if one.real else one.answers:
                with open(f"{directory}/{count}", "w", encoding="utf-8") as file:
                    json.dump({"real": self._real(one.program)} if one.records else asdict(answer), file)
                found.setdefault(one.program, []).append((count, answer))
                count += 1
        return found

    def _write_stubs(self) -> dict[str, str]:
        """Write the executables. Returns the stubs that cover real programs, by the real paths of these."""
        covers: dict[str, str] = {}
        interpreter = _interpreter()
        with open(stub_module.__file__, encoding="utf-8") as file:
            text = file.read()
        for number, one in enumerate(self._programs.stubs):
            if one.real:
                continue
            if os.path.basename(one.program) == PROBE:
                raise BadUsage(f"`{PROBE}` cannot be stubbed, because haft itself starts it in the sandbox")
            places = (f"{STAND_INS}/{self._run}", f"{self._root}/{self._run}")
            name = f"covers/{number}" if _is_path(one) else f"bin/{one.program}"
            path = os.path.join(self._root, name)
            with open(path, "w", encoding="utf-8") as file:
                file.write(f"#!{interpreter} -IS\n{text}\n\nmain({one.program!r}, {places!r})\n")
            os.chmod(path, 0o755)  # noqa: S103  an executable as any other
            if one.records:
                continue  # The real program must stay where it is.
            for real in [self._covered(one)] if _is_path(one) else self._found(one.program):
                covers.setdefault(real, name)
        return covers

    def _real(self, name: str) -> str:
        """The path of the real program that a stub calls."""
        found = None if "/" in name else shutil.which(name, path=self._path)
        if found is None:
            raise BadUsage(f"the calls of `{name}` cannot be recorded, because there is no such program on PATH")
        return os.path.abspath(found)  # A link stays one: some programs look at the name that they are called by.

    def _covered(self, one: ProgramStub) -> str:
        """The real path of the program for which a stub with an absolute path stands."""
        real = os.path.realpath(one.program)
        if not os.path.isfile(real):
            raise BadUsage(
                f"no program at {one.program} can be stubbed, because there is none on this machine",
                hint=f"stub it by its name `{os.path.basename(one.program)}`, and have the tool find it on PATH",
            )
        if real == _interpreter():
            raise BadUsage(
                f"{one.program} cannot be stubbed, because the stubs run with it",
                hint=f"stub it by its name `{os.path.basename(one.program)}`",
            )
        return real

    def _found(self, name: str) -> Iterator[str]:
        """The real paths of a named program in the directories of PATH, which the stub covers too: so a tool that sets
        PATH itself also finds the stub. Files that other names share are not covered."""
        for directory in dict.fromkeys((*self._path.split(os.pathsep), *DEFAULT_PATH.split(":"))):
            path = os.path.realpath(os.path.join(directory, name))
            if not os.path.isabs(directory) or os.path.basename(path) != name or path == _interpreter():
                continue
            with contextlib.suppress(OSError):
                found = os.stat(path)
                if stat.S_ISREG(found.st_mode) and found.st_nlink == 1:
                    yield path

    def _state(self) -> dict[str, Any]:
        """What the files of the stubs are, without what changes when a pipe is used."""
        found: dict[str, Any] = {}
        for at, folders, files in os.walk(self._root):
            for name in (*folders, *files):
                path = os.path.join(at, name)
                each = os.lstat(path)
                facts = (each.st_ino, each.st_mode)
                found[path] = facts if stat.S_ISFIFO(each.st_mode) else (*facts, each.st_size, each.st_ctime_ns)
        return found

    # The reports.

    def _listen(self) -> None:
        wake, waking = os.pipe()
        thread = threading.Thread(target=self._record, args=(wake,), name="haft-program-stubs", daemon=True)
        thread.start()

        def stop() -> None:
            os.close(waking)
            thread.join()
            os.close(wake)

        self._closing.callback(stop)

    def _record(self, wake: int) -> None:
        while True:
            ready, _, _ = select.select([self._reports, wake], [], [])
            if wake in ready:
                return
            with self._lock:
                self._drain()

    def _drain(self) -> None:
        with contextlib.suppress(BlockingIOError):
            while data := os.read(self._reports, 1 << 16):
                self._recorder.take(data)
        if self._recorder.is_disturbed:
            self._answering.close()  # So that stubs end, instead of waiting for answers.
            self._slots.clear()

    def _reply(self, slot: int, identity: bytes, answer: int) -> None:
        if 0 <= slot < len(self._slots):
            end = self._slots[slot]
            with contextlib.suppress(BlockingIOError):
                while os.read(end, 1 << 12):  # An answer for a stub that was killed.
                    pass
            os.write(end, ANSWER.pack(identity, answer))


def _pipe(path: str, mode: int, closing: contextlib.ExitStack) -> int:
    """Make a named pipe, and hold it open, so that it does not end."""
    os.mkfifo(path, 0o600)
    end = os.open(path, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
    closing.callback(os.close, end)
    os.chmod(path, mode)
    return end


def _is_path(one: ProgramStub) -> bool:
    return one.program.startswith("/")


def _interpreter() -> str:
    """The Python that runs the stubs."""
    path = os.path.realpath(sys.executable)
    if len(path) > MAX_INTERPRETER or any(each.isspace() for each in path):
        raise BadUsage(
            f"programs cannot be stubbed, because no script can name {path} as its interpreter",
            hint="run haft with a Python whose path is short and has no spaces",
        )
    return path
