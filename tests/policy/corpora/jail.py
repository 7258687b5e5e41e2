"""A jail to prove in what a line does: real bash, watched. It owes nothing to what it tests, only `unshare`, `strace`.

Several warders work side by side, each in namespaces of its own with a workspace of its own in memory.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from queue import SimpleQueue
from typing import Self

from haft.sandbox.environment import NEUTRAL

HOME = "/tmp/home"
PLAIN = {
    "PATH": "/usr/bin:/bin",
    "HOME": HOME,
    "LANG": "C.UTF-8",
    "TERM": "dumb",
    "USER": "nobody",
    "SHELL": "/bin/bash",
}
IDENTITY = {f"GIT_{who}_{what}": "a@example.org" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
SECRET = "the-secret-in-the-environment"
PROVING = {"SECRET": SECRET, "GIT_OPTIONAL_LOCKS": "0", **IDENTITY}
"""What is there to be found out; git can commit, and refreshes no index, which would look like a proof."""
NAMESPACES = ("--mount", "--pid", "--fork", "--net", "--ipc", "--uts", "--kill-child")


@dataclass(frozen=True, slots=True)
class Watched:
    """What one line did."""

    command: str
    workspace: str
    code: int | None
    late: bool
    output: str
    trace: str = field(repr=False)
    unrun: bool = False
    """Whether it could not even be started: no program can be handed a NUL."""


class Cannot(Exception):
    """No jail can be built on this machine."""


class Jail:
    """Runs lines in copies of a workspace."""

    def __init__(self, workspace: Path, warders: int | None = None) -> None:
        self.workspace = str(workspace)
        self._processes = [_warder(self.workspace) for _ in range(warders or min(4, os.cpu_count() or 1))]
        self._free: SimpleQueue[subprocess.Popen[str]] = SimpleQueue()
        for each in self._processes:
            self._free.put(each)
        self._pool = ThreadPoolExecutor(len(self._processes))

    def run(self, command: str, *, neutral: bool, timeout: float = 4) -> Watched:
        """Run one, as an approved line would be (`neutral`), or with nothing but a plain environment."""
        env = PLAIN | (NEUTRAL if neutral else PROVING)
        warder = self._free.get()
        try:
            found = _ask(warder, {"command": command, "env": env, "timeout": timeout})
        finally:
            self._free.put(warder)
        return Watched(command, self.workspace, **found)

    def run_all(self, commands: Iterable[str], *, neutral: bool, timeout: float = 4) -> list[Watched]:
        """In their order."""
        return list(self._pool.map(lambda command: self.run(command, neutral=neutral, timeout=timeout), commands))

    def close(self) -> None:
        self._pool.shutdown()
        for process in self._processes:
            if process.stdin is not None:
                process.stdin.close()
            process.wait(10)
            if process.stdout is not None:
                process.stdout.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()


def _warder(workspace: str) -> subprocess.Popen[str]:
    lacking = [name for name in ("unshare", "strace", "bash", "git") if shutil.which(name) is None]
    if lacking:
        raise Cannot(f"not installed: {', '.join(lacking)}")
    said = ""
    for users in (("--user", "--map-root-user"), ()) if os.geteuid() == 0 else (("--user", "--map-root-user"),):
        arguments = ["unshare", *users, *NAMESPACES, sys.executable, "-I", "-S"]
        process = subprocess.Popen(
            [*arguments, str(Path(__file__).with_name("warder.py")), workspace, HOME],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={"PATH": os.environ.get("PATH", os.defpath)},
        )
        assert process.stdin is not None and process.stdout is not None and process.stderr is not None
        if process.stdout.readline():
            found = _ask(process, {"command": "true", "env": PLAIN, "timeout": 20})
            if found["code"] == 0 and "execve(" in str(found["trace"]):
                process.stderr.close()
                return process
            said = f"strace cannot watch: {found['output']}"
        process.stdin.close()
        said = process.stderr.read().strip().rpartition("\n")[2] or said
        process.wait()
        process.stdout.close()
        process.stderr.close()
    raise Cannot(said or "unshare says nothing")


def _ask(warder: subprocess.Popen[str], order: Mapping[str, object]) -> dict[str, object]:
    assert warder.stdin is not None and warder.stdout is not None
    warder.stdin.write(json.dumps(order) + "\n")
    warder.stdin.flush()
    answer = warder.stdout.readline()
    if not answer:
        raise RuntimeError(f"the warder died of {order['command']!r}")
    return json.loads(answer)
