"""Checks whether source code has the parts of a template, and whether they fit together."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Collection, Iterator
from typing import Final

from haft.schema import shortened
from haft.sources.agent_studio.models import is_field_name
from haft.sources.agent_studio.scope import Scope, is_main
from haft.sources.agent_studio.template import Parameters, Problem, Template

CLASSES: Final = {"UserParameters": "studio-user-parameters", "ToolParameters": "studio-tool-parameters"}
_MOST_NAMED: Final = 8
_Function = ast.FunctionDef | ast.AsyncFunctionDef


def class_named(module: ast.Module, name: str) -> ast.ClassDef | None:
    """The last class with that name; None if there is none. Classes inside blocks are ignored."""
    found = [node for node in module.body if isinstance(node, ast.ClassDef) and node.name == name]
    return found[-1] if found else None


def breaches_of(module: ast.Module, scope: Scope) -> tuple[Problem, ...]:
    """The problems that make source code unusable as a template."""
    found = [problem for name, code in CLASSES.items() for problem in _check_class(module, scope, name, code)]
    found += _check_run_tool(module)
    if not any(is_main(node) for node in module.body):
        found.append(Problem("studio-main", "there is no main block", 'end with `if __name__ == "__main__": …`'))
    return tuple(found)


def remarks_of(module: ast.Module, template: Template) -> tuple[Problem, ...]:
    """The problems that do not prevent the use of a template."""
    found: list[Problem] = []
    if not template.description:
        hint = "begin with a docstring: it is the description that agents choose by"
        found.append(Problem("studio-docstring", "the module has no docstring", hint, 1))
    if template.output_key is None:
        hint = 'add `OUTPUT_KEY = "tool_output"`, and print it'
        found.append(Problem("studio-output-key", "there is no `OUTPUT_KEY` with a text", hint))
    elif not _is_printed(module, template.output_key):
        hint = "print it before the answer: `print(OUTPUT_KEY, output)`"
        found.append(Problem("studio-key-unprinted", "`OUTPUT_KEY` is never used", hint))
    for name, parameters in (("UserParameters", template.user), ("ToolParameters", template.tool)):
        found += _check_fields(name, parameters)
        if (node := class_named(module, name)) is not None:
            found += _check_twice(node)
            found += _check_untyped(node)
    return tuple(found)


def _check_class(module: ast.Module, scope: Scope, name: str, code: str) -> Iterator[Problem]:
    found = class_named(module, name)
    if found is None:
        yield Problem(code, f"there is no class `{name}`", f"add `class {name}(BaseModel): …`; it may be empty")
    elif not any(scope.is_named(base, "pydantic.BaseModel") for base in found.bases):
        what = f"`{name}` does not inherit from pydantic's BaseModel"
        yield Problem("studio-base", what, "inherit from it directly", found.lineno)


def _check_run_tool(module: ast.Module) -> Iterator[Problem]:
    found = [node for node in _functions(module) if node.name == "run_tool"]
    hint = "write `def run_tool(config: UserParameters, args: ToolParameters) -> Any`"
    if not found:
        yield Problem("studio-run-tool", "there is no function `run_tool`", hint)
        return
    last = found[-1]
    taken = [*last.args.posonlyargs, *last.args.args]
    if isinstance(last, ast.AsyncFunctionDef):
        yield Problem("studio-run-tool", "`run_tool` is `async`", "make it a plain function", last.lineno)
    elif last.args.vararg is None and (len(taken) < 2 or len(taken) - len(last.args.defaults) > 2):
        yield Problem("studio-run-tool", f"`run_tool` takes {len(taken)} parameters, not two", hint, last.lineno)


def _functions(module: ast.Module) -> Iterator[_Function]:
    """The functions of the module, and the static methods of its classes: the main block may call either."""
    for node in module.body:
        if isinstance(node, _Function):
            yield node
        elif isinstance(node, ast.ClassDef):
            methods = [each for each in node.body if isinstance(each, _Function)]
            yield from (each for each in methods if any(map(_is_static, each.decorator_list)))


def _is_static(decorator: ast.expr) -> bool:
    return isinstance(decorator, ast.Name) and decorator.id == "staticmethod"


def _is_printed(module: ast.Module, key: str) -> bool:
    """Whether the key is used somewhere, or its text occurs in another text. Whether it is really printed is not
    checked."""
    texts = 0
    for node in ast.walk(module):
        match node:
            case ast.Name(id="OUTPUT_KEY", ctx=ast.Load()):
                return True
            case ast.Constant(value=str(text)) if key in text:
                texts += 1
            case _:
                pass
    return texts > 1


def _check_fields(name: str, parameters: Parameters) -> Iterator[Problem]:
    unknown = [one for one in parameters.fields if not one.is_known]
    if unknown:
        what = f"the type or the alias of {quoted_list([one.name for one in unknown])} of `{name}` cannot be read"
        hint = "use str, int, float, bool, List, Dict, Optional, Literal, or a model or an Enum of this file"
        yield Problem("studio-unread-type", what, hint, unknown[0].line)
    absent = [one for one in parameters.fields if one.null_when_absent]
    if absent:
        what = f"{quoted_list([one.name for one in absent])} of `{name}` may be None and has no default"
        yield Problem("studio-optional", what, "add `= None`: without it pydantic requires a value", absent[0].line)
    keys: dict[str, str] = {}
    for one in parameters.fields:
        if one.key in keys:
            what = f"`{shortened(keys[one.key], 60)}` and `{shortened(one.name, 60)}` of `{name}` are sent as one key"
            yield Problem("studio-alias", what, "give each an alias of its own", one.line)
        keys.setdefault(one.key, one.name)


def _check_twice(node: ast.ClassDef) -> Iterator[Problem]:
    fields = [each for each in node.body if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name)]
    times = Counter(each.target.id for each in fields if isinstance(each.target, ast.Name))
    for each in fields:
        name = each.target.id if isinstance(each.target, ast.Name) else ""
        if times.pop(name, 1) > 1 and is_field_name(name):
            what = f"`{shortened(name, 60)}` occurs more than once in `{node.name}`"
            yield Problem("studio-duplicate", what, "keep one of them: the last one counts", each.lineno)


def _check_untyped(node: ast.ClassDef) -> Iterator[Problem]:
    typed = {
        each.target.id for each in node.body if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name)
    }
    untyped = [
        each
        for each in node.body
        if isinstance(each, ast.Assign)
        and isinstance(each.targets[0], ast.Name)
        and is_field_name(each.targets[0].id)
        and each.targets[0].id not in typed
    ]
    if untyped:
        names = [each.targets[0].id for each in untyped if isinstance(each.targets[0], ast.Name)]
        what = f"no type: {quoted_list(names)} of `{node.name}`"
        yield Problem(
            "no-type", what, "write `name: str = …`: pydantic accepts no field without a type", untyped[0].lineno
        )


def quoted_list(names: Collection[str]) -> str:
    """The first names of a list, in backquotes, and how many more there are."""
    shown = [f"`{shortened(name, 60)}`" for name in list(names)[:_MOST_NAMED]]
    return ", ".join(shown) + (f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else "")
