"""The protocols through which a tool reaches files, processes and its caller.

Sources and built-in tools never start a process or leave the workspace by themselves. They use these protocols, so that
no format can bypass the limits, the sandbox or the audit log. `processes`, `files` and `pipeline` implement them.
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, BinaryIO, Literal, Protocol

from haft.contracts.confinement import NO_GRANTS, Grants, Layer
from haft.contracts.limits import Limits
from haft.contracts.names import RunId, ThreadId
from haft.contracts.questions import Question, QuestionMethod
from haft.contracts.secrets import Secrets
from haft.values import dataclass, field

Stream = Literal["stdout", "stderr"]


@dataclass(frozen=True, slots=True)
class EndedChild:
    """A process that still ran when its call ended, so that haft ended the process too."""

    pid: int
    command: str
    ended: bool = True
    """False if the process could not be ended, because it belongs to another user, or hangs in the kernel."""

    def to_json(self) -> dict[str, Any]:
        return {"pid": self.pid, "command": self.command, "ended": self.ended}


@dataclass(frozen=True, slots=True)
class WarmProgram:
    """A program that can be kept loaded in the warm pool. Started with `argv`, it speaks the protocol of
    `haft.helper.warm` and answers each call from a fork of itself."""

    name: str
    """Identifies the program. The pool keeps one version of each program."""
    version: str
    """Changes whenever anything that the program has loaded changes."""
    argv: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Mount:
    """A file or directory of the host that a program sees under another path."""

    source: str
    target: str
    is_writable: bool = True
    has_socket: bool = False
    """Whether there is a socket in it to which the program may connect. The sandbox covers all other sockets of the
    host."""


class Terminal(Protocol):
    """The terminal on which a person works with a program. The program itself gets a pseudoterminal of its own."""

    def size(self) -> tuple[int, int]:
        """The number of rows and columns."""
        ...

    def attach(self, descriptor: int) -> None:
        """Called when the program is about to start, with a descriptor of the controlling side of the program's
        pseudoterminal. The caller closes it after `detach`."""
        ...

    def received(self, data: bytes) -> None:
        """Called with everything that the program writes to its pseudoterminal."""
        ...

    def detach(self) -> None:
        """Called when the program has ended."""
        ...


@dataclass(frozen=True, slots=True)
class Command:
    """One program to run: an argument list, never a shell command line."""

    argv: Sequence[str]
    cwd: str = "."
    """A directory in the workspace, relative to it."""
    env: Mapping[str, str] = field(default_factory=dict)
    """Variables that are added to the environment that the launcher makes."""
    stdin: bytes = b""
    input: int | None = None
    """A descriptor of this process. The program gets as its stdin what can be read from it, after `stdin`."""
    readable: Sequence[str] = ()
    """Absolute paths of the tool's own files: always readable, never writable."""
    keeps: Sequence[str] = ()
    """Absolute paths of directories in the state home in which the program keeps files of its own: always writable.
    What it writes there is no change of the call, and cannot be undone."""
    stdin_descriptor: int | None = None
    """A descriptor that the program gets as its stdin, instead of the bytes in `stdin`. Whoever set it closes it."""
    merges_streams: bool = False
    """Whether the program gets one pipe as stdout and stderr, so that their order is kept. All output is then
    stdout."""
    until_writable: Callable[[], Awaitable[None] | None] | None = None
    """Called after each piece of output. Until the result is done, no more output is read, so that the program waits
    for whoever takes the output. None means that nobody has to be waited for."""
    on_start: Callable[[Callable[[bytes], Awaitable[None]]], None] | None = None
    """Called when the program runs, with a function that sends more input to the program. If this is set, the program's
    stdin stays open until the program ends."""
    kill_at_once: bool = False
    """Whether a cancellation kills the program at once, without time to clean up. For programs that only answer a
    question."""
    warm: WarmProgram | None = None
    """A program of the warm pool that may handle the call instead, in a fork of itself. It must behave like `argv`."""
    mounts: Sequence[Mount] = ()
    """Files and directories of the host that the program sees under other paths."""
    on_process: Callable[[Callable[[], None]], None] | None = None
    """Called when the program runs, with a function that sends KILL to all its processes. For tests."""
    pipe_bytes: int | None = None
    """The size of the pipes of stdin, stdout and stderr; None: as large as the system allows. For tests."""
    terminal: Terminal | None = None
    """The person's terminal, for a program that needs one. The program then gets a pseudoterminal as its controlling
    terminal, and as stdin, stdout and stderr."""


