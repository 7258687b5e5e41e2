"""Prints the commands of a Python program. It runs in that program's own Python and imports nothing of haft.

    python introspector.py click|argparse MODULE:OBJECT [here]

The introspector imports the program's module, which is foreign code: so it runs in the sandbox, and haft only parses
its output. The last line of stdout that begins with `MARK` is the answer, as JSON.
"""

from __future__ import annotations

import enum
import importlib
import json
import os
import sys
from collections.abc import Iterator
from typing import Any, get_args, get_origin

MARK = "haft-command-line: "
DEEPEST = 8
MOST_CHOICES = 200
MOST_FILES = 300


class Unreadable(Exception):
    """The commands cannot be read. The first argument says why, in one sentence; the second one is a hint."""


def main() -> None:
    """Print the commands of the program, or why they cannot be read, as JSON."""
    del sys.path[0]  # The program must not import files from the directory of this script.
    form, reference, *where = sys.argv[1:]
    if where == ["here"]:
        sys.path.append(os.getcwd())  # Last, so that a file in the directory cannot replace an installed module.
    sys.argv = [reference.partition(":")[0]]
    try:
        listed = list(commands(form, load(reference)))
        found: dict[str, Any] = {"commands": listed, "script": script_of(reference), "files": files_of(reference)}
    except Unreadable as error:
        found = {"problem": error.args[0], "hint": "".join(error.args[1:])}
    print(f"\n{MARK}{json.dumps(found)}", flush=True)


def load(reference: str) -> Any:
    """The object that `MODULE:OBJECT` names."""
    name, _, path = reference.partition(":")
    try:
        found: Any = importlib.import_module(name)
    except BaseException as error:  # An import can raise anything, even SystemExit.
        hint = "`--python` names the Python that has it"
        raise Unreadable(f"`{name}` cannot be imported: {type(error).__name__}: {error}", hint) from error
    for word in path.split("."):
        try:
            found = getattr(found, word)
        except AttributeError:
            raise Unreadable(f"`{name}` has no `{word}`") from None
    return found


def files_of(reference: str) -> list[str]:
    """The files of the program's loaded modules: the commands change only if one of these files changes."""
    package = reference.partition(":")[0].partition(".")[0]
    modules = [one for name, one in list(sys.modules.items()) if name.partition(".")[0] == package]
    files = {file for one in modules if isinstance(file := getattr(one, "__file__", None), str)}
    return sorted(files)[:MOST_FILES]


def script_of(reference: str) -> str | None:
    """The name of the installed script that runs the object. If there is none, the script of another object of its
    module; None if the module has no script."""
    from importlib.metadata import entry_points

    scripts = [(one.value.replace(" ", ""), str(one.name)) for one in entry_points(group="console_scripts")]
    exact = [name for value, name in scripts if value == reference]
    of_module = [name for value, name in scripts if value.partition(":")[0] == reference.partition(":")[0]]
    return next(iter(exact + of_module), None)


def commands(form: str, found: Any) -> Iterator[dict[str, Any]]:
    """Every command of a program that uses click, typer or argparse."""
    if form == "argparse":
        yield from argparse_commands(found)
        return
    if type(found).__module__.split(".")[0] == "typer":
        found = importlib.import_module("typer.main").get_command(found)
    if not hasattr(found, "params") or not hasattr(found, "callback"):
        raise Unreadable(f"it is a {type(found).__name__}, not a click or typer command")
    yield from click_commands(found, [])


# click and typer


def click_commands(command: Any, words: list[str]) -> Iterator[dict[str, Any]]:
    """A command, or the commands of a group. Hidden commands are left out."""
    if not hasattr(command, "list_commands"):
        yield {
            "name": " ".join(words) or command.name or "run",
            "words": words,
            "description": paragraphs(command.help or command.short_help or ""),
            "parameters": with_unique_names([one for each in command.params for one in click_parameter(each)]),
        }
        return
    if len(words) >= DEEPEST:
        raise Unreadable("its groups are nested too deep")
    context = command.context_class(command, info_name=command.name)
    for name in sorted(command.list_commands(context)):
        each = command.get_command(context, name)
        if each is not None and not getattr(each, "hidden", False):
            yield from click_commands(each, [*words, name])


