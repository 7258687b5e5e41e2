"""`make tour`: haft at work from end to end, on a temporary workspace. Every step checks what it shows."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import stat
import subprocess
import sys
import sysconfig
import tempfile
import time

HAFT = os.path.join(sysconfig.get_path("scripts"), "haft")
EXAMPLES = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "examples")
COLOUR = sys.stdout.isatty() and "NO_COLOR" not in os.environ

OWN_TOOL = '''
import asyncio
from haft import Context, ToolService, tool

@tool(readonly=True)
async def count_words(path: str, context: Context) -> dict[str, int]:
    """Count the words of a file."""
    lines = context.workspace.open(path).read().decode().splitlines()
    words = 0
    for number, line in enumerate(lines, 1):
        words += len(line.split())
        context.progress(f"line {number}", fraction=number / len(lines))
    return {"lines": len(lines), "words": words}

async def main():
    async with ToolService.open(workspace=".", tools=[count_words]) as service:
        run = service.call("count_words", {"path": "notes.txt"})
        async for event in run:
            print(f"{event.seq}  {event.type:<8}  {event.status:<11}  {event.text}")
        print((await run).result)

asyncio.run(main())
'''


def heading(text: str) -> None:
    print(f"\n\033[1m{text}\033[0m" if COLOUR else f"\n== {text}")


def show_command(words: list[str]) -> None:
    line = " ".join(word if word == "&" else shlex.quote(word) for word in words)
    print(f"\033[36m$ {line}\033[0m" if COLOUR else f"$ {line}", flush=True)


def haft(*words: str, expect: int = 0, quiet: bool = False, unless: str | None = None) -> str:
    """Run a command as a person would, show what it prints, and stop the tour where it does not do what it should and
    does not say `unless` either."""
    if not quiet:
        show_command(["haft", *words])
    done = subprocess.run([HAFT, *words], capture_output=True, text=True, check=False)
    if not quiet:
        sys.stdout.write(done.stdout)
        if done.stdout and not done.stdout.endswith("\n"):
            sys.stdout.write("\n")
        sys.stdout.write(done.stderr)
    if done.returncode != expect and (unless is None or unless not in done.stderr):
        print(f"\nthe tour stops here: exit {done.returncode} instead of {expect}\n{done.stderr}", file=sys.stderr)
        sys.exit(1)
    return done.stdout


def deadline() -> None:
    """haft's `--timeout` stands before the name: the shell has a parameter of that name."""
    limited = ["--approve", "--only", "status"]
    haft("tools", "use", "--timeout", "0.5", "shell", "--command", "sleep 3600", *limited, expect=4)


def cancel_from_outside() -> None:
    """One process makes a call that would last an hour; another finds and cancels it."""
    command = "sleep 3600 & trap '' TERM; sleep 3600"
    show_command(["haft", "tools", "use", "shell", "--command", command, "--approve", "&"])
    words = [HAFT, "tools", "use", "shell", "--command", command, "--approve", "--json", "-q"]
    running = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 30
    found: list[dict[str, str]] = []
    while not found and time.monotonic() < deadline:
        found = json.loads(haft("log", "--status", "in-progress", "--json", quiet=True))
    haft("log", "--status", "in-progress")
    haft("cancel", found[0]["id"])
    outcome = json.loads(running.communicate(timeout=30)[0])
    ended = ", ".join(child["command"] for child in outcome["endedChildren"])
    print(f"the first process was told: {outcome['status']}, exit {running.returncode}; ended with it: {ended}")


def tamper(home: str) -> None:
    """Change one byte of the record, see it found, and put it back."""
    path = os.path.join(home, "audit", "record.log")
    with open(path, "rb") as file:
        good = file.read()
    with open(path, "wb") as file:
        file.write(good.replace(b"notes.txt", b"votes.txt", 1))
    haft("audit", "verify", expect=1)
    with open(path, "wb") as file:
        file.write(good)
    haft("audit", "verify")


def template() -> None:
    """The complete example of the templates' format, the whole way, twice. What it requires comes from an index."""
    here = os.path.join("templates", "json_reader")
    shutil.copytree(os.path.join(EXAMPLES, "json-reader"), here, ignore=shutil.ignore_patterns("tests", ".*"))
    with open("haft.toml", "w") as file:
        file.write('[templates]\npaths = ["./templates"]\n')
    call = ["tools", "use", "json_reader", "--filepath", "data/sample.json", "--approve", "--only", "output"]
    haft("templates", "check")
    if not haft(*call, unless="package index does not answer"):
        print("this step needs a package index, and none can be reached from here: the tour goes on without it")
        return
    haft("templates", "pack", here, "--to", "reader.zip", "--name", "JSON Reader")
    haft("templates", "remove", "json_reader", "--yes")
    haft("templates", "install", "reader.zip")
    haft(*call, "-q")


