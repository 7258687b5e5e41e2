"""A host with two services over one workspace: one in the sandbox, and one without any, to show that it is the sandbox
that stops a command, and nothing else."""

import asyncio
import contextlib
import os
import shlex
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import uuid
from pathlib import Path

import pytest

from haft.contracts import NO_GRANTS, Command, Grants, Limits
from haft.files import Root
from haft.sandbox import Sandbox
from haft.service import ToolService

PLAIN_SIGHT = ("/opt", "/srv", "/var/lib")
"""Where root can make a place that the sandbox does not hide. What an ordinary user can write is hidden as a whole."""


async def yes(_request) -> bool:
    return True


class Host:
    """`behind` runs a command in the sandbox, `bare` without, `reading` in one of the profile `read-only`."""

    def __init__(self, base: Path) -> None:
        self.base = base
        self.workspace = base / "workspace"
        self.outside = base / "outside"
        self.person = base / "person"
        self.state = base / "state"
        for place in (self.workspace, self.outside, self.person):
            place.mkdir()
        self._runner = asyncio.Runner()
        self._services = {}
        self._sandbox = None

    def open(self):
        """What this machine can do."""
        for mode in ("auto", "off"):
            self._services[mode] = self._runner.run(self._opened(mode))
        find = Root(str(self.workspace)).open_directory
        self._sandbox = Sandbox(str(self.workspace), str(self.state / "auto"), os.environ, find, Limits())
        self.abilities = self._runner.run(self._sandbox.ready())
        return self.abilities

    async def _opened(self, mode: str) -> ToolService:
        # What nothing confines shall also not be looked at: it must do its harm, or nothing was proven.
        engine = "off" if mode == "off" else "auto"
        service = ToolService.open(
            self.workspace,
            approver=yes,
            home=self.state / mode,
            installed=False,
            settings={"sandbox.mode": mode, "changes.engine": engine},
        )
        return await service.__aenter__()

    def close(self) -> None:
        for service in self._services.values():
            self._runner.run(service.__aexit__(None, None, None))
        if self._sandbox is not None:
            self._sandbox.close()
        self._runner.close()

    def call(self, mode: str, command: str, **grants):
        async def call():
            return await self._services[mode].call("shell", {"command": command}, grants=grants or None, timeout=20)

        return self._runner.run(call())

    def behind(self, command: str, *, sees_outside: bool = False, **grants):
        if sees_outside:
            grants["read"] = [str(self.outside)]
        outcome = self.call("auto", command, **grants)
        assert outcome.sandbox.layers == ("namespaces", "landlock", "seccomp"), outcome.sandbox
        # What never ran proves nothing.
        assert outcome.error is None or "cannot be started" not in outcome.error.message, outcome.error
        return outcome

    def bare(self, command: str):
        return self.call("off", command)

    def reading(self, command: str, *, sees_outside: bool = False, neutral: bool = False):
        """The exit code and the output. `neutral`: as for what passes although nobody approved it."""
        grants = Grants(read=(str(self.outside),)) if sees_outside else NO_GRANTS
        return self._launched(self._sandbox.launcher("read-only", grants, neutral=neutral, unasked=neutral), command)

    def unasked(self, command: str):
        """The exit code and the output, of a call that nobody approved."""
        return self._launched(self._sandbox.launcher("read-only", unasked=True), command)

    def asking(self, command: str):
        """The same for a program that describes itself."""
        return self._launched(self._sandbox.describe_launcher(), command)

    def _launched(self, launcher, command: str):
        heard = bytearray()

        class Sink:
            def output(self, _stream, data):
                heard.extend(data)

            def processes_ended(self, _children): ...

        end = self._runner.run(launcher.run(Command(["bash", "-c", command]), Sink()))
        return end.code, heard.decode(errors="replace")

    def stopped(self, command: str, *, sees_outside: bool = False) -> str:
        """Run it in the sandbox of both profiles: it must fail. What it said."""
        outcome = self.behind(command, sees_outside=sees_outside)
        code, said = self.reading(command, sees_outside=sees_outside)
        assert outcome.status == "error" and outcome.exit_code, outcome.output
        assert code != 0, said
        return outcome.output + said

    def passes_bare(self, command: str) -> str:
        """The control: without a sandbox the same command works."""
        outcome = self.bare(command)
        assert outcome.status == "done", f"the control failed too: {outcome.output}"
        return outcome.output

    def place(self) -> Path:
        """A new directory outside the workspace with a file and a directory in it."""
        found = self.outside / uuid.uuid4().hex[:8]
        (found / "directory").mkdir(parents=True)
        (found / "file").write_text("as it was")
        return found


@pytest.fixture(scope="module")
def host(tmp_path_factory):
    base, made = tmp_path_factory.mktemp("host"), None
    if os.geteuid() == 0:
        made = tempfile.mkdtemp(prefix="haft-test-", dir=next(path for path in PLAIN_SIGHT if os.path.isdir(path)))
        base = Path(made)
    with pytest.MonkeyPatch.context() as patch:
        found = Host(base)
        patch.setenv("HOME", str(found.person))
        patch.setenv("SECRET_OF_THE_HOST", "e-mark-of-the-host")
        try:
            missing = found.open().missing()
            if missing:
                pytest.skip(f"the sandbox cannot be built whole here: {'; '.join(missing)}")
            yield found
        finally:
            found.close()
            if made is not None:
                shutil.rmtree(made, ignore_errors=True)


@pytest.fixture
def python():
    """A command line that runs a piece of Python."""

    def line(code: str, *words: object) -> str:
        return shlex.join([sys.executable, "-I", "-S", "-c", code, *map(str, words)])

    return line


@pytest.fixture
def sleeper():
    """A process of the host with a secret in its environment."""
    process = subprocess.Popen(["sleep", "600"], env={"MARK": "e-mark-of-the-sleeper"})
    yield process
    process.kill()
    process.wait()


class Listener:
    """A socket of the host that remembers whether anything ever came."""

    def __init__(self, family: int, address, kind: int = socket.SOCK_STREAM) -> None:
        self._end = socket.socket(family, kind)
        self._end.bind(address)
        self._kind = kind
        self.address = self._end.getsockname()
        self._heard = threading.Event()
        if kind == socket.SOCK_STREAM:
            self._end.listen()
        self._thread = threading.Thread(target=self._listen, daemon=True)
        self._thread.start()

    def _listen(self) -> None:
        while True:
            try:
                if self._kind == socket.SOCK_STREAM:
                    other, _ = self._end.accept()
                    self._heard.set()
                    with other, contextlib.suppress(OSError):
                        other.sendall(b"SSH-2.0-no\r\n")
                elif self._end.recv(100):
                    self._heard.set()
                else:
                    return
            except OSError:
                return

    def heard(self, seconds: float = 0.05) -> bool:
        """Whether anything came since it was last asked."""
        found = self._heard.wait(seconds)
        self._heard.clear()
        return found

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._end.shutdown(socket.SHUT_RDWR)  # Wakes the thread, which closing alone does not.
        self._thread.join(5)
        self._end.close()


@pytest.fixture
def listen():
    open_ones = []

    def listen(family: int, address, kind: int = socket.SOCK_STREAM) -> Listener:
        open_ones.append(Listener(family, address, kind))
        return open_ones[-1]

    yield listen
    for each in open_ones:
        each.close()
