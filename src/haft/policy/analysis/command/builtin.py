"""The built-in commands of the shell: change of directory, tests, reading a line, leaving a loop.

These commands have no entry in the table of programs, because they use or change the `Scope`: the facts known about the
line. Each function for a command returns the reason why this use of the command is not safe, or None if it is safe.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Final

from haft.lazy import regex
from haft.policy.analysis.program import Argument
from haft.policy.analysis.scope import Scope, is_harmless_name
from haft.policy.analysis.tree.path_resolver import PathResolver

Builtin = Callable[[list[Argument], Scope, PathResolver], str | None]
"""A function for one built-in command: returns why this use of the command is not harmless, or None. It may change the
scope."""

_FILE_TESTS: Final = frozenset(f"-{letter}" for letter in "abcdefghkprstuwxGLNOS")
_TEXT_TESTS: Final = frozenset(("-z", "-n"))
_TEXT_COMPARISONS: Final = frozenset(("=", "==", "!=", "<", ">"))
_NUMBER_COMPARISONS: Final = frozenset(("-eq", "-ne", "-lt", "-le", "-gt", "-ge"))
_FILE_COMPARISONS: Final = frozenset(("-nt", "-ot", "-ef"))
_NUMBER: Final = regex(r"-?[0-9]{1,18}")
_STRICT: Final = regex(r"[-+](?:[eu]+|[eu]*(o))")
_UNKNOWN_DIRECTORY: Final = "haft cannot tell the directory of the rest of the line"


def why_not_inside(argument: Argument, scope: Scope, resolver: PathResolver) -> str | None:
    """Why an argument may name files outside of the workspace; None if it certainly names no such files."""
    if argument.literal and argument.text == "-":
        return None
    texts = (argument.text,) if argument.literal else argument.paths
    if texts is None:
        return f"haft cannot tell which file `{argument.text}` names before it runs"
    for text in texts:
        if scope.directories is None and not text.startswith("/"):
            return f"haft cannot tell where `{text}` lies, because the line changes its directory"
        if not all(resolver.leads_inside(directory, text) for directory in scope.directories or ("/",)):
            return f"`{text}` lies outside of the workspace"
    return None


def why_not_read(argument: Argument, scope: Scope, resolver: PathResolver) -> str | None:
    """Why a program that opens the file `argument` may do more than read a file inside the workspace; None if the
    program does no more than that."""
    why = why_not_inside(argument, scope, resolver)
    if why is not None or (argument.literal and argument.text == "-"):
        return why
    for text in (argument.text,) if argument.literal else argument.paths or ():
        kinds = (resolver.special_kind(directory, text) for directory in scope.directories or ("/",))
        kind = next(filter(None, kinds), None)
        if kind is not None:
            return f"`{text}` is {kind}: reading it waits for another program and returns its output"
    return None


def change_directory(arguments: list[Argument], scope: Scope, resolver: PathResolver) -> str | None:
    """Why a `cd` is not safe; None if its directory certainly lies inside the workspace. Records the new directory in
    `scope`."""
    if arguments and arguments[0].literal and arguments[0].text == "--":
        arguments = arguments[1:]
    why = _why_not_change(arguments, scope)
    if why is not None:
        scope.directories = None
        return why
    path = arguments[0].text
    targets = set()
    for directory in scope.directories or ():
        place = resolver.resolve(directory, path)
        if place is None:
            scope.directories = None
            return _UNKNOWN_DIRECTORY
        by_name = path if path.startswith("/") else f"{directory}/{path}"
        if _normalise(by_name) != place:
            scope.followed_no_link = False
            if ".." in path.split("/"):
                scope.directories = None
                return _UNKNOWN_DIRECTORY
        targets.add(place)
    why = why_not_inside(arguments[0], scope, resolver)
    prefixes = [
        os.path.join(directory, each) for directory in scope.directories or () for each in _parents_of_dot_dot(path)
    ]
    scope.move(frozenset(targets), is_certain=all(map(_can_enter, (*targets, *prefixes))))
    return why


def _why_not_change(arguments: list[Argument], scope: Scope) -> str | None:
    if len(arguments) != 1 or not arguments[0].literal or arguments[0].text[:1] in ("", "-"):
        return f"haft does not know where `cd` goes, and so {_UNKNOWN_DIRECTORY}"
    path = arguments[0].text
    if scope.directories is None or (".." in path.split("/") and not scope.followed_no_link):
        return _UNKNOWN_DIRECTORY
    return None


def _parents_of_dot_dot(path: str) -> list[str]:
    """The beginnings of `path` that a `..` follows: each of them must be a directory."""
    parts = path.split("/")
    return ["/".join(parts[:at]) or "/" for at, part in enumerate(parts) if part == ".." and at]


def _can_enter(place: str) -> bool:
    return os.path.isdir(place) and os.access(place, os.X_OK)


def _normalise(path: str) -> str:
    parts: list[str] = []
    for part in path.split("/"):
        if part == "..":
            del parts[-1:]
        elif part not in ("", "."):
            parts.append(part)
    return "/" + "/".join(parts)


def read_line(arguments: list[Argument], scope: Scope, _resolver: PathResolver) -> str | None:
    """Why a `read` is not safe; None for `read -r NAME …` with variables that affect no program."""
    names = list(arguments)
    while names and names[0].literal and names[0].text in ("-r", "-s"):
        del names[0]
    if not names or not all(each.literal and is_harmless_name(each.text) for each in names):
        return "`read` sets a variable that haft does not know to be harmless"
    scope.forget(each.text for each in names)
    return None


def do_nothing(_arguments: list[Argument], _scope: Scope, _resolver: PathResolver) -> str | None:
    """Why `true`, `false` or `:` is not safe; None if no expansion in its arguments can do something."""
    return "its arguments may do something" if any(each.may_have_effects for each in _arguments) else None


def leave_loop(arguments: list[Argument], _scope: Scope, _resolver: PathResolver) -> str | None:
    """Why `exit`, `break` or `continue` is not safe; None if it has no argument, or one number."""
    is_fine = all((each.literal and each.text.isdigit()) or each.text in ("$?", '"$?"') for each in arguments)
    return None if is_fine and len(arguments) < 2 else "its argument is not a number"


def bracket(arguments: list[Argument], scope: Scope, resolver: PathResolver) -> str | None:
    """Why the test in `[ … ]` is not safe; None if it is safe."""
    if not arguments or not arguments[-1].literal or arguments[-1].text != "]":
        return "a bracket is missing"
    return test(arguments[:-1], scope, resolver)


def test(arguments: list[Argument], scope: Scope, resolver: PathResolver) -> str | None:
    """Why a `test` is not safe; None if it is safe. `test -v` is never safe: it evaluates the name of a variable, and
    runs commands in that name."""
    if any(each.may_split or each.may_have_effects for each in arguments):
        return "the words of this test may change when it runs"
    while len(arguments) > 1 and arguments[0].literal and arguments[0].text == "!":
        arguments = arguments[1:]
    if len(arguments) <= 1:
        return None
    return simple_test(arguments, scope, resolver, are_numbers_evaluated=False)


def simple_test(
    arguments: list[Argument], scope: Scope, resolver: PathResolver, *, are_numbers_evaluated: bool
) -> str | None:
    """Why a test with one operator and its operands is not safe; None if it is safe. `are_numbers_evaluated` says
    whether bash evaluates the operands of `-eq` and similar operators as arithmetic."""
    if len(arguments) == 2:
        return _unary(arguments[0], arguments[1], scope, resolver)
    if len(arguments) != 3 or not arguments[1].literal:
        return "haft does not analyse tests of this form"
    left, operator, right = arguments
    if operator.text in _TEXT_COMPARISONS:
        return None
    if operator.text in _NUMBER_COMPARISONS:
        is_fine = not are_numbers_evaluated or all(
            each.is_number or (each.literal and _NUMBER.fullmatch(each.text)) for each in (left, right)
        )
        return None if is_fine else f"`{operator.text}` evaluates the values that it compares"
    if operator.text in _FILE_COMPARISONS:
        return why_not_inside(left, scope, resolver) or why_not_inside(right, scope, resolver)
    return f"`{operator.text}` is a test that haft does not know to be harmless"


def _unary(operator: Argument, operand: Argument, scope: Scope, resolver: PathResolver) -> str | None:
    if not operator.literal:
        return "haft does not know the operator of this test"
    if operator.text in _TEXT_TESTS:
        return None
    if operator.text == "-t" and operand.literal and operand.text.isdigit():
        return None
    if operator.text in _FILE_TESTS:
        return why_not_inside(operand, scope, resolver)
    return f"`{operator.text}` is a test that haft does not know to be harmless"


def look_up_command(arguments: list[Argument], _scope: Scope, _resolver: PathResolver) -> str | None:
    """Why `command -v NAME …` is not safe; None if all its arguments are literal names."""
    is_fine = all(each.literal and (at == 0 or not each.text.startswith("-")) for at, each in enumerate(arguments))
    return None if is_fine else "haft does not know the arguments of `command`"


def set_strict(arguments: list[Argument], _scope: Scope, _resolver: PathResolver) -> str | None:
    """Why a `set` is not safe; None for `set -euo pipefail` and parts of it, because later commands then run unchanged,
    or not at all."""
    words = [each.text if each.literal else "" for each in arguments]
    at = 0
    while at < len(words):
        found = _STRICT.fullmatch(words[at])
        if found is None or (found[1] and words[at + 1 : at + 2] != ["pipefail"]):
            break
        at += 2 if found[1] else 1
    return None if words and at == len(words) else "`set` changes an option that haft does not know to be harmless"


def only_pwd(arguments: list[Argument], _scope: Scope, _resolver: PathResolver) -> str | None:
    """Why a `builtin` is not safe; None for `builtin pwd`."""
    is_fine = [each.text for each in arguments if each.literal] in (["pwd"], ["pwd", "-P"], ["pwd", "-L"])
    return None if is_fine and all(each.literal for each in arguments) else "haft does not analyse what `builtin` runs"


def discard_with_tee(arguments: list[Argument], _scope: Scope, _resolver: PathResolver) -> str | None:
    """Why a `tee` is not safe; None if it writes only to /dev/null and to its own output streams."""
    is_fine = all(each.literal and each.text in ("-a", "/dev/null", "/dev/stderr", "/dev/stdout") for each in arguments)
    return None if is_fine else "`tee` writes its files"


BUILTINS: Final[dict[str, Builtin]] = {
    "cd": change_directory,
    "read": read_line,
    "true": do_nothing,
    "false": do_nothing,
    ":": do_nothing,
    "exit": leave_loop,
    "break": leave_loop,
    "continue": leave_loop,
    "test": test,
    "[": bracket,
    "command": look_up_command,
    "set": set_strict,
    "builtin": only_pwd,
    "tee": discard_with_tee,
}
