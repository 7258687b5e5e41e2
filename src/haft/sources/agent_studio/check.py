"""Checks an Agent Studio tool template by its files alone. Nothing of the template is imported or run.

`template_reader` reads `tool.py`, for the source and for this check. This module turns the problems that
`template_reader` found into findings, and adds findings about the folder.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator
from typing import Final

from haft.contracts import ToolFailed
from haft.schema import shortened
from haft.sources.agent_studio.names import is_template_name, name_of_folder
from haft.sources.agent_studio.requirements import parse_requirements
from haft.sources.agent_studio.template import Parameters, Problem
from haft.sources.agent_studio.template_reader import read_template
from haft.sources.checks.definition import check_reserved, check_schema, quoted_list
from haft.sources.checks.descriptions import check_description
from haft.sources.checks.files import check_file, inspect_file
from haft.sources.checks.findings import Finding, Report
from haft.sources.checks.hidden import hidden_in_definition

KIND: Final = "agent-studio"
ENTRY: Final = "tool.py"
REQUIREMENTS: Final = "requirements.txt"
_PYDANTIC: Final = re.compile(r"\s*pydantic\s*(?:\[[^\]]*\]\s*)?(?:[<>=!~;@,#\s]|$)", re.IGNORECASE)
_FOLDERS: Final = ("studio-structure", "studio-pydantic", "studio-name", "studio-pack-name")
"""Codes of findings that are not about `tool.py`."""
_WHEN_PACKING: Final = {"studio-name": "studio-pack-name", "studio-docstring": "studio-pack-docstring"}
"""Warnings that become errors when a template is packed."""


def check_template(folder: str, reserved: Collection[str] = (), *, packing: bool = False) -> Report:
    """Check the template in a folder. `reserved` has the names of haft's own options, which hide parameters on a
    command line. With `packing`, some warnings are errors."""
    name = name_of_folder(folder)
    entry = os.path.join(folder, ENTRY)
    found = [*_check_folder(folder, name), *_check_entry(entry, reserved)]
    return Report(folder, KIND, name, [_placed(finding, entry, packing) for finding in found])


def _placed(finding: Finding, entry: str, packing: bool) -> Finding:
    """The finding with the path of its file. With `packing`, some warnings count as errors: such a warning gets the
    code of the error."""
    code = _WHEN_PACKING.get(finding.code, finding.code) if packing else finding.code
    path = finding.path if finding.path is not None or finding.code in _FOLDERS else entry
    return Finding(code, finding.message, finding.hint, finding.line, path, finding.fixable)


def _missing(name: str) -> Finding:
    return Finding(
        "studio-structure", f"there is no `{name}`", f"a template is a folder with {ENTRY} and {REQUIREMENTS}"
    )


def _check_folder(folder: str, name: str) -> Iterator[Finding]:
    if not is_template_name(name):
        rename = "use letters, digits, and `_` for a space"
        yield Finding("studio-name", f"`{shortened(name, 80)}` is not a valid template name", rename)
    yield from _check_requirements(os.path.join(folder, REQUIREMENTS))


def _check_requirements(path: str) -> Iterator[Finding]:
    if not os.path.lexists(path):
        yield _missing(REQUIREMENTS)
        return
    inspected = inspect_file(path)
    if isinstance(inspected, Finding):
        yield Finding(inspected.code, inspected.message, inspected.hint, path=path)
    elif not any(map(_PYDANTIC.match, inspected.text.splitlines())):
        yield Finding("studio-pydantic", f"{REQUIREMENTS} does not name pydantic", "add a line `pydantic`", path=path)
    if not isinstance(inspected, Finding):
        try:
            parse_requirements(inspected.content, allow_builds=False)
        except ToolFailed as error:
            yield Finding("studio-requirements", error.message, error.hint, path=path)


def _check_entry(entry: str, reserved: Collection[str]) -> Iterator[Finding]:
    inspected = inspect_file(entry) if os.path.lexists(entry) else _missing(ENTRY)
    if isinstance(inspected, Finding):
        yield inspected
        return
    yield from check_file(inspected)
    template = read_template(inspected.content)
    if isinstance(template, Problem):
        yield _finding(template)
        return
    if template.description:
        yield from check_description(template.description)
    yield from hidden_in_definition("", template.description, template.tool.schema)
    yield from map(_finding, (*template.breaches, *template.remarks))
    yield from _check_parameters(template.tool, reserved)


def _finding(problem: Problem) -> Finding:
    return Finding(problem.code, problem.message, problem.cure, problem.line)


def _check_parameters(parameters: Parameters, reserved: Collection[str]) -> Iterator[Finding]:
    """Check the parameters as agents see them."""
    silent = [one.name for one in parameters.fields if not one.description.strip()]
    if silent:
        hint = "write `name: str = Field(description=…)`: agents see that"
        yield Finding("parameter-undescribed", f"no description: {quoted_list(silent)}", hint, parameters.line)
    yield from check_schema(parameters.schema)
    yield from check_reserved([one.key for one in parameters.fields], reserved)