@dataclass(frozen=True, slots=True)
class Exit:
    """How a program ended. `code` is 128 + n after signal n."""

    code: int
    signal: int | None = None


class OutputSink(Protocol):
    """Receives the output of a program while it runs."""

    def output(self, stream: Stream, data: bytes) -> None: ...

    def processes_ended(self, children: Sequence[EndedChild]) -> None:
        """Called when processes had to be ended together with the call."""
        ...


class Session(Protocol):
    """A program that outlives a call."""

    @property
    def is_over(self) -> bool: ...

    def send(self, data: bytes) -> Awaitable[None]:
        """Send input to the program at once, without awaiting. Await the result to wait until the program has read the
        input."""
        ...

    def begin_call(self) -> None:
        """Start a call, at the moment when the program hears of it: processor time and written bytes count from 0
        again. What the program wrote to stderr before is reported."""
        ...

    async def end_call(self) -> None:
        """End a call: return when the output that the program has written, and the connections that it made, were
        reported."""
        ...

    async def wait(self) -> Exit:
        """Wait until the program ends, and return how it ended. Raises the errors that `Launcher.run` would raise."""
        ...

    async def end(self) -> None:
        """End the program and all processes that it started."""
        ...


class LayeredSession(Session, Protocol):
    """A session whose writes go to a layer. haft can replace the layer while the program lives. The methods raise
    `ConnectionResetError` if the program has ended."""

    async def stop(self) -> Sequence[str]:
        """Stop all processes, so that they do nothing until `resume`. Returns what they still use of the layer, in
        words for a person."""
        ...

    async def resume(self, layer: Layer) -> None:
        """Let the processes continue with a new layer. Raises `HaftError` if that is not possible."""
        ...


class Launcher(Protocol):
    """Runs programs. They end with the call."""

    async def run(self, command: Command, sink: OutputSink) -> Exit:
        """Run a program to its end. A cancellation ends the whole process tree before this returns."""
        ...


class DescribeLauncher(Launcher, Protocol):
    """Runs programs only to describe tools. At this time, nobody may have approved the tools yet."""

    @property
    def granted(self) -> Grants:
        """The grants that these programs have."""
        ...

    async def is_confined(self) -> bool:
        """Whether a sandbox confines these programs."""
        ...

    def with_grants(self, grants: Grants) -> DescribeLauncher:
        """A launcher for a program to which a person granted more: network, variables, and files to read. Granted
        secrets are masked in its output."""
        ...


class SessionLauncher(Protocol):
    """Starts programs that outlive a call, and end with the host at the latest."""

    async def start(
        self,
        command: Command,
        sink: OutputSink,
        grants: Grants = NO_GRANTS,
        current_run: Callable[[], RunId | None] = lambda: None,
    ) -> Session:
        """Start a program. The `grants` hold until the program ends. Without grants, the program can read the
        workspace, but cannot write there. `current_run` returns the run of the call that the program carries out
        now: the program's connections are recorded in it."""
        ...


@dataclass(frozen=True, slots=True)
class Environment:
    """A Python environment with the requirements of one program."""

    python: str
    """The absolute path of the interpreter."""
    readable: tuple[str, ...]
    """Absolute paths that must be readable to run the interpreter: the environment, and the directories to which links
    in it lead."""
    mark: str
    """A text that changes when the environment is made again."""

    @property
    def root(self) -> str:
        """The directory of the environment, as in `VIRTUAL_ENV`."""
        return os.path.dirname(os.path.dirname(self.python))


class Environments(Protocol):
    """Makes and stores environments for folders with a `requirements.txt`."""

    def current(self, folder: str) -> Environment | None:
        """The environment of a folder; None if there is none, or the requirements have changed. Starts no process."""
        ...

    async def prepare(
        self, folder: str, progress: Callable[[str], None] = lambda _line: None, *, may_build: bool = False
    ) -> Environment:
        """The environment of a folder; makes it if it is missing or outdated. `progress` gets a line for each step. If
        several calls need the environment at the same time, it is made once, and all of these calls wait. Raises
        `ToolFailed` with the last lines of output if that fails, `NeedsBuild` if a package has no wheel and may not be
        built."""
        ...

    def allow_build(self, folder: str, requirements: str) -> None:
        """Allow the packages in a folder's requirements to be built. `requirements` is the digest in `NeedsBuild`; if
        the requirements have changed since, nothing is allowed."""
        ...


