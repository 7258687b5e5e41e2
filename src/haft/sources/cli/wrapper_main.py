"""The main part of a wrapper, an executable for one command: it speaks the toolbox protocol and uses `arguments`. It
imports only Python's standard library.

In a wrapper, the code above this part defines `COMMAND`, which has the description and the program.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

from haft.sources.cli.arguments import Refused, words_of

COMMAND: dict[str, Any] = {}


def main() -> int:
    """Carry out the action that TOOLBOX_ACTION names. Returns the exit code."""
    action = os.environ.get("TOOLBOX_ACTION")
    if action == "describe":
        args = {one["name"]: [one.get("type", "string"), one.get("help", "")] for one in COMMAND["parameters"]}
        about = {"name": COMMAND["name"], "description": COMMAND["description"], "args": args}
        print(json.dumps(about, indent=2))
        return 0
    if action == "execute":
        return execute()
    print(f"{COMMAND['name']}: {COMMAND['description']}", file=sys.stderr)
    print(f"usage: TOOLBOX_ACTION=describe|execute {sys.argv[0]}; execute reads JSON from stdin", file=sys.stderr)
    return 2


def execute() -> int:
    """Run the program with the arguments from stdin. Returns the exit code."""
    try:
        text = sys.stdin.buffer.read() if sys.stdin else b""
        words, stdin = words_of(COMMAND, json.loads(text) if text.strip() else {})
    except (ValueError, RecursionError) as error:
        return refuse(f"stdin is not valid JSON: {error}")
    except Refused as error:
        return refuse(str(error))
    return run([*COMMAND["program"], *words], stdin)


def refuse(why: str) -> int:
    """Print the problem and the parameters to stderr. Returns the exit code."""
    print(f"{COMMAND['name']}: {why}", file=sys.stderr)
    taken = ", ".join(one["name"] if one.get("required") else f"[{one['name']}]" for one in COMMAND["parameters"])
    print(f"it takes: {taken or 'no arguments'}", file=sys.stderr)
    return 1


def run(argv: list[str], stdin: bytes) -> int:
    """Run a program, which prints to the stdout and stderr of this process. Returns its exit code, or 128 + n if signal
    n ended it."""
    import signal

    reading, writing = os.pipe()
    actions = [(os.POSIX_SPAWN_DUP2, reading, 0), (os.POSIX_SPAWN_CLOSE, writing)]
    ending = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, ending)
    how: dict[str, Any] = {"file_actions": actions, "setsigdef": [signal.SIGPIPE], "setsigmask": mask}
    try:
        env = {name: value for name, value in os.environ.items() if name != "TOOLBOX_ACTION"}
        pid = os.posix_spawnp(argv[0], argv, env, **how)
    except (OSError, ValueError) as error:
        print(f"{COMMAND['name']}: `{argv[0]}` cannot be started: {error}", file=sys.stderr)
        if isinstance(error, OSError) and error.errno == 7:
            print("the arguments are longer than this machine allows for a command line", file=sys.stderr)
        if isinstance(error, FileNotFoundError):
            elsewhere = "that path is from the machine where this tool was wrapped: wrap it again here, without `--pin`"
            print(elsewhere if os.sep in argv[0] else f"install `{argv[0]}`, or fix PATH", file=sys.stderr)
        return 127
    for number in ending:
        signal.signal(number, lambda number, _frame: os.kill(pid, number))
    signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    os.close(reading)
    try:
        while stdin:
            stdin = stdin[os.write(writing, stdin) :]
    except BrokenPipeError:
        pass
    os.close(writing)
    _pid, status = os.waitpid(pid, 0)
    return os.WEXITSTATUS(status) if os.WIFEXITED(status) else 128 + os.WTERMSIG(status)


if __name__ == "__main__":
    sys.exit(main())
