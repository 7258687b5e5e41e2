"""Says what the commands of a Python program are: run in that program's own Python, which needs nothing of haft.

    python introspecting.py click|argparse MODULE:OBJECT

It imports the module, so it is foreign code from then on: it is run behind walls, and what it prints is only read. The
last line of stdout that begins with the mark is the answer, as JSON.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
from collections.abc import Iterator
from typing import Any

MARK = "haft-command-line: "
DEEPEST = 8
MOST = 500


class Unreadable(Exception):
    """Why nothing can be said, in a sentence."""


def main() -> None:
    """Print the answer."""
    sys.path.insert(0, os.getcwd())
    try:
        found = {"commands": list(commands(sys.argv[1], load(sys.argv[2]))), "script": script_of(sys.argv[2])}
    except Unreadable as error:
        found = {"problem": str(error)}
    print(f"\n{MARK}{json.dumps(found)}", flush=True)


def load(reference: str) -> Any:
    """The object that `MODULE:OBJECT` names."""
    name, _, path = reference.partition(":")
    try:
        found: Any = importlib.import_module(name)
    except BaseException as error:  # Whatever an import does.
        raise Unreadable(f"`{name}` cannot be imported: {type(error).__name__}: {error}") from error
    for word in path.split("."):
        try:
            found = getattr(found, word)
        except AttributeError:
            raise Unreadable(f"`{name}` has no `{word}`") from None
    return found


def script_of(reference: str) -> str | None:
    """The installed script that runs the object, or the module that does."""
    from importlib.metadata import entry_points

    scripts = [(one.value.replace(" ", ""), str(one.name)) for one in entry_points(group="console_scripts")]
    exact = [name for value, name in scripts if value == reference]
    of_module = [name for value, name in scripts if value.partition(":")[0] == reference.partition(":")[0]]
    return next(iter(exact + of_module), None)


def commands(form: str, found: Any) -> Iterator[dict[str, Any]]:
    """Every command of a program, whichever way it is written."""
    if form == "argparse":
        yield from argparse_commands(found)
        return
    if type(found).__module__.split(".")[0] == "typer":
        found = importlib.import_module("typer.main").get_command(found)
    if not hasattr(found, "params") or not hasattr(found, "callback"):
        raise Unreadable(f"it is a {type(found).__name__}, and no click or typer command")
    yield from click_commands(found, [])


# click and typer


def click_commands(command: Any, words: list[str]) -> Iterator[dict[str, Any]]:
    """A command, or those of a group. Hidden ones are left out."""
    below = getattr(command, "commands", None)
    if not below:
        if not getattr(command, "hidden", False):
            yield {
                "name": " ".join(words) or command.name or "run",
                "words": words,
                "description": paragraphs(command.help or command.short_help or ""),
                "parameters": [one for each in command.params for one in click_parameter(each)],
            }
        return
    if len(words) >= DEEPEST:
        raise Unreadable("its groups lie too deep in each other")
    for name, each in sorted(below.items()):
        if not getattr(each, "hidden", False):
            yield from click_commands(each, [*words, name])


CLICK_TYPES = {"integer": "integer", "integer range": "integer", "float": "number", "float range": "number"}


def click_parameter(one: Any) -> Iterator[dict[str, Any]]:
    """What one parameter takes; nothing where it is no value of a call."""
    if getattr(one, "hidden", False) or not one.expose_value or (one.is_eager and getattr(one, "is_flag", False)):
        return
    kind = CLICK_TYPES.get(one.type.name, "boolean" if one.type.name == "boolean" else "string")
    found: dict[str, Any] = {"name": named(one.name), "help": plain(getattr(one, "help", "") or "")}
    choices = [str(getattr(each, "value", each)) for each in getattr(one.type, "choices", None) or ()]
    default = one.default if isinstance(one.default, (str, int, float)) and not isinstance(one.default, bool) else None
    if one.param_type_name == "argument":
        many = "repeat" if one.nargs != 1 else ""
        found |= {"by": "position", "type": kind, "many": many, "required": bool(one.required)}
    else:
        option = longest(one.opts)
        found["option"] = option
        found["required"] = bool(one.required) and default is None
        if getattr(one, "count", False):
            found |= {"by": "count", "type": "integer"}
        elif getattr(one, "is_flag", False):
            found |= {"by": "flag", "type": "boolean", "off": longest(one.secondary_opts)}
        else:
            many = "repeat" if one.multiple else "together" if one.nargs != 1 else ""
            found |= {"by": "option", "type": kind, "many": many}
    if choices:
        found["choices"] = choices
    if default is not None:
        found["default"] = default
    yield {key: value for key, value in found.items() if value not in (None, "")}


# argparse


def argparse_commands(found: Any) -> Iterator[dict[str, Any]]:
    """Of a parser, or of what a function gives."""
    import argparse

    if not isinstance(found, argparse.ArgumentParser) and callable(found):
        try:
            found = found()
        except BaseException as error:  # Whatever it does: it may parse our own words, and exit.
            raise Unreadable(f"the function gave no parser: {type(error).__name__}: {error}") from error
    if not isinstance(found, argparse.ArgumentParser):
        raise Unreadable(f"it is a {type(found).__name__}, and neither a parser nor a function that gives one")
    yield from parser_commands(found, [], "")


def parser_commands(parser: Any, words: list[str], about: str) -> Iterator[dict[str, Any]]:
    """A parser, or those below it. What belongs to the parser above must stand before the subcommand's name, so only
    options of the last one are taken."""
    import argparse

    if len(words) > DEEPEST:
        raise Unreadable("its subparsers lie too deep in each other")
    below = [each for each in parser._actions if isinstance(each, argparse._SubParsersAction)]
    if below:
        helps = {each.dest: each.help for each in below[0]._choices_actions}
        seen: set[int] = set()
        for name, each in below[0].choices.items():
            if id(each) not in seen:  # Aliases lead to the same.
                seen.add(id(each))
                yield from parser_commands(each, [*words, name], helps.get(name) or "")
        return
    exclusive = {
        id(action): [
            longest(other.option_strings) or other.dest for other in group._group_actions if other is not action
        ]
        for group in parser._mutually_exclusive_groups
        for action in group._group_actions
    }
    yield {
        "name": " ".join(words) or parser.prog,
        "words": words,
        "description": paragraphs(parser.description or about or ""),
        "parameters": [
            one for each in parser._actions for one in argparse_parameter(each, exclusive.get(id(each), []))
        ],
    }


def argparse_parameter(action: Any, others: list[str]) -> Iterator[dict[str, Any]]:
    """What one action takes; nothing where it is no value of a call."""
    import argparse

    if isinstance(action, (argparse._HelpAction, argparse._VersionAction)) or action.help == argparse.SUPPRESS:
        return
    text = plain((action.help or "").replace("%(default)s", str(action.default)))
    if others:
        text = f"{text} Not together with {', '.join(others)}.".strip()
    kind = {int: "integer", float: "number"}.get(action.type, "string")
    found: dict[str, Any] = {"name": named(action.dest), "help": text}
    is_many = action.nargs not in (None, 0, 1, "?")
    option = longest(action.option_strings)
    if not action.option_strings:
        optional = action.nargs in ("?", "*") or (isinstance(action.nargs, str) and action.nargs == "...")
        found |= {"by": "position", "type": kind, "many": "repeat" if is_many else "", "required": not optional}
    elif isinstance(action, argparse._CountAction):
        found |= {"by": "count", "option": option, "type": "integer"}
    elif isinstance(action, argparse.BooleanOptionalAction):
        off = next((each for each in action.option_strings if each.startswith("--no-")), None)
        found |= {"by": "flag", "option": action.option_strings[0], "off": off, "type": "boolean"}
    elif action.nargs == 0:
        found |= {"by": "flag", "option": option, "type": "boolean"}
    else:
        repeated = isinstance(action, (argparse._AppendAction, argparse._ExtendAction))
        many = "together" if is_many and not repeated else "repeat" if repeated else ""
        found |= {"by": "option", "option": option, "type": kind, "many": many, "required": bool(action.required)}
    if action.choices:
        found["choices"] = [str(each) for each in action.choices]
    if isinstance(action.default, (str, int, float)) and not isinstance(action.default, bool):
        found["default"] = action.default
    yield {key: value for key, value in found.items() if value not in (None, "")}


def named(name: str) -> str:
    """A parameter's name in JSON."""
    return "".join(letter if letter.isalnum() or letter in "_-" else "_" for letter in name)


def longest(options: list[str]) -> str | None:
    """The option that takes its value by `=`, if there is one."""
    return max(options, key=len) if options else None


def plain(text: str) -> str:
    """Help in one line."""
    return " ".join(text.replace("\b", "").split("\f")[0].split())


def paragraphs(text: str) -> str:
    """Help as one reads it: lines stay lines where click is told so, else a paragraph is one."""
    import inspect

    found = inspect.cleandoc(text.split("\f")[0]).split("\n\n")
    kept = [one.replace("\b\n", "") if "\b\n" in one else " ".join(one.split()) for one in found]
    return "\n\n".join(one.strip("\n") for one in kept if one.strip())


if __name__ == "__main__":
    main()
