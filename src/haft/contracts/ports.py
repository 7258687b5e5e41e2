"""What a tool is handed: the only ways in which it reaches files, processes and its caller.

Sources and built-ins never start a process or leave the workspace by themselves. They ask through these, so that no
format can slip past limits, the sandbox or the audit log. Implementations live in `processes`, `files` and `pipeline`.
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, BinaryIO, Literal, Protocol

from haft.contracts.confinement import NO_GRANTS, Grants, Layer
from haft.contracts.limits import Limits
from haft.contracts.names import RunId, ThreadId
from haft.contracts.secrets import Secrets
from haft.values import dataclass, field

Stream = Literal["stdout", "stderr"]


@dataclass(frozen=True, slots=True)
class EndedChild:
    """A process that was still there when its call ended, and was ended with it."""

    pid: int
    command: str
    ended: bool = True
    """False where it resisted: another user's, or asleep in the kernel."""

    def to_json(self) -> dict[str, Any]:
        return {"pid": self.pid, "command": self.command, "ended": self.ended}


@dataclass(frozen=True, slots=True)
class Warmth:
    """A program that can be kept loaded: started with `argv`, it speaks the protocol of `haft.helper.warm` and then
    answers each call from a fork of itself."""

    name: str
    """What it is: of each there is one version at a time."""
    version: str
    """Changes with everything that it has loaded."""
    argv: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Command:
    """One program to run: never a shell line, always an argument list."""

    argv: Sequence[str]
    cwd: str = "."
    """Relative to the workspace, beneath it."""
    env: Mapping[str, str] = field(default_factory=dict)
    """Added to the environment that the launcher builds."""
    stdin: bytes = b""
    readable: Sequence[str] = ()
    """Absolute paths of the tool's own files: seen wherever they lie, never written."""
    begun: Callable[[Callable[[bytes], Awaitable[None]]], None] | None = None
    """Called once it runs, with what gives it more input: its input then stays open until it ends."""
    hurried: bool = False
    """Whether it is ended at once when it is cancelled, without time to tidy up: it was only asked something."""
    warm: Warmth | None = None
    """Where it may be kept loaded, and answer from a fork: what it is then. It must behave as it does without."""


@dataclass(frozen=True, slots=True)
class Exit:
    """How a program ended. `code` is 128 + n after signal n."""

    code: int
    signal: int | None = None


class OutputSink(Protocol):
    """Where output goes, as it comes."""

    def output(self, stream: Stream, data: bytes) -> None: ...

    def ended(self, children: Sequence[EndedChild]) -> None:
        """Told when processes had to be ended together with the call."""
        ...


class Session(Protocol):
    """A program that outlives a call."""

    @property
    def is_over(self) -> bool: ...

    def send(self, data: bytes) -> Awaitable[None]:
        """More input. It goes on its way at once; whoever waits for it knows when the program has taken it."""
        ...

    async def begin_call(self) -> None:
        """Have processor time and what is written counted anew: from here on it answers a call."""
        ...

    async def ended(self) -> Exit:
        """How it ended, once it has. Raises what `run` would."""
        ...

    async def end(self) -> None:
        """End it, with everything that it started."""
        ...


class LayeredSession(Session, Protocol):
    """One that works above a layer, which can be exchanged beneath it. `ConnectionResetError` where it has ended."""

    async def stop(self) -> Sequence[str]:
        """Stop all of its processes; what of the layer they still hold, in words for people."""
        ...

    async def go_on(self, layer: Layer) -> None:
        """Let them go on above a fresh layer. `HaftError` where that cannot be had."""
        ...


class Launcher(Protocol):
    """Starts programs. What it runs dies with the call."""

    async def run(self, command: Command, sink: OutputSink) -> Exit:
        """Run to the end. When cancelled, the whole tree of processes is ended before this returns."""
        ...


class AskingLauncher(Launcher, Protocol):
    """Starts foreign programs only to ask them something."""

    @property
    def granted(self) -> Grants:
        """What they have that others have not."""
        ...

    async def is_confined(self) -> bool:
        """Whether anything keeps them from doing something else instead."""
        ...

    def granting(self, grants: Grants) -> AskingLauncher:
        """The same for one of them that a person lets have more: the network, variables, and files to read. What is
        secret of that is masked in its output."""
        ...


class SessionLauncher(Protocol):
    """Starts programs that outlive a call, and end with the host at the latest."""

    async def start(self, command: Command, sink: OutputSink, grants: Grants = NO_GRANTS) -> Session:
        """`grants` hold for as long as it lives; without any it only reads the workspace."""
        ...


