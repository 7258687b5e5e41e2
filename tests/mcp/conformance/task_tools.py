"""The tools of the conformance suite's scenarios about tasks, each call in a process: `python:…/task_tools.py`."""

import os
import time

from haft import Context, Question, tool


def asked(key: str, message: str, field: str, kind: str = "string") -> Question:
    return Question.form(message, {field: {"type": kind}}, key=key)


def said(answer) -> str:
    return f"action={answer.action}, content={answer.content}"


@tool(readonly=True, task_support="forbidden")
def greet(name: str) -> str:
    """Greet someone at once."""
    return f"Hello, {name}!"


@tool(readonly=True, task_support="optional")
def slow_compute(context: Context, seconds: float = 1, label: str = "") -> str:
    """Take some seconds."""
    end = time.monotonic() + seconds
    while time.monotonic() < end and not context.cancelled:
        time.sleep(0.02)
    return f"computed {label}"


@tool(readonly=True, task_support="required")
def failing_job() -> str:
    """Fail after a second."""
    time.sleep(1)
    raise RuntimeError("the job failed")


@tool(readonly=True, task_support="optional")
def protocol_error_job() -> str:
    """Die without an answer."""
    os._exit(1)


@tool(readonly=True, task_support="optional")
def confirm_delete(context: Context, filename: str = "file.txt") -> str:
    """Ask whether to delete a file."""
    (answer,) = context.ask(asked("confirm", f"Delete {filename}?", "confirm", "boolean"))
    return f"{filename}: {said(answer)}"


@tool(readonly=True, task_support="optional")
def multi_input(context: Context) -> str:
    """Ask two things at once."""
    first, second = asked("first", "Your name?", "name"), asked("second", "Another name?", "name")
    return "; ".join(map(said, context.ask(first, second)))
