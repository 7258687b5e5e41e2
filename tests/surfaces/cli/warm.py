"""The program, loaded once: every call of it is a process of its own, forked from here, that begins where loading ends.

Started by `conftest.py`, with one end of a socket as its standard input. A request is four descriptors (the three
streams of the call and a pipe for the answer) and JSON: its words, directory and environment. The answer is the number
of its process and, when it has ended, its exit code. What only a process that begins from nothing can show (what is
loaded when, a terminal, a signal) is tested with one.
"""

import atexit
import gc
import io
import json
import os
import pkgutil
import signal
import socket
import sys
import threading
from importlib import import_module, invalidate_caches

import haft

LENGTH = 8


LIBRARIES = ("jsonschema_rs", "tree_sitter", "tree_sitter_bash")


def load():
    """Everything of haft, but for the programs that run beside it, and what it imports on use."""
    for found in pkgutil.walk_packages(haft.__path__, "haft."):
        if not found.name.startswith("haft.helper"):
            import_module(found.name)
    for name in LIBRARIES:
        import_module(name)


def serve(asking):
    """Fork for every request. Returns, in the process that is to run the program, what it was asked for."""
    while True:
        head, received, _, _ = socket.recv_fds(asking, LENGTH, 4)
        if not head:
            os._exit(0)
        request = b""
        while len(request) < int(head):
            request += asking.recv(int(head) - len(request))
        if not os.fork():
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            asking.close()
            *streams, answering = received
            running = os.fork()
            if not running:
                os.close(answering)
                return json.loads(request), streams
            for stream in streams:
                os.close(stream)
            os.write(answering, f"{running}\n".encode())
            code = os.waitstatus_to_exitcode(os.waitpid(running, 0)[1])
            os.write(answering, f"{code}\n".encode())
            os._exit(0)
        for descriptor in received:
            os.close(descriptor)


def become(asked, streams):
    """Begin as `python -m` would have: with these streams, here, and with this environment alone."""
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    sys.stdin = io.TextIOWrapper(open(0, "rb", closefd=False), "utf-8")
    sys.stdout = io.TextIOWrapper(open(1, "wb", closefd=False), "utf-8")
    sys.stderr = io.TextIOWrapper(open(2, "wb", closefd=False), "utf-8", "backslashreplace", line_buffering=True)
    os.chdir(asked["cwd"])
    os.environ.clear()
    os.environ.update(asked["env"])
    sys.path[0] = asked["cwd"]
    sys.argv[1:] = asked["words"]
    invalidate_caches()


def finish(code):
    """End as Python does, but do not take apart what was loaded: that takes longer than most commands."""
    threading._shutdown()
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    load()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the kernel reaps those that wait for others
    gc.freeze()
    become(*serve(socket.socket(fileno=os.dup(0))))
    try:
        import_module("haft.surfaces.cli.main").main()
    except SystemExit as end:
        finish(end.code)
