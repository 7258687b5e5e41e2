"""The real program, in a process of its own, with a state home and a workspace of its own.

A call that is only waited for is forked from a process that has loaded the program before (`warm.py`), for loading it
takes longer than nearly everything that is tested here.
"""

from __future__ import annotations

import json
import os
import pty
import select
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import pytest

from warm import PATIENCE, PROGRAM, Begun, Warm

Process = TypeVar("Process", subprocess.Popen[bytes], Begun)

READ_AT_START = ("PYTHON", "LANG", "LC_")
"""How the names of variables begin that Python looks at before anything of ours."""


@dataclass
class Said:
    """What a finished command printed."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


@dataclass
class Haft:
    """The program, ready to be run."""

    workspace: Path
    home: Path
    env: dict[str, str]
    warm: Warm

    def __call__(self, *words: str, stdin: str = "", cwd: Path | None = None, **env: str) -> Said:
        wanted, here = {**self.env, **env}, cwd or self.workspace
        if _at_start(wanted) == _at_start(os.environ):
            code, out, err = self.warm.run(words, stdin.encode(), here, wanted)
        else:
            code, out, err = _run_cold(words, stdin.encode(), here, wanted)
        said = Said(code, out.decode("utf-8", "replace"), err.decode("utf-8", "replace"))
        assert "Traceback" not in said.err, said.err
        return said

    def begin(self, *words: str) -> Begun:
        """Start a call that goes on, forked from the loaded program."""
        return self.warm.begin(words, self.workspace, self.env)

    def ask(self, *words: str) -> tuple[Begun, str]:
        """The same, of a call that waits for a person: with the name of its question, once others can answer it."""
        begun = self.begin(*words)
        name = begun.until_said(rb"waiting for approval: haft approve (\S+)")[1].decode()
        until(lambda: name in self("inbox", "--json").out)
        return begun, name

    def start(self, *words: str, **options: Any) -> subprocess.Popen[bytes]:
        """Start the program from nothing."""
        pipe = subprocess.PIPE
        return subprocess.Popen(
            [*PROGRAM, *words],
            stdin=subprocess.DEVNULL,
            stdout=options.pop("stdout", pipe),
            stderr=options.pop("stderr", pipe),
            cwd=self.workspace,
            env=self.env,
            **options,
        )

    def open_run(self) -> dict[str, Any]:
        """The one run that is in progress, as soon as there is one."""
        return until(lambda: next(iter(self("log", "--status", "in-progress", "--json").json), None))


def _run_cold(words: Sequence[str], stdin: bytes, cwd: Path, env: dict[str, str]) -> tuple[int, bytes, bytes]:
    done = subprocess.run([*PROGRAM, *words], input=stdin, capture_output=True, cwd=cwd, env=env, timeout=PATIENCE * 2)
    return done.returncode, done.stdout, done.stderr


def _at_start(env: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in env.items() if name.startswith(READ_AT_START)}


def until(look: Callable[[], Any]) -> Any:
    """The first true answer."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        found = look()
        if found:
            return found
        time.sleep(0.05)
    raise AssertionError("it did not happen in time")


@pytest.fixture
def haft(tmp_path: Path, warm: Warm) -> Haft:
    workspace, home = tmp_path / "workspace", tmp_path / "state"
    workspace.mkdir()
    (workspace / "a.txt").write_text("one\ntwo\nthree\n")
    env = {name: value for name, value in os.environ.items() if not name.startswith(("HAFT_", "_HAFT"))}
    env |= {"HAFT_HOME": str(home), "HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path / "config")}
    for name in ("EDITOR", "VISUAL", "NO_COLOR"):
        env.pop(name, None)
    return Haft(workspace, home, env, warm)


class Terminal:
    """The program on a terminal of its own."""

    def __init__(self, haft, *words, **env):
        self._master, slave = pty.openpty()
        self.process = haft.warm.start(
            words, slave, haft.workspace, {**haft.env, "TERM": "xterm", "COLUMNS": "60", **env}
        )
        os.close(slave)
        self.seen = ""
        self._looked_at = 0

    def until(self, text):
        """Read until `text` comes, after whatever was waited for before."""
        end = time.monotonic() + PATIENCE
        while (found := self.seen.find(text, self._looked_at)) < 0:
            assert time.monotonic() < end, self.seen
            if not self._read() and text not in self.seen[self._looked_at :]:
                raise AssertionError(self.seen)
        self._looked_at = found + len(text)

    def _read(self):
        if not select.select([self._master], [], [], 0.2)[0]:
            return True
        try:
            data = os.read(self._master, 65536)
        except OSError:  # the last one hung up
            return False
        self.seen += data.decode("utf-8", "replace").replace("\r\n", "\n")
        return bool(data)

    def type(self, text):
        os.write(self._master, text.encode())

    def end(self):
        while self._read():
            if self.process.poll() is not None and not select.select([self._master], [], [], 0.2)[0]:
                break
        return self.process.wait(timeout=PATIENCE)

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        os.close(self._master)


@pytest.fixture
def terminal(haft):
    opened = []

    def open_(*words, **env):
        opened.append(Terminal(haft, *words, **env))
        return opened[-1]

    yield open_
    for one in opened:
        one.close()


@pytest.fixture
def ended() -> Iterator[Callable[[Process], Process]]:
    """Sees to it that a process that was started is gone when the test is."""
    started: list[subprocess.Popen[bytes] | Begun] = []

    def register(process: Process) -> Process:
        started.append(process)
        return process

    yield register
    for process in started:
        if process.poll() is None:
            process.kill()
        process.communicate()


def short(run: str) -> str:
    """The name of a run as people read it, where no other began in the same millisecond."""
    return run[:13]


def words_of(lines: Sequence[str]) -> list[str]:
    return [line.split()[0] for line in lines if line.split()]