@dataclass(frozen=True, slots=True)
class Environment:
    """Where a Python program of its own requirements runs."""

    python: str
    """Its interpreter, absolute."""
    readable: tuple[str, ...]
    """What must be seen for it to run, absolute: the environment, and what it leads to."""
    mark: str
    """Changes when it is made anew."""

    @property
    def root(self) -> str:
        """The environment itself, as `VIRTUAL_ENV` names it."""
        return os.path.dirname(os.path.dirname(self.python))


class Environments(Protocol):
    """Makes environments for folders with a `requirements.txt`, and keeps them."""

    def current(self, folder: str) -> Environment | None:
        """The one that a folder has, if its requirements are still what it was made of. Nothing is started."""
        ...

    async def prepared(
        self, folder: str, told: Callable[[str], None] = lambda _line: None, *, may_build: bool = False
    ) -> Environment:
        """The same, made where it is missing or outdated; `told` what is being done. Whoever else wants it meanwhile
        waits for the same one. `ToolFailed` with the last lines where that did not work, `NeedsBuild` where a package
        has no wheel and may not be built."""
        ...

    def allow_build(self, folder: str, requirements: str) -> None:
        """From now on, the packages of the requirements with this digest may be built, as `NeedsBuild` named them:
        those of a folder that has others by now may not."""
        ...


class Definitions(Protocol):
    """What tools said of themselves, kept from one process to the next, so that listing them starts none. Whatever is
    kept may be gone: it can be asked again."""

    @property
    def context(self) -> str:
        """What else decides what programs say when they are asked, such as how they are confined. A failure under
        another one is looked at again."""
        ...

    def load(self, group: str) -> dict[str, Any]:
        """What is kept of a group: a directory, mostly."""
        ...

    def save(self, group: str, known: Mapping[str, Any]) -> None:
        """Keep this of a group, and forget what was kept."""
        ...


@dataclass(frozen=True, slots=True)
class Replaced:
    """What writing a file did, so that it can be declared."""

    path: str
    """Where the file really lies: relative to the root, links resolved."""
    created: bool
    """Whether it did not exist before."""
    directories: tuple[str, ...] = ()
    """The directories that had to be made for it, outermost first, relative to the root."""


class Workspace(Protocol):
    """The files a tool may touch. Every path is resolved beneath the root without following links out of it."""

    @property
    def root(self) -> str: ...

    def open(self, path: str) -> BinaryIO:
        """A regular file, for reading."""
        ...

    def open_directory(self, path: str) -> int:
        """A descriptor of a directory; the caller closes it."""
        ...

    def replace(self, path: str, content: bytes, *, expect: Any = None) -> Replaced:
        """Write a whole file in one step, making the directories it needs. `expect` is the identity that the file
        must still have (see `identity`), else `Conflict`."""
        ...

    def prepare(self, path: str, *, expect: Any = None) -> Replaced:
        """What `replace` would do, without doing it; raises where it would."""
        ...

    def identity(self, path: str) -> Any:
        """What changes when the file does; None where there is none."""
        ...

    def locate(self, path: str) -> str:
        """Where `path` really lies: relative to the root, links resolved. What does not exist lies where it would be
        made."""
        ...

    def seen_at(self, place: str) -> Workspace:
        """The same files as they are seen at another place, under the same names."""
        ...


class ToolContext(OutputSink, Protocol):
    """What one call of a tool is handed."""

    @property
    def run(self) -> RunId: ...
    @property
    def thread(self) -> ThreadId: ...
    @property
    def who(self) -> str: ...
    @property
    def workspace(self) -> Workspace: ...
    @property
    def launcher(self) -> Launcher: ...
    @property
    def limits(self) -> Limits: ...
    @property
    def cwd(self) -> str: ...
    @property
    def env(self) -> Mapping[str, str]: ...
    @property
    def config(self) -> Mapping[str, Any]: ...
    @property
    def secrets(self) -> Secrets:
        """What is masked in all that leaves the tool. Whoever quotes a part of its output masks before it cuts."""
        ...

    @property
    def cancelled(self) -> bool:
        """Whether the call was cancelled or ran out of time: for functions that can stop early."""
        ...

    @property
    def chain(self) -> tuple[RunId, ...]:
        """The runs that wait for this call: the one that made it, the one that made that, and so on."""
        ...

    def call(self, name: str, arguments: Mapping[str, Any] | None = None, *, timeout: float | None = None) -> Any:
        """Call another tool, as part of this call. In an asynchronous function: await it for the outcome. In any other
        it waits, and gives the outcome."""
        ...

    def stderr_only(self, data: bytes, stream: Stream = "stderr") -> None:
        """What a program wrote to `stream`, where that is kept with stderr and not part of the output."""
        ...

    def progress(self, message: str = "", *, fraction: float | None = None, **facts: Any) -> None: ...
