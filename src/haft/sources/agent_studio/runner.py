"""The program that runs a template, in the template's own Python. It imports only Python's standard library.

    python runner.py PLAN            one call: the parameters come on stdin, so that no process list shows them
    python runner.py PLAN serve      kept loaded: the libraries are imported once, and a fork carries out each call

`PLAN` is JSON: the template's `tool.py`, its digest, the libraries that it imports, and how many of its statements can
run before a call is known. In both modes the template sees the same as in `python tool.py --user-params … --tool-params
…`: its arguments, its folder first on the path, an empty stdin, its own `__main__`, output and exit code, and nothing
of another call.

`haft.helper.warm` describes how a template is kept loaded. `tool.py` itself runs only in the fork, so every call gets
new modules of the template.
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
from collections.abc import Callable
from typing import Any, NoReturn

CHANNEL = 3
LANDLOCK_RESTRICT_SELF = 446
PR_SET_DUMPABLE = 4
FLUSH_FAILED = 120
"""The exit code of a Python that could not write the rest of its output."""
LARGEST_CODE = 1 << 63
FUTURES = 0x1FE0000
"""The code flags for `from __future__ import …`."""
ONE_THREAD = {
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "BLIS_NUM_THREADS": "1",
    "NUMEXPR_NUM_THREADS": "1",
    "JE_ARROW_MALLOC_CONF": "background_thread:false",
}
"""Variables that are set only while libraries are loaded. They keep numpy, pandas and pyarrow from starting threads: a
fork does not copy threads."""


class CannotPreload(Exception):
    """The libraries cannot be kept loaded; the message says why."""


def main() -> None:
    """Carry out one call, or serve as a loaded program, as the command line says."""
    plan = json.loads(sys.argv[1])
    programs = os.path.join(os.environ.get("VIRTUAL_ENV", ""), "bin")
    os.environ["PATH"] = f"{programs}:{os.environ.get('PATH', os.defpath)}"
    if sys.argv[2:] == ["serve"]:
        serve(plan)
    with open(plan["file"], "rb") as file:
        source = file.read()
    script = Script(plan["file"])
    take_arguments(script.path)
    sys.exit(script.run(lambda: compile(source, script.path, "exec", dont_inherit=True)))


def take_arguments(path: str) -> None:
    """Set the command line from the request on stdin."""
    request = json.loads(_all_of_stdin())
    # Change the list in place: libraries that are already loaded may refer to it.
    sys.argv[:] = [path, "--user-params", request["user"], "--tool-params", request["tool"]]


def _all_of_stdin() -> bytes:
    """All bytes of stdin. After that, stdin is empty for other readers."""
    parts = []
    while part := os.read(0, 1 << 16):
        parts.append(part)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    return b"".join(parts)


def read_sources_only(folder: str) -> None:
    """Compile the template's modules from their sources: bytecode in a `__pycache__` may differ from the source that
    people approved."""
    from importlib import machinery

    class Sources(machinery.SourceFileLoader):
        def path_stats(self, path: Any) -> Any:
            raise OSError("bytecode is not used")

    kinds = (
        (machinery.ExtensionFileLoader, machinery.EXTENSION_SUFFIXES),
        (Sources, machinery.SOURCE_SUFFIXES),
        (machinery.SourcelessFileLoader, machinery.BYTECODE_SUFFIXES),
    )
    found = machinery.FileFinder.path_hook(*kinds)
    inside = os.path.join(folder, "")

    def of_the_template(path: str) -> Any:
        if not os.path.join(path, "").startswith(inside) or os.path.join(path, "").startswith(f"{inside}.venv/"):
            raise ImportError(path)
        return found(path)

    sys.path_hooks.insert(0, of_the_template)
    for path in [path for path in sys.path_importer_cache if os.path.join(path, "").startswith(inside)]:
        del sys.path_importer_cache[path]


class Script:
    """The template as `__main__`, run in one or two pieces."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._module = types.ModuleType("__main__")
        loader = importlib.import_module("importlib.machinery").SourceFileLoader("__main__", path)
        own = {"__file__": path, "__cached__": None, "__loader__": loader, "__builtins__": sys.modules["builtins"]}
        self._module.__dict__.update(own)
        sys.modules["__main__"] = self._module
        sys.path[0] = os.path.dirname(path)
        read_sources_only(os.path.dirname(path))
        self._raised: BaseException | None = None

    def begin(self, code: types.CodeType) -> None:
        """Run the first piece. If it raises an exception, `run` raises that exception later."""
        try:
            exec(code, self._module.__dict__)  # noqa: S102  to run a template is the purpose of this file
        except BaseException as error:
            self._raised = error

    def run(self, compiled: Callable[[], types.CodeType]) -> int:
        """Run the second piece, or the whole file. Returns the exit code of the template."""
        try:
            if self._raised is not None:
                raise self._raised
            exec(compiled(), self._module.__dict__)  # noqa: S102  to run a template is the purpose of this file
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
        return error.code & 0xFF if -LARGEST_CODE <= error.code < LARGEST_CODE else 0xFF
    with contextlib.suppress(Exception):
        print(error.code, file=sys.stderr)
    return 1


