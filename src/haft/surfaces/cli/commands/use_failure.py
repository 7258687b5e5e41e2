"""The outcome of a `haft tools use` that failed before there was a run: the usual shape, with `run` null.

So programs can read the same JSON in every case. The command line may be invalid, so this module reads only two things
from it: the tool's name and the requested form of the output.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from typing import Any, Final

from haft.contracts import NOT_RUN, Event, Failure, Outcome, RunId, Status, ThreadId, ToolName
from haft.service import user_name
from haft.surfaces.cli.screen.display import raw
from haft.surfaces.cli.screen.printing import data, facts
from haft.surfaces.cli.words.parameters import FLAGS, VALUED
from haft.surfaces.text.json_text import to_json_text
from haft.surfaces.text.terminal import is_terminal

_VALUED: Final = (*VALUED, "-w")
_STATUSES: Final[dict[str, Status]] = {"rejected": "rejected-by-user", "cancelled": "cancelled"}


def words_of_use(arguments: Sequence[str]) -> list[str] | None:
    """The words after `haft tools use`, or after its short form `haft use`; None if the line is of another command."""
    wanted, rest = ["tools", "use"], list(arguments)
    while rest and wanted:
        word = rest.pop(0)
        if word in ("-w", "--workspace"):
            del rest[:1]
        elif word == "use" or word == wanted[0]:
            wanted = [] if word == "use" else wanted[1:]
        elif not word.startswith("-"):
            return None
    return None if wanted else rest


def print_failure(failure: Failure, words: Sequence[str], *, json: bool) -> None:
    """Print the outcome on stdout in the requested form; nothing if stdout is a terminal and no form is requested."""
    name, given = _read(words)
    outcome = _outcome(failure, name, given.get("--thread", ""))
    shape = {**outcome.to_json(), "run": None}
    only = given.get("--only")
    if "--stream" in given:
        event = Event(RunId(""), 0, outcome.started_at, "outcome", outcome.status, {"outcome": shape})
        data(to_json_text({**event.to_json(), "run": None}) + "\n")
    elif only in shape:
        _print_field(shape[only], json=json)
    elif json or only is not None or not is_terminal(sys.stdout):
        facts(shape)


def _print_field(value: Any, *, json: bool) -> None:
    if isinstance(value, str) and not json:
        raw(f"{value}\n" if value else "")
    else:
        facts(value)


def _outcome(failure: Failure, tool: str, thread: str) -> Outcome:
    return Outcome(
        RunId(""),
        ToolName(tool),
        _STATUSES.get(failure.code, "error"),
        user_name(),
        ThreadId(thread),
        error=failure,
        sandbox=NOT_RUN,
        started_at=time.time(),
    )


def _read(words: Sequence[str]) -> tuple[str, dict[str, str]]:
    """The tool's name, empty if there is none, and haft's options, each with its last value."""
    name, given, rest = "", dict[str, str](), list(words)
    while rest:
        word = rest.pop(0)
        if word == "--":
            break
        option, equals, value = word.partition("=")
        if option in _VALUED:
            given[option] = value if equals else rest.pop(0) if rest else ""
        elif option in FLAGS:
            given[option] = ""
        elif not (name or word.startswith("-")):
            name = word
    return name, given
