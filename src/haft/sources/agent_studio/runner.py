"""The program that runs a template, in the template's own Python: nothing but Python's library is imported here.

    python runner.py PLAN            one call: the parameters come on stdin, so that no command line shows them
    python runner.py PLAN serve      kept loaded: the libraries are imported once, and each call is answered by a fork

`PLAN` is JSON: the template's `tool.py`, its digest, and the libraries that it imports. Either way the template sees
what it would see in `python tool.py --user-params … --tool-params …`: its arguments, its folder first on the path, an
empty stdin, a `__main__` of its own, its own output and exit code, and nothing of another call.

How it is kept loaded is said in `haft.helper.warm`. The file itself is run only in the fork: what its modules keep is
new to every call.
"""

from __future__ import annotations

import contextlib
import gc
import hashlib
import importlib
import json
import os
import signal
import stat
import sys
import time
import types
from typing import Any, NoReturn

CHANNEL = 3
LANDLOCK_RESTRICT_SELF = 446
PR_SET_DUMPABLE = 4
FLUSH_FAILED = 120
"""With this a Python exits that could not write the last of its output."""


class Unfit(Exception):
    """Why the libraries cannot be kept loaded."""


def main() -> None:
    """As the arguments say."""
    plan = json.loads(sys.argv[1])
    if sys.argv[2:] == ["serve"]:
        serve(plan)
    path = plan["file"]
    with open(path, "rb") as file:
        source = file.read()
    answer(path, source, None)


def answer(path: str, source: bytes, code: types.CodeType | None) -> NoReturn:
    """Run the template with the parameters that stdin brings."""
    request = json.loads(_all_of_stdin())
    sys.argv = [path, "--user-params", request["user"], "--tool-params", request["tool"]]
    sys.path[0] = os.path.dirname(path)
    status = run(path, source, code)
    if code is None:
        sys.exit(status)
    leave(status)


def _all_of_stdin() -> bytes:
    """What was sent, and then nothing more: whoever reads stdin finds it empty."""
    parts = []
    while part := os.read(0, 1 << 16):
        parts.append(part)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    return b"".join(parts)


def run(path: str, source: bytes, code: types.CodeType | None) -> int:
    """Run the file as `__main__`; the code that it exits with."""
    module = types.ModuleType("__main__")
    loader = importlib.import_module("importlib.machinery").SourceFileLoader("__main__", path)
    module.__dict__.update(__file__=path, __cached__=None, __loader__=loader, __builtins__=sys.modules["builtins"])
    sys.modules["__main__"] = module
    try:
        exec(code or compile(source, path, "exec", dont_inherit=True), module.__dict__)  # noqa: S102  this is what it is for
    except SystemExit as error:
        return _exit_code(error)
    except BaseException as error:
        _show(error)
        if isinstance(error, KeyboardInterrupt):
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            os.kill(os.getpid(), signal.SIGINT)
        return 1
    return 0


def _exit_code(error: SystemExit) -> int:
    if error.code is None:
        return 0
    if isinstance(error.code, int):
        return error.code & 0xFF
    with contextlib.suppress(Exception):
        print(error.code, file=sys.stderr)
    return 1


def _show(error: BaseException) -> None:
    """What Python prints of an exception that nobody caught, without the frames of this file."""
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_code.co_filename == __file__:
        trace = trace.tb_next
    with contextlib.suppress(Exception):
        sys.stdout.flush()
    try:
        sys.excepthook(type(error), error.with_traceback(trace), trace)
    except Exception:
        sys.__excepthook__(type(error), error.with_traceback(trace), trace)


def leave(status: int) -> NoReturn:
    """End a fork as Python ends: threads are waited for, what was registered for the end is run, files are written.
    What was loaded before the fork is not taken apart."""
    import atexit
    import threading

    _quietly(threading._shutdown)  # type: ignore[attr-defined]
    _quietly(atexit._run_exitfuncs)
    for name in [name for name in sys.modules if name not in _LOADED or name == "__main__"]:
        module = sys.modules.pop(name, None)
        if isinstance(module, types.ModuleType):
            _quietly(module.__dict__.clear)
    _quietly(gc.collect)
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except Exception:
            status = FLUSH_FAILED if stream is sys.stdout else status
    os._exit(status)


def _quietly(step: Any) -> None:
    try:
        step()
    except BaseException as error:
        _show(error)


_LOADED: set[str] = set()
"""The modules that were there before the fork."""