def _show(error: BaseException) -> None:
    """Print an uncaught exception as Python does, without the frames of this file."""
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
    """End a fork as a Python process ends: wait for threads, run exit functions, flush files. Objects from before the
    fork are not destroyed."""
    import atexit
    import threading

    _quietly(threading._shutdown)  # type: ignore[attr-defined]
    _quietly(atexit._run_exitfuncs)
    status = _flushed(status)
    modules: dict[str, Any] = dict(sys.modules)
    for module in [each for name, each in modules.items() if name not in _LOADED or name == "__main__"]:
        if isinstance(module, types.ModuleType) and str(getattr(module, "__file__", "")).startswith(_folder):
            _quietly(lambda names=module.__dict__: names.update(dict.fromkeys(names)))
    _quietly(gc.collect)
    _quietly(_write_files)
    os._exit(_flushed(status))


def _flushed(status: int) -> int:
    for stream in (sys.stdout, sys.__stdout__, sys.stderr, sys.__stderr__):
        try:
            if stream is not None and not stream.closed:
                stream.flush()
        except Exception:
            status = FLUSH_FAILED if stream in (sys.stdout, sys.__stdout__) else status
    return status


def _write_files() -> None:
    """Flush files that are still open."""
    import io

    made = gc.get_objects()
    for kind in (io.TextIOWrapper, io.BufferedWriter, io.BufferedRandom, io.BufferedRWPair):
        for each in made:
            if type(each) is kind and not each.closed:
                with contextlib.suppress(Exception):
                    each.flush()


def _quietly(step: Any) -> None:
    try:
        step()
    except BaseException as error:
        _show(error)


_LOADED: set[str] = set()
"""The modules that were loaded before the fork."""
_folder = ""
"""The folder of the template's own modules."""


def serve(plan: dict[str, Any]) -> NoReturn:
    """Load the libraries, and fork for each request of the helper. Never returns: each fork carries out one call and
    ends."""
    import ctypes
    import socket

    channel = socket.socket(fileno=CHANNEL)
    os.set_inheritable(CHANNEL, False)
    libc = ctypes.CDLL(None)
    try:
        first, rest = pieces(plan)
        with _watched(), _one_thread():
            load(plan["imports"], os.path.dirname(plan["file"]))
    except (CannotPreload, SyntaxError, ValueError, OSError, RecursionError, MemoryError) as error:
        channel.send(f"no {error}".encode("utf-8", "replace")[:2000])
        os._exit(0)
    global _folder
    _folder = os.path.join(os.path.dirname(plan["file"]), "")
    _LOADED.update(sys.modules)
    gc.collect()
    gc.freeze()
    channel.send(b"ready")
    while True:
        message, descriptors, _, _ = socket.recv_fds(channel, 16, 1)
        if not message:
            os._exit(0)
        libc.prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)  # A call cannot access the process that the next call is forked from.
        between = os.fork()
        if between == 0:
            if os.fork():
                os._exit(0)
            channel.close()
            with socket.socket(fileno=descriptors[0]) as end:
                script = _ahead(plan["file"], first)
                _wait_for_call(end, libc)
            take_arguments(script.path)
            leave(script.run(lambda: rest))
        os.waitpid(between, 0)
        os.close(descriptors[0])
        channel.send(b"ready")


def pieces(plan: dict[str, Any]) -> tuple[types.CodeType | None, types.CodeType]:
    """The compiled file in two pieces: the statements that can run before a call is known (None if there are none), and
    all other statements."""
    path, count = plan["file"], plan["ahead"]
    with open(path, "rb") as file:
        source = file.read()
    if hashlib.sha256(source).hexdigest() != plan["digest"]:
        raise CannotPreload("its file has changed meanwhile")
    if not count:
        return None, compile(source, path, "exec", dont_inherit=True)
    import ast

    tree = ast.parse(source, path)
    first = compile(ast.Module(tree.body[:count], []), path, "exec", dont_inherit=True)
    flags = first.co_flags & FUTURES
    return first, compile(ast.Module(tree.body[count:], []), path, "exec", flags=flags, dont_inherit=True)


def _ahead(path: str, first: types.CodeType | None) -> Script:
    """Do as much as possible in the fork before its call arrives, so that the work does not delay the call. Part of
    this work is the copying of memory, which happens in a fork at the first write."""
    where = os.getcwd()
    rehearse(ARGUMENTS if first is not None else ALL)
    script = Script(path)
    if first is not None:
        script.begin(first)
    global _moved
    _moved = os.getcwd() != where
    return script


_moved = False
"""Whether the template changed its working directory."""


