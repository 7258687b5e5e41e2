"""Checking an Agent Studio tool template by its files alone: nothing of it is imported or run."""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Collection, Iterator
from typing import Final

from haft.authoring.check.definition import check_reserved, listed, no_type
from haft.authoring.check.descriptions import check_description
from haft.authoring.check.files import Looked, check_file, look
from haft.authoring.check.findings import Finding, Report
from haft.authoring.check.hidden import hidden_in_definition
from haft.authoring.check.python_source import Function, aliases, dotted, mentions, parse, said_in

KIND: Final = "agent-studio"
ENTRY: Final = "tool.py"
REQUIREMENTS: Final = "requirements.txt"
_NAME: Final = re.compile(r"[a-zA-Z0-9 ]+")
_SUFFIX: Final = re.compile(r"_[a-z0-9]{6}$")
_PYDANTIC: Final = re.compile(r"\s*pydantic\s*(?:\[[^\]]*\]\s*)?(?:[<>=!~;@,#\s]|$)", re.IGNORECASE)


def template_name(folder: str) -> str:
    """What a folder's template is called."""
    name = os.path.basename(os.path.abspath(folder))
    return (_SUFFIX.sub("", name) or name).replace("_", " ")


def check_template(folder: str, reserved: Collection[str] = ()) -> Report:
    """Everything about one template."""
    name = template_name(folder)
    found: list[Finding] = []
    if not _NAME.fullmatch(name):
        rename = "use letters, digits, and `_` for a space"
        found.append(Finding("studio-name", f"`{name}` is no name for a template", rename))
    found += _check_requirements(os.path.join(folder, REQUIREMENTS))
    entry = os.path.join(folder, ENTRY)
    looked = look(entry) if os.path.lexists(entry) else _missing(ENTRY)
    if isinstance(looked, Finding):
        return Report(folder, KIND, name, [*found, looked])
    found += check_file(looked)
    found += _check_source(looked, reserved)
    return Report(folder, KIND, name, [_in_entry(finding, entry) for finding in found])


def _in_entry(finding: Finding, entry: str) -> Finding:
    if finding.path is not None or finding.code in ("studio-structure", "studio-pydantic", "studio-name"):
        return finding
    return Finding(finding.code, finding.message, finding.hint, finding.line, entry, finding.fixable)


def _missing(name: str) -> Finding:
    return Finding(
        "studio-structure", f"there is no `{name}`", f"a template is a folder with {ENTRY} and {REQUIREMENTS}"
    )


def _check_requirements(path: str) -> Iterator[Finding]:
    if not os.path.lexists(path):
        yield _missing(REQUIREMENTS)
        return
    looked = look(path)
    if isinstance(looked, Finding):
        yield looked
    elif not any(map(_PYDANTIC.match, looked.text.splitlines())):
        yield Finding("studio-pydantic", f"{REQUIREMENTS} does not name pydantic", "add a line `pydantic`", path=path)


def _check_source(looked: Looked, reserved: Collection[str]) -> Iterator[Finding]:
    module = parse(looked)
    if isinstance(module, Finding):
        yield module
        return
    description = ast.get_docstring(module)
    if not (description or "").strip():
        hint = "begin with a docstring: it is the description that agents choose by"
        yield Finding("studio-docstring", "the module has no docstring", hint, 1)
    else:
        yield from check_description(description or "")
        yield from hidden_in_definition("", description or "", {})
    bases = aliases(module, "pydantic", "BaseModel")
    yield from _check_class(module, "UserParameters", "studio-user-parameters", bases)
    yield from _check_class(module, "ToolParameters", "studio-tool-parameters", bases)
    yield from _check_run_tool(module)
    if not any(_is_main(node) for node in module.body):
        yield Finding("studio-main", "there is no main block", 'end with `if __name__ == "__main__": …`')
    if not any(_names_output_key(node) for node in module.body):
        yield Finding("studio-output-key", "there is no `OUTPUT_KEY`", 'add `OUTPUT_KEY = "tool_output"`, and print it')
    yield from _check_fields(module, reserved)


def _class(module: ast.Module, name: str) -> ast.ClassDef | None:
    found = [node for node in module.body if isinstance(node, ast.ClassDef) and node.name == name]
    return found[-1] if found else None


def _check_class(module: ast.Module, name: str, code: str, bases: Collection[str]) -> Iterator[Finding]:
    found = _class(module, name)
    if found is None:
        yield Finding(code, f"there is no class `{name}`", f"add `class {name}(BaseModel): …`; it may be empty")
    elif not any(dotted(base) in bases for base in found.bases):
        yield Finding(
            "studio-base",
            f"`{name}` does not inherit from pydantic's BaseModel",
            "inherit from it directly",
            found.lineno,
        )


def _check_run_tool(module: ast.Module) -> Iterator[Finding]:
    found = [node for node in module.body if isinstance(node, Function) and node.name == "run_tool"]
    hint = "write `def run_tool(config: UserParameters, args: ToolParameters) -> Any`"
    if not found:
        yield Finding("studio-run-tool", "there is no function `run_tool`", hint)
        return
    last = found[-1]
    taken = [*last.args.posonlyargs, *last.args.args]
    if isinstance(last, ast.AsyncFunctionDef):
        yield Finding("studio-run-tool", "`run_tool` is `async`", "make it a plain function", last.lineno)
    elif last.args.vararg is None and (len(taken) < 2 or len(taken) - len(last.args.defaults) > 2):
        yield Finding("studio-run-tool", f"`run_tool` takes {len(taken)} parameters, not two", hint, last.lineno)


def _is_main(node: ast.stmt) -> bool:
    if not isinstance(node, ast.If) or not isinstance(node.test, ast.Compare):
        return False
    sides = [node.test.left, *node.test.comparators]
    return (
        len(sides) == 2
        and isinstance(node.test.ops[0], ast.Eq)
        and any(isinstance(side, ast.Name) and side.id == "__name__" for side in sides)
        and any(isinstance(side, ast.Constant) and side.value == "__main__" for side in sides)
    )


def _names_output_key(node: ast.stmt) -> bool:
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    value = node.value if isinstance(node, ast.Assign | ast.AnnAssign) else None
    is_text = isinstance(value, ast.Constant) and isinstance(value.value, str) and bool(value.value)
    return is_text and any(isinstance(target, ast.Name) and target.id == "OUTPUT_KEY" for target in targets)


def _is_class_variable(node: ast.AnnAssign) -> bool:
    return mentions(node.annotation, "ClassVar")


def _check_fields(module: ast.Module, reserved: Collection[str]) -> Iterator[Finding]:
    """What an agent is told of the parameters."""
    parameters = _class(module, "ToolParameters")
    if parameters is None:
        return
    fields = [node for node in parameters.body if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)]
    names = {node.target.id: node for node in fields if isinstance(node.target, ast.Name)}
    names = {name: node for name, node in names.items() if name != "model_config" and not _is_class_variable(node)}
    silent = [name for name, node in names.items() if not said_in(node.annotation) and not said_in(node.value)]
    if silent:
        hint = "write `name: str = Field(description=…)`: agents see that"
        yield Finding("parameter-undescribed", f"no description: {listed(silent)}", hint, parameters.lineno)
    untyped = [
        node.targets[0].id
        for node in parameters.body
        if isinstance(node, ast.Assign)
        and isinstance(node.targets[0], ast.Name)
        and node.targets[0].id != "model_config"
    ]
    if untyped:
        yield no_type(untyped)
    yield from check_reserved(names, reserved)