def click_parameter(one: Any) -> Iterator[dict[str, Any]]:
    """One parameter of a click command; nothing if it is no argument of a call, such as `--help`."""
    asks = bool(getattr(one, "prompt", None))  # Nobody can answer a prompt, so its value becomes a required parameter.
    if getattr(one, "hidden", False) or not (one.expose_value or asks) or (one.is_eager and is_flag(one)):
        return
    kind, choices = click_type(one)
    found: dict[str, Any] = {"name": json_name(one.name), "help": plain(getattr(one, "help", "") or "")}
    default = one.default if isinstance(one.default, (str, int, float)) and not isinstance(one.default, bool) else None
    if one.param_type_name == "argument":
        many = "repeat" if one.nargs != 1 else ""
        found |= {"by": "position", "type": kind, "many": many, "required": bool(one.required)}
        if getattr(one, "or_stdin", False) is True and not many:
            found["or_stdin"] = True
    else:
        found["option"] = longest_option(one.opts)
        found["required"] = asks or (bool(one.required) and default is None)
        if getattr(one, "count", False):
            found |= {"by": "count", "type": "integer"}
        elif is_flag(one):
            off = longest_option(one.secondary_opts)
            found |= {"by": "flag", "type": "boolean", "off": off}
            value = getattr(one, "flag_value", True)
            if off is None and isinstance(value, (str, int, float)) and value is not True:
                found["name"] = name_from_option(found)
            choices = []
        else:
            many = "exactly" if one.nargs != 1 else "repeat" if one.multiple else ""
            found |= {"by": "option", "type": kind, "many": many}
    found["number"] = one.nargs if one.nargs > 1 else None
    if choices:
        found["choices"] = choices
    if default is not None:
        found["default"] = default
    yield {key: value for key, value in found.items() if value not in (None, "")}


def is_flag(one: Any) -> bool:
    """Whether an option takes no value."""
    return bool(getattr(one, "is_flag", False))


CLICK_TYPES = {"integer": "integer", "integer range": "integer", "float": "number", "float range": "number"}
PYTHON_TYPES = {int: "integer", float: "number", bool: "boolean"}


def click_type(one: Any) -> tuple[str, list[Any]]:
    """The JSON type of a parameter, and its choices. Newer versions of typer keep Python's own types instead of
    click's."""
    if not hasattr(one, "type"):
        return python_type(getattr(getattr(one, "type_descriptor", None), "annotation", str))
    kind = CLICK_TYPES.get(one.type.name, "boolean" if one.type.name == "boolean" else "string")
    choices = list(getattr(one.type, "choices", None) or ())
    return kind, [each.name if isinstance(each, enum.Enum) else str(each) for each in choices]


def python_type(annotation: Any) -> tuple[str, list[Any]]:
    """The JSON type and the choices that a type hint stands for."""
    inner = [each for each in get_args(annotation) if each is not type(None)]
    origin = str(get_origin(annotation) or "")
    if "Literal" in origin:
        return "string", [str(each) for each in inner]
    if inner and ("tuple" not in origin or len(set(inner)) == 1):
        return python_type(inner[0])
    if isinstance(annotation, type) and issubclass(annotation, enum.Enum):
        return "string", [str(each.value) for each in annotation]
    return PYTHON_TYPES.get(annotation, "string"), []


# argparse


def argparse_commands(found: Any) -> Iterator[dict[str, Any]]:
    """The commands of a parser, or of the parser that a function returns."""
    import argparse

    if not isinstance(found, argparse.ArgumentParser) and callable(found):
        try:
            found = found()
        except BaseException as error:  # The function may parse the arguments of this process, and exit.
            raise Unreadable(
                f"the function returned no parser: {type(error).__name__}: {error}",
                "name a function that returns the parser, and does not parse",
            ) from error
    if not isinstance(found, argparse.ArgumentParser):
        raise Unreadable(
            f"it is a {type(found).__name__}, neither a parser nor a function that returns one",
            "name a parser, or a function that returns one",
        )
    yield from parser_commands(found, [], "")