def _wait_for_call(end: Any, libc: Any) -> None:
    import socket

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
        os.write(2, b"the second sandbox could not be built\n")
        os._exit(126)
    for descriptor in descriptors:
        os.close(descriptor)
    os.setsid()
    os.chdir(os.getcwd() if _moved else directory)  # Enter the directory again: the call's layer now covers it.
    numbers = sys.modules.get("numpy.random")
    if numbers is not None:
        numbers.seed()  # Without a new seed, every call would get the same random numbers.
    if _duckdb_threads:
        sys.modules["duckdb"].execute(f"SET threads = {_duckdb_threads}")


def load(names: list[str], folder: str) -> None:
    """Import the libraries that a template imports. The template's own modules are not imported here, because they hold
    its state."""
    for name in names:
        first = name.partition(".")[0]
        own = os.path.join(folder, first)
        if os.path.lexists(own) or os.path.lexists(f"{own}.py"):
            continue
        with contextlib.suppress(Exception, SystemExit):
            importlib.import_module(name)  # A failing import also fails in the call, which reports it.
        _end_threads()
        if _has_threads():
            raise CannotPreload(f"`{first}` starts threads when it is imported")
    rehearse(ALL)  # The first pydantic model loads much of its library.


@contextlib.contextmanager
def _one_thread() -> Any:
    before = dict(os.environ)
    os.environ.update(ONE_THREAD)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def _has_threads() -> bool:
    return len(os.listdir("/proc/self/task")) > 1


MOST_SECONDS_ENDING = 1.0
_duckdb_threads = 0
"""The number of threads that duckdb's own connection had before it was reduced to one: each call restores it."""


def _end_threads() -> None:
    """Reduce duckdb's own connection to one thread: some versions of duckdb open a connection with several threads when
    they are imported."""
    global _duckdb_threads
    duckdb = sys.modules.get("duckdb")
    if duckdb is not None and not _duckdb_threads and _has_threads():
        with contextlib.suppress(Exception):
            _duckdb_threads = int(duckdb.execute("SELECT current_setting('threads')").fetchone()[0])
            duckdb.execute("SET threads = 1")
        _wait_for_one_thread()


def _wait_for_one_thread() -> None:
    """Wait until the kernel no longer lists the threads that have ended."""
    end = time.monotonic() + MOST_SECONDS_ENDING
    while _has_threads() and time.monotonic() < end:
        time.sleep(0.001)


MODELS = """
from typing import Optional
from pydantic import BaseModel, Field
class UserParameters(BaseModel):
    pass
class ToolParameters(BaseModel):
    text: str = Field(description="a text")
    number: Optional[int] = 1
UserParameters()
ToolParameters(text="1")
"""
ARGUMENTS = """
import argparse, json
parser = argparse.ArgumentParser()
parser.add_argument("--user-params", required=True)
parser.add_argument("--tool-params", required=True)
args = parser.parse_args(["--user-params", "{}", "--tool-params", '{"text": "1"}'])
json.dumps([json.loads(args.user_params), json.loads(args.tool_params)])
"""
ALL = MODELS + ARGUMENTS


def rehearse(what: str) -> None:
    """Run the code `what`, which does the same as most templates at their start, so that the libraries load the modules
    for this work before the first call."""
    if "pydantic" in sys.modules:
        with contextlib.suppress(Exception):
            exec(REHEARSALS[what], {"__name__": "rehearsal"})  # noqa: S102  the code is a constant of this file


REHEARSALS = {what: compile(what, "rehearsal", "exec") for what in (ARGUMENTS, ALL)}
"""The code of `rehearse`, compiled before any fork."""


@contextlib.contextmanager
def _watched() -> Any:
    """A context manager around the import of libraries. Raises `CannotPreload` if the import does something that makes
    a fork differ from a new process. It refuses libraries that start threads or processes, keep files open, print, or
    handle signals."""
    before = _descriptors()
    said = os.open("/dev/shm", os.O_TMPFILE | os.O_RDWR, 0o600)  # noqa: S108  a file without a name, in memory of this sandbox
    kept = [os.dup(1), os.dup(2)]
    for target in (1, 2):
        os.dup2(said, target)
    try:
        yield
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        if os.fstat(said).st_size:
            raise CannotPreload("its libraries print something when they are imported")
    finally:
        for target, descriptor in zip((1, 2), kept, strict=True):
            os.dup2(descriptor, target)
            os.close(descriptor)
        os.close(said)
    if _has_threads():
        raise CannotPreload("its libraries start threads when they are imported")
    with contextlib.suppress(ChildProcessError):
        os.waitpid(-1, os.WNOHANG)
        raise CannotPreload("its libraries start processes when they are imported")
    if _descriptors() - before:
        raise CannotPreload("its libraries keep files or sockets open")
    for number in (signal.SIGTERM, signal.SIGCHLD, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_DFL:
            raise CannotPreload("its libraries handle signals")


def _descriptors() -> set[int]:
    """The open descriptors, except devices, which are the same for all processes."""
    found = set()
    for name in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):
            if not stat.S_ISCHR(os.fstat(int(name)).st_mode):
                found.add(int(name))
    return found


if __name__ == "__main__":
    main()