def tree() -> dict[str, tuple[object, ...]]:
    """Everything in the workspace: what it is, what it holds, its mode and, of files, its time."""
    found: dict[str, tuple[object, ...]] = {}
    for here, directories, files in os.walk("."):
        for name in (*directories, *files):
            path = os.path.join(here, name)
            status = os.lstat(path)
            if stat.S_ISREG(status.st_mode):
                with open(path, "rb") as file:
                    found[path] = (status.st_mode, file.read(), status.st_mtime_ns)
            else:
                found[path] = (status.st_mode, os.readlink(path) if os.path.islink(path) else None)
    return found


def tour(home: str) -> None:
    heading("The tools there are")
    haft("tools", "list")
    haft("tools", "show", "edit_file")
    heading("Calling some: what only reads passes, what changes something is approved")
    text = "haft holds tools\nby one handle\n"
    haft("tools", "use", "write_file", "--path", "notes.txt", "--content", text, "--approve", "--only", "output")
    edit = ["--old_string", "one handle", "--new_string", "one handle, every time"]
    haft("tools", "use", "edit_file", "--path", "notes.txt", *edit, "--approve", "--only", "output")
    haft("tools", "use", "read_file", "--path", "notes.txt", "--only", "output")
    haft("tools", "use", "search", "--pattern", "h[a-z]+t", "--only", "output")
    heading("What is refused, and what is misspelt")
    haft("tools", "use", "shell", "--command", "rm -rf .", "--only", "status", expect=3)
    haft("tools", "use", "read_file", "--path", "../../etc/passwd", "--only", "status", expect=2)
    haft("tools", "use", "raed_file", "--path", "notes.txt", "--only", "status", expect=2)
    heading("Confinement: a command writes in the workspace and nowhere else, and reaches nobody")
    denied = ["--approve", "--only", "output"]
    haft("tools", "use", "shell", "--command", "echo mine > inside.txt; cat inside.txt; ls -A ~ | head -3; ps", *denied)
    haft("tools", "use", "shell", "--command", "echo theirs > /usr/bin/ls", *denied, expect=1)
    haft("tools", "use", "shell", "--command", "exec 3<>/dev/tcp/192.0.2.1/80", *denied, expect=1)
    heading("Every call is a transaction: a destructive command tried, its diff, committed, undone")
    haft("tools", "use", "shell", "--command", "mkdir -p src; seq 1 3 > src/a; seq 4 6 > src/b", *denied, quiet=True)
    before = tree()
    destroy = "rm -rf src; sed -i s/haft/nobody/ notes.txt"
    tried = json.loads(haft("tools", "use", "shell", "--command", destroy, "--try", "--json"))
    print("nothing has happened yet:", "identical" if tree() == before else "CHANGED")
    haft("diff", tried["run"])
    haft("changes", "apply", tried["run"])
    print("now it has:", ", ".join(sorted(os.listdir("."))))
    haft("undo", tried["run"])
    if tree() != before:
        sys.exit("the tour stops here: the tree is not what it was")
    print("content, modes and times of every file: identical")
    heading("Output as it comes, stdout and stderr apart")
    script = "for step in one two three; do echo $step; sleep 0.2; done; echo 'that was all' >&2"
    haft("tools", "use", "shell", "--command", script, "--approve", "--stream")
    heading("A tool of your own, with progress, in eighteen lines of Python")
    print(OWN_TOOL.strip())
    show_command(["python", "count_words.py"])
    subprocess.run([sys.executable, "-c", OWN_TOOL], check=True)
    heading("An executable as a tool: made, checked, used")
    haft("tools", "make", "--bash", "first_lines")
    haft("tools", "check", "tb__first_lines")
    haft("tools", "use", "tb__first_lines", "--path", "notes.txt", "--limit", "1", "--approve", "--only", "output")
    heading("An Agent Studio template: checked, run in an environment of its own, packed, installed, run again")
    template()
    heading("A deadline, and a cancellation from another process: nothing is left behind")
    deadline()
    cancel_from_outside()
    heading("Long output is shown by its ends and kept whole")
    outcome = json.loads(haft("tools", "use", "shell", "--command", "seq 1 50000", "--approve", "--json", quiet=True))
    print(f"{outcome['outputBytes']} bytes, shown: {len(outcome['output'])}")
    haft("output", outcome["run"], "--lines", "25000:25002")
    heading("The log")
    haft("log", "--limit", "5")
    haft("show", outcome["run"])
    heading("The record: intact, then one byte changed, then put back")
    haft("audit", "verify")
    tamper(home)
    heading("What this machine can do")
    haft("doctor")


def main() -> None:
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="haft-tour-") as place:
        workspace, home = os.path.join(place, "workspace"), os.path.join(place, "state")
        os.mkdir(workspace)
        os.environ["HAFT_HOME"] = home
        os.environ["XDG_CONFIG_HOME"] = os.path.join(place, "config")
        os.environ["XDG_DATA_HOME"] = os.path.join(place, "data")
        os.environ["AMP_TOOLBOX"] = ""  # none of the user's own
        os.chdir(workspace)
        tour(home)
        os.chdir("/")
    print(f"\nThat was haft, in {time.monotonic() - started:.0f} seconds. Next: docs/tutorial.md")


if __name__ == "__main__":
    main()