def serve(plan: dict[str, Any]) -> NoReturn:
    """Load, and fork when told to. Returns nowhere: a fork that was called answers, and ends."""
    import ctypes
    import socket

    channel = socket.socket(fileno=CHANNEL)
    os.set_inheritable(CHANNEL, False)
    libc = ctypes.CDLL(None)
    path = plan["file"]
    try:
        with open(path, "rb") as file:
            source = file.read()
        if hashlib.sha256(source).hexdigest() != plan["digest"]:
            raise Unfit("it was changed meanwhile")
        code = compile(source, path, "exec", dont_inherit=True)
        with _watched():
            load(plan["imports"], os.path.dirname(path))
    except (Unfit, SyntaxError, ValueError, OSError, RecursionError, MemoryError) as error:
        channel.send(f"no {error}".encode("utf-8", "replace")[:2000])
        os._exit(0)
    _LOADED.update(sys.modules)
    gc.collect()
    gc.freeze()
    libc.prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)  # No call reaches into what the next one comes from.
    channel.send(b"ready")
    while True:
        message, descriptors, _, _ = socket.recv_fds(channel, 16, 1)
        if not message:
            os._exit(0)
        between = os.fork()
        if between == 0:
            if os.fork():
                os._exit(0)
            channel.close()
            with socket.socket(fileno=descriptors[0]) as end:
                _wait_for_call(end, libc)
            answer(path, source, code)
        os.waitpid(between, 0)
        os.close(descriptors[0])


def _wait_for_call(end: Any, libc: Any) -> None:
    import socket

    rehearse()
    while os.getppid() != 1:
        time.sleep(0.0002)
    end.send(b"ready")
    directory, descriptors, _, _ = socket.recv_fds(end, 1 << 16, 4)
    if len(descriptors) < 3:
        os._exit(0)
    for target, descriptor in enumerate(descriptors[:3]):
        os.dup2(descriptor, target)
    libc.prctl(PR_SET_DUMPABLE, 1, 0, 0, 0)
    if len(descriptors) > 3 and libc.syscall(LANDLOCK_RESTRICT_SELF, descriptors[3], 0):
        os.write(2, b"the second wall could not be built\n")
        os._exit(126)
    for descriptor in descriptors:
        os.close(descriptor)
    os.setsid()
    os.chdir(directory)
    numbers = sys.modules.get("numpy.random")
    if numbers is not None:
        numbers.seed()  # Else every call would draw the same.


def load(names: list[str], folder: str) -> None:
    """Import the libraries that a template names, but for its own modules: those are its state."""
    for name in names:
        first = name.partition(".")[0]
        own = os.path.join(folder, first)
        if os.path.lexists(own) or os.path.lexists(f"{own}.py"):
            continue
        with contextlib.suppress(Exception, SystemExit):
            importlib.import_module(name)  # What fails here fails in the call, and is seen there.
    rehearse()  # The first model loads much of its library.


REHEARSAL = """
import argparse, json, typing
from pydantic import BaseModel, Field
class UserParameters(BaseModel):
    pass
class ToolParameters(BaseModel):
    text: str = Field(description="a text")
    number: typing.Optional[int] = 1
parser = argparse.ArgumentParser()
parser.add_argument("--user-params", required=True)
parser.add_argument("--tool-params", required=True)
args = parser.parse_args(["--user-params", "{}", "--tool-params", '{"text": "1"}'])
config = UserParameters(**json.loads(args.user_params))
json.dumps([config, ToolParameters(**json.loads(args.tool_params))], default=str)
"""


def rehearse() -> None:
    """Do what most templates do, and forget it: a fork copies memory when it is first written to, and this has that
    done before the call comes."""
    if "pydantic" in sys.modules:
        with contextlib.suppress(Exception):
            exec(REHEARSAL, {"__name__": "rehearsal"})  # noqa: S102  it stands above


@contextlib.contextmanager
def _watched() -> Any:
    """Refuse what a fork would not have as a new process has it: threads, children, open files, and words that would
    only be said once."""
    before = _descriptors()
    said = os.memfd_create("said")
    kept = [os.dup(1), os.dup(2)]
    for target in (1, 2):
        os.dup2(said, target)
    try:
        yield
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        if os.fstat(said).st_size:
            raise Unfit("its libraries print something when they are imported")
    finally:
        for target, descriptor in zip((1, 2), kept, strict=True):
            os.dup2(descriptor, target)
            os.close(descriptor)
        os.close(said)
    if len(os.listdir("/proc/self/task")) > 1:
        raise Unfit("its libraries start threads when they are imported")
    with contextlib.suppress(ChildProcessError):
        os.waitpid(-1, os.WNOHANG)
        raise Unfit("its libraries start processes when they are imported")
    if _descriptors() - before:
        raise Unfit("its libraries keep files or sockets open")
    for number in (signal.SIGTERM, signal.SIGCHLD, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_DFL:
            raise Unfit("its libraries handle signals")


def _descriptors() -> set[int]:
    """The open ones, but for devices, which are the same to everyone."""
    found = set()
    for name in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):
            if not stat.S_ISCHR(os.fstat(int(name)).st_mode):
                found.add(int(name))
    return found


if __name__ == "__main__":
    main()
