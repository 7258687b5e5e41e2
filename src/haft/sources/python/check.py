"""Checks functions with `@tool` by reading their source code. Nothing is imported."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator
from typing import Any, Final

from haft.schema import read_docstring
from haft.sources.checks.definition import check_name, check_reserved, no_type, quoted_list
from haft.sources.checks.descriptions import check_description
from haft.sources.checks.files import InspectedFile, check_file, inspect_file
from haft.sources.checks.findings import Finding, Report
from haft.sources.checks.hidden import hidden_in_definition
from haft.sources.python.parsed_source import Function, aliases, dotted, functions, has_description_in, mentions, parse

KIND: Final = "python"
_CONTEXT: Final = ("Context", "ToolContext")


def tools_in(module: ast.Module) -> list[tuple[Function, dict[str, Any]]]:
    """The functions with `@tool`, and the constant arguments of each decorator."""
    names = aliases(module, "haft", "tool")
    found = []
    for function in functions(module):
        for decorator in function.decorator_list:
            call = decorator if isinstance(decorator, ast.Call) else None
            if dotted(call.func if call else decorator) in names:
                found.append((function, _plain(call)))
    return found


def _plain(call: ast.Call | None) -> dict[str, Any]:
    words = call.keywords if call else []
    return {word.arg: word.value.value for word in words if word.arg and isinstance(word.value, ast.Constant)}


def check_python(path: str, reserved: Collection[str] = ()) -> list[Report]:
    """One report for each tool of a file. If the file has no tools or cannot be read, one report for the whole file."""
    inspected = inspect_file(path)
    if isinstance(inspected, Finding):
        return [Report(path, KIND, None, [inspected])]
    of_file = list(check_file(inspected))
    module = parse(inspected)
    if isinstance(module, Finding):
        return [Report(path, KIND, None, [*of_file, module])]
    reports = []
    for function, claims in tools_in(module):
        name = claims.get("name") or function.name
        found = [*of_file, *_check_function(function, name, claims.get("description"), reserved)]
        reports.append(Report(path, KIND, name, found))
        of_file = []
    return reports or [Report(path, KIND, None, of_file)]


def _check_function(function: Function, name: str, claimed: Any, reserved: Collection[str]) -> Iterator[Finding]:
    docstring = read_docstring(ast.get_docstring(function))
    description = claimed if isinstance(claimed, str) else docstring.description
    for finding in (*check_name(name), *check_description(description)):
        yield _at(function, finding)
    arguments = function.args
    if arguments.vararg is not None:
        taken = arguments.vararg.arg
        yield _at(function, Finding("variable-arguments", f"it takes `*{taken}`", f"take one list: `{taken}: list[…]`"))
    taken_names = [each for each in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs) if _counts(each)]
    silent = [
        each.arg
        for each in taken_names
        if not docstring.parameters.get(each.arg) and not _is_described(each, arguments)
    ]
    if silent:
        hint = "add an `Args:` section to the docstring, or `Annotated[…, Field(description=…)]`"
        yield _at(function, Finding("parameter-undescribed", f"no description: {quoted_list(silent)}", hint))
    if untyped := [each.arg for each in taken_names if each.annotation is None]:
        yield _at(function, no_type(untyped))
    for finding in check_reserved([each.arg for each in taken_names], reserved):
        yield _at(function, finding)
    for finding in hidden_in_definition(name, description, {}):
        yield _at(function, finding)


def _counts(argument: ast.arg) -> bool:
    """Whether a call of the tool passes this argument: yes, unless it is the context, `self` or `cls`."""
    return argument.arg not in ("self", "cls") and not mentions(argument.annotation, _CONTEXT)


def _is_described(argument: ast.arg, arguments: ast.arguments) -> bool:
    return has_description_in(argument.annotation) or has_description_in(_default(argument, arguments))


def _default(argument: ast.arg, arguments: ast.arguments) -> ast.expr | None:
    plain = [*arguments.posonlyargs, *arguments.args]
    if argument in plain:
        index = plain.index(argument) - len(plain) + len(arguments.defaults)
        return arguments.defaults[index] if index >= 0 else None
    return arguments.kw_defaults[arguments.kwonlyargs.index(argument)]


def _at(function: Function, finding: Finding) -> Finding:
    return Finding(finding.code, finding.message, finding.hint, function.lineno, finding.path, finding.fixable)


def is_python_tools(inspected: InspectedFile) -> bool:
    """Whether a file has functions with `@tool`, or seems to have some but cannot be parsed."""
    if b"haft" not in inspected.content or b"tool" not in inspected.content:
        return False
    module = parse(inspected)
    if isinstance(module, Finding):
        return b"@tool" in inspected.content and b"TOOLBOX_ACTION" not in inspected.content
    return bool(tools_in(module))
