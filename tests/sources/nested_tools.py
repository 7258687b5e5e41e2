"""Functions that call other tools from worker processes."""

import asyncio
import os
import sys
import threading

from haft.contracts import BadUsage, ToolContext


def looks(path: str, context: ToolContext) -> dict:
    outcome = context.call("read_file", {"path": path})
    return {"parent": outcome.parent, "run": context.run, "output": outcome.output, "status": outcome.status}


async def looks_at_both(context: ToolContext) -> list[str]:
    one, other = await asyncio.gather(
        context.call("read_file", {"path": "a"}), context.call("read_file", {"path": "b"})
    )
    return [one.output, other.output]


def from_a_thread(context: ToolContext) -> str:
    found = []
    thread = threading.Thread(target=lambda: found.append(context.call("read_file", {"path": "a"}).output))
    thread.start()
    thread.join()
    return f"{found[0]}{sys.stdin.read()}"


def is_refused(context: ToolContext) -> list[str]:
    rejected = context.call("write_file", {"path": "a", "content": "no"})
    unknown = context.call("nothing_like_it")
    return [rejected.error.code, unknown.error.code]


def works(context: ToolContext) -> dict:
    """What it does, what calls of it see, and what it sees of them."""
    with open("mine", "w") as file:
        file.write("1")
    os.unlink("gone")
    seen = [context.call("read_file", {"path": "mine"}).output]
    seen.append(context.call("shell", {"command": "ls; cat mine; echo 2 > theirs; echo 2 >> mine; mkdir made"}).output)
    seen.append(open("theirs").read())
    seen.append(open("mine").read())
    context.call("write_file", {"path": "made/by_builtin", "content": "3"})
    seen.append(open("made/by_builtin").read())
    with open("mine", "a") as file:
        file.write("4")
    return {"seen": seen, "listed": sorted(os.listdir("."))}


def is_read(context: ToolContext) -> list[str]:
    """What calls that only read see of it."""
    os.mkdir("new")
    with open("new/mine", "w") as file:
        file.write("a word\n")
    calls = (
        ("shell", {"command": "cat new/mine; ls"}),
        ("search", {"pattern": "word"}),
        ("find_files", {"pattern": "mi*"}),
        ("list_directory", {"path": "new"}),
        ("read_file", {"path": "new/mine"}),
    )
    return [context.call(name, arguments).output.strip() for name, arguments in calls]


def works_and_waits(context: ToolContext) -> None:
    works(context)
    context.call("waits")


def child_fails(context: ToolContext) -> list[str]:
    late = context.call("shell", {"command": "echo 1 > half; sleep 60"}, timeout=1)
    wrong = context.call("shell", {"command": "echo 1 > whole; exit 3"})
    return [late.error.code, late.changes.state, wrong.error.code, *sorted(os.listdir("."))]


def calls_deeper(depth: int, context: ToolContext) -> list[str]:
    open(f"down{depth}", "w").close()
    below = context.call("calls_deeper", {"depth": depth - 1}).result if depth else sorted(os.listdir("."))
    open(f"up{depth}", "w").close()
    assert not depth or os.path.exists(f"up{depth - 1}")
    return below


def has_it_written(again: str, context: ToolContext) -> str:
    """Have a call write what it was granted; then write there itself, where `again` says what."""
    status = context.call("shell", {"command": "mkdir -p .vscode && echo granted > .vscode/tasks.json"}).status
    if again:
        with open(".vscode/tasks.json", "w") as file:
            file.write(again)
    return status


def has_it_had_written(again: str, context: ToolContext) -> str:
    """The same by a call of a call."""
    return context.call("has_it_written", {"again": again}).status


def forges(body: str, context: ToolContext) -> str:
    """Say a message as it stands."""
    context._writer._say(body.encode(), b"+", b".")
    return "said"


def has_files_changed(context: ToolContext) -> list[str]:
    """Have files changed that were there before."""
    one = context.call("write_file", {"path": "a", "content": "written"})
    other = context.call("edit_file", {"path": "b", "old_string": "b", "new_string": "edited"})
    return [one.status, other.status, open("a").read(), open("b").read()]


def calls_wrongly(context: ToolContext) -> list[str]:
    """Call in ways that cannot be meant."""
    said = []
    for name, arguments in ((5, {}), ("list_directory", "x")):
        try:
            context.call(name, arguments)
        except BadUsage as error:
            said.append(str(error))
    return said


def inner(context: ToolContext) -> list[str]:
    """Change files, and have the same ones changed."""
    with open("a", "w") as file:
        file.write("inner")
    made = context.call("shell", {"command": "echo innermost > new; echo innermost >> a"})
    with open("c", "w") as file:
        file.write("inner")
    return [made.run_id]


def outer(context: ToolContext) -> list[str]:
    """Have files changed at two depths; the runs that did, the last one first."""
    made = context.call("inner")
    with open("own", "w") as file:
        file.write("outer")
    last = context.call("shell", {"command": "rm new"})
    return [last.run_id, *made.result, made.run_id]