class Definitions(Protocol):
    """Stores the descriptions of tools on disk, so that listing tools starts no process. An entry may be lost at any
    time; then haft describes the tool again."""

    @property
    def context(self) -> str:
        """A text that names everything besides the tool itself that a description depends on, such as the confinement.
        If a tool could not be described in another context, haft tries again in this one."""
        ...

    def load(self, group: str) -> dict[str, Any]:
        """The stored descriptions of a group of tools. A group is usually one directory."""
        ...

    def save(self, group: str, known: Mapping[str, Any]) -> None:
        """Replace the stored descriptions of a group of tools."""
        ...


@dataclass(frozen=True, slots=True)
class WrittenFile:
    """The result of writing a file. A tool uses it to declare its changes."""

    path: str
    """The real path of the file: relative to the root, with links resolved."""
    created: bool
    """Whether the file did not exist before."""
    directories: tuple[str, ...] = ()
    """The directories that were created for the file, the outermost first, relative to the root."""


class Workspace(Protocol):
    """The files that a tool may use. Every path is resolved beneath the root; no link leads out of the root."""

    @property
    def root(self) -> str: ...

    def open(self, path: str) -> BinaryIO:
        """Open a regular file for reading."""
        ...

    def open_directory(self, path: str) -> int:
        """Open a directory, and return its descriptor; the caller closes it."""
        ...

    def replace(self, path: str, content: bytes, *, expect: Any = None) -> WrittenFile:
        """Write a whole file atomically, and create the directories it needs. Raises `Conflict` if the file no longer
        has the identity `expect` (see `identity`)."""
        ...

    def prepare(self, path: str, *, expect: Any = None) -> WrittenFile:
        """Return what `replace` would return, without writing anything. Raises the errors that `replace` would
        raise."""
        ...

    def identity(self, path: str) -> Any:
        """A value that changes when the file changes; None if there is no file."""
        ...

    def locate(self, path: str) -> str:
        """The real path of `path`: relative to the root, with links resolved. The path need not exist."""
        ...

    def seen_at(self, place: str, *, is_readonly: bool = False) -> Workspace:
        """The same workspace, but with its files read from and written to the directory `place`. Tools use the same
        paths as before. With `is_readonly`, nothing can be written there, and `prepare` does not mind."""
        ...


class ToolContext(OutputSink, Protocol):
    """What a tool gets for one call."""

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
        """The values that are masked in everything that leaves the tool. Mask a text before you cut it."""
        ...

    @property
    def cancelled(self) -> bool:
        """Whether the call was cancelled or timed out. Functions can check it and stop early."""
        ...

    @property
    def chain(self) -> tuple[RunId, ...]:
        """The runs that wait for this call: its caller, the caller of its caller, and so on."""
        ...

    def call(self, name: str, arguments: Mapping[str, Any] | None = None, *, timeout: float | None = None) -> Any:
        """Call another tool as part of this call. In an asynchronous function, this returns an awaitable of the
        outcome. In any other function, it waits, and returns the outcome."""
        ...

    def ask(self, *questions: Question) -> Any:
        """Ask a person, or the program that made the call. In an asynchronous function, this returns an awaitable of
        the answers, a list of `QuestionAnswer`. In any other function, it waits, and returns the answers. If nobody can
        answer, the answer is `cancel`."""
        ...

    def can_ask(self, method: QuestionMethod = "elicitation/create") -> bool:
        """Whether anybody may answer questions of this kind."""
        ...

    def stderr_only(self, data: bytes, stream: Stream = "stderr") -> None:
        """Add text to the outcome's `stderr` and not to its `output`. `stream` is the stream to which the program wrote
        the text."""
        ...

    def program_log(self, text: str, *, is_shared: bool) -> None:
        """Report what the program of a failed call wrote to its own log meanwhile. It is no output: haft only looks in
        it for the reason of the failure. With `is_shared`, some of it may be about other calls."""
        ...

    def progress(self, message: str = "", *, fraction: float | None = None, **facts: Any) -> None: ...
