"""A context for tools without the rest of the house: real files, and a launcher that really runs programs."""

import asyncio
import os
from dataclasses import dataclass, field
from typing import Any

import pytest

from haft.contracts import Answer, Command, Exit, Limits
from haft.files import Root


class PlainLauncher:
    """Runs the program as it is: no limits, no sandbox; just honest output and exit codes."""

    def __init__(self, root: str) -> None:
        self.root = root
        self.commands: list[Command] = []
        self.env: dict[str, str] = {}

    async def run(self, command: Command, sink: Any) -> Exit:
        self.commands.append(command)
        process = await asyncio.create_subprocess_exec(
            *command.argv,
            cwd=os.path.join(self.root, command.cwd),
            env={"PATH": os.environ["PATH"], **self.env, **command.env},
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )

        async def pump(reader: Any, stream: str) -> None:
            while data := await reader.read(1000):
                sink.output(stream, data)

        process.stdin.write(command.stdin)
        process.stdin.close()
        await asyncio.gather(pump(process.stdout, "stdout"), pump(process.stderr, "stderr"))
        code = await process.wait()
        return Exit(code) if code >= 0 else Exit(128 - code, signal=-code)


@dataclass
class Context:
    workspace: Root
    launcher: PlainLauncher
    limits: Limits = field(default_factory=Limits)
    run: str = "r_test"
    thread: str = "T-test"
    who: str = "tester"
    cwd: str = "."
    env: dict[str, str] = field(default_factory=dict)
    config: dict[str, Any] = field(default_factory=dict)
    cancelled: bool = False
    streamed: dict[str, bytes] = field(default_factory=lambda: {"stdout": b"", "stderr": b""})

    def output(self, stream: str, data: bytes) -> None:
        self.streamed[stream] += data

    def processes_ended(self, children: Any) -> None:
        pass

    def progress(self, message: str = "", *, fraction: float | None = None, **facts: Any) -> None:
        pass

    @property
    def stdout(self) -> str:
        return self.streamed["stdout"].decode()


@pytest.fixture
def workspace(tmp_path):
    directory = tmp_path / "workspace"
    directory.mkdir()
    return directory


@pytest.fixture
def context(workspace):
    return Context(Root(workspace), PlainLauncher(str(workspace)))


@pytest.fixture
def call(context):
    """Call a tool by its class, as the pipeline would."""

    def call(tool: type, **arguments: Any) -> Answer:
        async def go() -> Answer:
            made = tool()
            return await made.invoke(await made.preprocess(arguments, context), context)

        return asyncio.run(go())

    return call