def parser_commands(parser: Any, words: list[str], about: str) -> Iterator[dict[str, Any]]:
    """The command of a parser, or the commands of its subparsers. Options of a parent parser must come before the
    subcommand's name, so only the options of the last parser are included."""
    import argparse

    if len(words) > DEEPEST:
        raise Unreadable("its subparsers are nested too deep")
    below = [each for each in parser._actions if isinstance(each, argparse._SubParsersAction)]
    if below:
        helps = {each.dest: help_of(each, parser.prog) for each in below[0]._choices_actions}
        seen: set[int] = set()
        for name, each in below[0].choices.items():
            if id(each) not in seen:  # An alias has the same parser.
                seen.add(id(each))
                yield from parser_commands(each, [*words, name], helps.get(name) or "")
        return
    shown = [each for each in parser._actions if each.help != argparse.SUPPRESS]
    exclusive = {
        id(action): [
            longest_option(other.option_strings) or other.dest for other in group._group_actions if other is not action
        ]
        for group in parser._mutually_exclusive_groups
        for action in group._group_actions
    }
    yield {
        "name": " ".join(words) or parser.prog,
        "words": words,
        "refused": ["--", *(parser.fromfile_prefix_chars or "")],
        "description": paragraphs((parser.description or about).replace("%(prog)s", parser.prog)),
        "parameters": with_unique_names(
            [one for each in shown for one in argparse_parameter(each, exclusive.get(id(each), []), parser.prog)]
        ),
        **({"end_of_options": ""} if any(each.nargs == argparse.REMAINDER for each in shown) else {}),
    }


def argparse_parameter(action: Any, others: list[str], prog: str) -> Iterator[dict[str, Any]]:
    """The parameter of an argparse action; nothing if it is no argument of a call, such as `--help`."""
    import argparse

    if isinstance(action, (argparse._HelpAction, argparse._VersionAction)):
        return
    text = help_of(action, prog)
    if others:
        text = f"{text.rstrip('.')}. Not together with {', '.join(others)}.".removeprefix(". ")
    kind = {int: "integer", float: "number"}.get(action.type, "string")
    found: dict[str, Any] = {"name": json_name(action.dest), "help": text}
    is_many = action.nargs not in (None, 0, 1, "?")
    option = longest_option(action.option_strings)
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
        if action.const is not True:
            found["name"] = name_from_option(found)
    else:
        repeated = isinstance(action, argparse._AppendAction)
        gathers = isinstance(action, argparse._ExtendAction) and isinstance(action.nargs, str)
        many = "repeat" if gathers or (repeated and not is_many) else "together" if is_many else ""
        found |= {"by": "option", "option": option, "type": kind, "many": many, "required": bool(action.required)}
    found["number"] = action.nargs if isinstance(action.nargs, int) and action.nargs > 1 else None
    if action.choices and len(action.choices) <= MOST_CHOICES:
        found["choices"] = [choice_of(each, kind) for each in action.choices]
    if isinstance(action.default, (str, int, float)) and not isinstance(action.default, bool):
        found["default"] = action.default
    yield {key: value for key, value in found.items() if value not in (None, "")}


def help_of(action: Any, prog: str) -> str:
    """The help of an action, with its placeholders filled in."""
    text = action.help or ""
    try:
        return plain(text % {**vars(action), "prog": prog})
    except (ValueError, TypeError, KeyError):
        return plain(text)


def choice_of(each: Any, kind: str) -> Any:
    """A choice as a call passes it. A member of an enum becomes its value. A choice becomes a text, unless it is a
    number and the parameter is no string."""
    each = each.value if isinstance(each, enum.Enum) else each
    return each if kind != "string" and isinstance(each, (int, float)) else str(each)


def json_name(name: str) -> str:
    """A parameter's name with `_` for each character that is no letter, digit, `_` or `-`."""
    return "".join(letter if letter.isalnum() or letter in "_-" else "_" for letter in name)


def name_from_option(one: dict[str, Any]) -> str:
    """A parameter name that is made from the option, for a parameter whose own name does not say what the option
    does."""
    return json_name(one["option"].lstrip("-").replace("-", "_"))


def with_unique_names(parameters: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The parameters with unique names: if several options set one value, each gets the name of its option."""
    names = [one["name"] for one in parameters]
    return [
        {**one, "name": name_from_option(one)} if names.count(one["name"]) > 1 and "option" in one else one
        for one in parameters
    ]


def longest_option(options: list[str]) -> str | None:
    """The longest spelling of an option: `--all` for `-a` and `--all`. A long spelling can take its value after `=`.
    None if there are no spellings."""
    return max(options, key=len) if options else None


def plain(text: str) -> str:
    """A help text in one line."""
    return " ".join(text.replace("\b", "").split("\f")[0].split())


def paragraphs(text: str) -> str:
    """A help text with one line for each paragraph. A paragraph that begins with `\\b` keeps its lines, as in click."""
    import inspect

    found = inspect.cleandoc(text.split("\f")[0]).split("\n\n")
    kept = [one.replace("\b\n", "") if "\b\n" in one else " ".join(one.split()) for one in found]
    return "\n\n".join(one.strip("\n") for one in kept if one.strip())


if __name__ == "__main__":
    main()
