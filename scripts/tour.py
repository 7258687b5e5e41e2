"""`make tour`: what haft does for a person, in a temporary directory. Every step checks what it shows."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import select
import stat
import struct
import subprocess
import sys
import sysconfig
import tempfile
import termios
import time

PROGRAMS = sysconfig.get_path("scripts")
IS_TERMINAL = sys.stdout.isatty()
COLOUR = IS_TERMINAL and "NO_COLOR" not in os.environ
COLUMNS = 100
_QUESTION = re.compile(r"\[y/N[^\]]*\] $")
_REDRAWN = re.compile(r"[^\n]*\r\x1b\[2K")
"""A progress line that the next one has replaced."""

FETCH = "import urllib.request\n\n\ndef fetch(url):\n    return urllib.request.urlopen(url, timeout=10).read()\n"
PARSE = "import json\n\n\ndef parse(data):\n    return json.loads(data)\n"
SALES = "month,apples,pears\nJanuary,120,80\nFebruary,90,110\nMarch,140,95\n"


def heading(number: int, title: str, sentence: str) -> None:
    title = f"{number}. {title}"
    print(
        f"\n\033[1m{title}\033[0m\n{sentence}\n" if COLOUR else f"\n{title}\n{'-' * len(title)}\n{sentence}\n",
        flush=True,
    )


def stop(reason: str) -> None:
    sys.exit(f"\nthe tour stops here: {reason}")


def run(command: str, *, answer: str = "", fails: bool = False, unless: str | None = None) -> str:
    """Run a command line in a terminal, answer its question as a person would, and show what appears.

    Stop the tour if the command fails, or does not where it should, unless it prints `unless`.
    """
    print(f"\033[36m$ {command}\033[0m" if COLOUR else f"$ {command}", flush=True)
    child, terminal = pty.fork()
    if child == 0:
        os.execvp("bash", ["bash", "-c", command])
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 50, COLUMNS, 0, 0))
    seen = ""
    while True:
        select.select([terminal], [], [])
        try:
            part = os.read(terminal, 65536)
        except OSError:  # Linux says so where the program has ended
            break
        if not part:
            break
        seen += part.decode("utf-8", "replace")
        if IS_TERMINAL:
            os.write(1, part)
        if answer and _QUESTION.search(seen):
            os.write(terminal, f"{answer}\n".encode())
            answer = ""
    has_failed = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) != 0
    os.close(terminal)
    if not IS_TERMINAL:
        print(_REDRAWN.sub("", seen.replace("\r\n", "\n")), end="", flush=True)
    if has_failed != fails and (unless is None or unless not in seen):
        stop(f"`{command}` {'failed' if has_failed else 'did not fail'}")
    return seen


def tree() -> dict[str, tuple[object, ...]]:
    """Every file and directory: its mode and, of files, content and time."""
    found: dict[str, tuple[object, ...]] = {}
    for here, directories, files in os.walk("."):
        for name in (*directories, *files):
            path = os.path.join(here, name)
            status = os.lstat(path)
            if stat.S_ISREG(status.st_mode):
                with open(path, "rb") as file:
                    found[path] = (status.st_mode, file.read(), status.st_mtime_ns)
            else:
                found[path] = (status.st_mode,)
    return found


def has_sandbox() -> bool:
    """Whether calls are confined on this machine."""
    done = subprocess.run(["haft", "doctor", "--json"], capture_output=True, text=True, check=False)
    return any(check["check"] == "sandbox" and check["state"] == "ok" for check in json.loads(done.stdout))


def mistake() -> None:
    heading(
        1,
        "A mistake, undone",
        "The agent deletes your sources with a shell command. `haft undo` takes back that one call.",
    )
    before = tree()
    run("haft tools use shell --command 'rm -r src' --approve")
    run("ls")
    run("haft undo")
    if tree() != before:
        stop("the files are not what they were")
    run("ls src")
    print("(every file has its content, mode and time again)")


def trial() -> None:
    heading(2, "A trial run", "See what a command changes before the changes count. Here the answer is no.")
    before = tree()
    run("haft tools use shell --command 'rm src/parse.py; echo DEBUG=1 >> src/fetch.py' --try", answer="n", fails=True)
    if tree() != before:
        stop("a trial run changed the workspace")


def whole_program() -> None:
    heading(
        3,
        "A whole agent in one run",
        "`haft run` confines a whole program, such as an agent. Its changes count only when you have seen them.",
    )
    if not has_sandbox():
        print("(this machine has no sandbox, see `haft doctor`: the tour goes on without this step)")
        return
    before = tree()
    run("haft run -- bash -c 'rm -r src; echo done > result.txt; cat ~/.ssh/id_ed25519'", answer="n", fails=True)
    if tree() != before:
        stop("the program changed the workspace")
    run("haft changes list")


def approval() -> None:
    heading(4, "Approval", "haft takes a command line apart, and says which part needs your approval and why.")
    run("haft tools use shell --command 'grep -c def src/*.py && cp src/parse.py old_parse.py'", answer="y")


def network() -> None:
    heading(5, "The sandbox", "An approved command still reaches only the workspace: no network, unless you grant it.")
    if has_sandbox():
        run("haft tools use shell --command 'git clone -q https://example.com/more.git' --approve", fails=True)
    else:
        print("(this machine has no sandbox, see `haft doctor`: the tour goes on without this step)")


def own_tool() -> None:
    heading(6, "A tool in one line", "`haft tools make` writes a tool that works at once. Its file is yours to edit.")
    run("haft tools make --bash first_lines -q")
    run("haft tools use tb__first_lines --path src/parse.py --limit 1 --approve")


def template() -> None:
    heading(
        7, "A template", "Agent Studio templates run unchanged, each in an environment with the packages it requires."
    )
    run("haft tools make --studio first_rows -q")
    call = "haft tools use templates/first_rows --path sales.csv --limit 2 --approve"
    if "package index does not answer" in run(call, unless="package index does not answer"):
        print("(no package index can be reached from here: the tour goes on without this step)")


def audit() -> None:
    heading(
        8, "The audit log", "Every call is in the log. If someone edits the log, `haft audit verify` finds the place."
    )
    run("haft log --limit 4")
    run("haft audit verify")
    run("sed -i.bak 's/rm -r src/ls -l src/' \"$HAFT_HOME\"/audit/record.log")
    run("haft audit verify", fails=True)


def main() -> None:
    started = time.monotonic()
    for name in [name for name in os.environ if name.startswith("HAFT_")]:
        del os.environ[name]  # settings of the user's own
    with tempfile.TemporaryDirectory(prefix="haft-tour-", ignore_cleanup_errors=True) as place:
        workspace = os.path.join(place, "workspace")
        os.makedirs(os.path.join(workspace, "src"))
        for name, variable in {"state": "HAFT_HOME", "config": "XDG_CONFIG_HOME", "data": "XDG_DATA_HOME"}.items():
            os.environ[variable] = os.path.join(place, name)
        os.environ["AMP_TOOLBOX"] = ""  # no tools of the user's own
        os.environ["PATH"] = f"{PROGRAMS}{os.pathsep}{os.environ['PATH']}"
        if not COLOUR:
            os.environ["NO_COLOR"] = "1"
        os.chdir(workspace)
        for path, text in {"src/fetch.py": FETCH, "src/parse.py": PARSE, "sales.csv": SALES}.items():
            with open(path, "w") as file:
                file.write(text)
        print("haft runs the tools of AI agents. In this tour the agent makes mistakes, in a temporary directory.")
        for step in (mistake, trial, whole_program, approval, network, own_tool, template, audit):
            step()
        os.chdir("/")
    print(f"\nThat was haft, in {time.monotonic() - started:.0f} seconds. Next: docs/tutorial.md")


if __name__ == "__main__":
    main()
