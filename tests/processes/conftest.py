"""A launcher with its starter, for one test, and a sink that remembers."""

import asyncio
import os
from contextlib import contextmanager
from dataclasses import dataclass, field

import pytest

from haft.contracts import NO_CONFINEMENT, PROCESS_LIMITS, Command, Exit, Limits
from haft.processes import ProcessLauncher, Starter, plain_starter
from haft.sandbox.environment import built_environment

LIMITS = Limits()
TERMS = {
    "sandbox": None,
    "limits": {name: getattr(LIMITS, name) for name in PROCESS_LIMITS},
    "workspace": None,
    "calls": 10,
}


@dataclass
class Sink:
    streamed: dict[str, bytes] = field(default_factory=lambda: {"stdout": b"", "stderr": b""})
    pieces: list[tuple[str, bytes]] = field(default_factory=list)
    children: list = field(default_factory=list)
    exit: Exit | None = None

    def output(self, stream, data):
        self.streamed[stream] += data
        self.pieces.append((stream, data))

    def processes_ended(self, children):
        self.children.extend(children)

    @property
    def stdout(self) -> bytes:
        return self.streamed["stdout"]

    @property
    def stderr(self) -> bytes:
        return self.streamed["stderr"]


class Bench:
    """A starter, a launcher in a workspace, and the mark that its commands carry."""

    def __init__(self, workspace: str, mark: str, starter: Starter) -> None:
        self.mark = mark
        self.starter = starter
        self.launcher = ProcessLauncher(
            self.starter,
            built_environment(os.environ, workspace, NO_CONFINEMENT),
            lambda path: os.open(os.path.join(workspace, path), os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC),
            lambda _command, _directory: TERMS,
            LIMITS,
        )

    async def run(self, *argv: str, sink: Sink | None = None, env=None, **options) -> Sink:
        sink = sink or Sink()
        sink.exit = await self.launcher.run(Command(argv, env={"MARK": self.mark, **(env or {})}, **options), sink)
        return sink

    async def bash(self, line: str, **options) -> Sink:
        return await self.run("bash", "--noprofile", "--norc", "-c", line, **options)

    @property
    def helper(self) -> int:
        return self.starter._process.pid


@pytest.fixture
def workspace(tmp_path):
    directory = tmp_path / "workspace"
    directory.mkdir()
    return directory


@pytest.fixture
def bench(workspace, mark):
    """`with bench() as b:` inside a coroutine."""

    @contextmanager
    def bench():
        made = Bench(str(workspace), mark, plain_starter())
        try:
            yield made
        finally:
            made.starter.close()

    return bench


@pytest.fixture(scope="module")
def _starter():
    found = plain_starter()
    yield found
    found.close()


@pytest.fixture
def bash(workspace, mark, _starter):
    """Run one line and wait for it: what came of it."""

    def bash(line: str, **options) -> Sink:
        return asyncio.run(Bench(str(workspace), mark, _starter).bash(line, **options))

    return bash


@pytest.fixture
def execute(workspace, mark, _starter):
    """Run one argument list and wait for it: what came of it."""

    def execute(*argv: str, **options) -> Sink:
        return asyncio.run(Bench(str(workspace), mark, _starter).run(*argv, **options))

    return execute
