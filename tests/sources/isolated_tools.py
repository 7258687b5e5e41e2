"""Functions for worker processes to find: a module that is imported by its name."""

import asyncio
import contextlib
import dataclasses
import functools
import os
import signal
import subprocess
import sys
import threading
import time
from typing import Literal

from pydantic import BaseModel, Field

from haft.contracts import Conflict, ToolContext, ToolFailed


class Point(BaseModel):
    x: int = Field(ge=0)
    y: int = 0


@dataclasses.dataclass
class Row:
    name: str
    value: float


def add(a: int, b: int = 2) -> int:
    """Add two numbers."""
    return a + b


async def add_later(a: int, b: float = 0.5) -> float:
    await asyncio.sleep(0)
    return a + b


def count(n: int):
    for number in range(n):
        yield f"line {number}\n"
    yield b"raw\n"
    yield {"n": n}
    return n


async def count_later(n: int):
    for number in range(n):
        yield str(number)
        await asyncio.sleep(0)


def _wrapped(function):
    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        return function(*args, **kwargs)

    return wrapper


@_wrapped
def wrapped_lines():
    yield "a"
    return 1


@_wrapped
async def wrapped_answer(a: int) -> int:
    return a + 1


@_wrapped
async def wrapped_stream():
    yield "b"


def move(point: Point, by: int = 1) -> Point:
    return Point(x=point.x + by, y=point.y)


def rows(names: list[str], *, upper: bool = False) -> list[Row]:
    return [Row(name.upper() if upper else name, float("nan")) for name in names]


def choose(which: Literal["a", "b"], more: dict[str, list[int]] | None = None, **rest: str) -> dict:
    return {"which": which, "more": more, "rest": rest}


def untyped(value, other=None):
    return [value, other]


def give_set() -> dict:
    return {"set": {1}, "bytes": b"\xff", "inf": float("inf"), "text": "\ud800ä"}


def nothing() -> None:
    return None


def circle() -> list:
    found: list = []
    found.append(found)
    return found


def divide(a: int):
    return a / 0


async def divide_later(a: int):
    return a / 0


def divide_slowly(a: int):
    yield "first\n"
    yield a / 0


def refuse():
    raise ToolFailed("not today", hint="try tomorrow")


def conflict():
    raise Conflict("changed meanwhile")


def leave():
    sys.exit(3)


def cancel_itself():
    raise asyncio.CancelledError


def huge(n: int) -> str:
    return "ä" * n


class Holder:
    @staticmethod
    def shout(text: str) -> str:
        return text.upper()


ALIKE = [
    (add, {"a": 1}),
    (add, {"a": 1, "b": 5}),
    (add_later, {"a": 1}),
    (count, {"n": 3}),
    (count_later, {"n": 3}),
    (wrapped_lines, {}),
    (wrapped_answer, {"a": 1}),
    (wrapped_stream, {}),
    (move, {"point": {"x": 1}}),
    (move, {"point": {"x": -1}}),
    (rows, {"names": ["a", "é\ud800"], "upper": True}),
    (choose, {"which": "a", "more": {"x": [1]}, "else": "z"}),
    (untyped, {"value": {"deep": [1, None, 2.5, True]}}),
    (give_set, {}),
    (nothing, {}),
    (circle, {}),
    (divide, {"a": 1}),
    (divide_later, {"a": 1}),
    (divide_slowly, {"a": 1}),
    (refuse, {}),
    (conflict, {}),
    (leave, {}),
    (cancel_itself, {}),
    (huge, {"n": 20_000}),
    (Holder.shout, {"text": "hey"}),
]


def where() -> dict:
    return {
        "pid": os.getpid(),
        "cwd": os.getcwd(),
        "thread": threading.current_thread() is threading.main_thread(),
        "stdin": sys.stdin.read(),
    }


def speak(context: ToolContext) -> str:
    for step in range(20):
        print(f"print {step}", end="")
        context.progress(f"step {step}", fraction=step / 20, step=step)
        context.output("stderr", b"error %d" % step)
        sys.stdout.buffer.write(b" and ")
        context.output("stdout", b"output %d\n" % step)
    print("at last", file=sys.stderr)
    return context.who


def tell(context: ToolContext) -> dict:
    context.workspace.replace("made.txt", b"made")
    try:
        launcher = str(context.launcher)
    except ToolFailed as error:
        launcher = error.message
    return {
        "run": context.run,
        "thread": context.thread,
        "who": context.who,
        "cwd": context.cwd,
        "env": dict(context.env),
        "config": context.config,
        "limits": context.limits.max_seconds,
        "root": context.workspace.root,
        "cancelled": context.cancelled,
        "launcher": launcher,
        "variable": os.environ.get("GREETING"),
    }


def vanish(how: str) -> None:
    print("before")
    if how == "exit":
        os._exit(3)
    if how == "quietly":
        os._exit(0)
    os.kill(os.getpid(), getattr(signal, how))


def wait_for(name: str):
    yield "waiting\n"
    while not open(name).read():
        time.sleep(0.01)
    yield "found\n"


def look(context: ToolContext) -> None:
    print("started")
    while not context.cancelled:
        time.sleep(0.01)
    print("saw it")


async def look_later() -> None:
    print("started")
    try:
        await asyncio.sleep(60)
    finally:
        print("saw it")


def look_never() -> None:
    print("started")
    time.sleep(60)


def look_not_at_it(context: ToolContext) -> None:
    print("started")
    while True:
        with contextlib.suppress(BaseException):
            time.sleep(60)


def crowd(n: int) -> str:
    """A large result while a child of the function floods the same pipe."""
    child = subprocess.Popen(["sh", "-c", "while :; do echo xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx; done"])
    try:
        time.sleep(0.05)
        return "z" * n
    finally:
        threading.Timer(0.2, child.kill).start()


def redirect(context: ToolContext) -> str:
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    print("not seen")
    context.progress("still heard")
    return "done"


def leave_a_thread() -> str:
    threading.Thread(target=time.sleep, args=(60,)).start()
    return "not waited for"


def import_json() -> str:
    import colorsys
    import json

    return json.__file__ + colorsys.__file__
