"""Checks the SKILL.md of a skill. The tools in a skill are checked by the source of their format."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Final

from haft.sources.checks.descriptions import check_description
from haft.sources.checks.files import check_file, inspect_file
from haft.sources.checks.findings import Finding, Report
from haft.sources.checks.hidden import hidden_in_definition
from haft.sources.skills.front_matter import FrontMatter, read_front_matter
from haft.sources.skills.skill import SKILL_FILE, TOOL_FOLDERS

KIND: Final = "skill"


def check_skill(folder: str) -> Report:
    """Check the front matter of a skill's SKILL.md, and who may change the file."""
    path = os.path.join(folder, SKILL_FILE)
    inspected = inspect_file(path)
    if isinstance(inspected, Finding):
        return Report(folder, KIND, None, [inspected])
    matter = read_front_matter(inspected.content)
    own = os.path.basename(os.path.abspath(folder))
    found = [*check_file(inspected), *_check_matter(matter, own)]
    if matter.description:
        found += check_description(matter.description)
        found += hidden_in_definition("", matter.description, {})
    return Report(folder, KIND, matter.name, [_in_file(finding, path) for finding in found])


def _in_file(finding: Finding, path: str) -> Finding:
    return Finding(finding.code, finding.message, finding.hint, finding.line, finding.path or path, finding.fixable)


def _check_matter(matter: FrontMatter, own: str) -> Iterator[Finding]:
    problem, _mark, cure = (matter.problem or "").partition("; ")
    if problem and SKILL_FILE in problem:
        yield Finding("skill-front-matter", problem, cure, 1)
        return
    if matter.name is None:
        yield Finding("skill-name", problem, cure)
        if not matter.description:
            yield Finding("skill-description", "its front matter has no `description`", "say what it teaches, and when")
    elif problem:
        yield Finding("skill-description", problem, cure)
    if matter.name is not None and matter.name != own:
        yield Finding("skill-name", f"its name is `{matter.name}` and its folder is `{own}`", "give both the same name")


def tool_folders(folder: str) -> list[str]:
    """The paths of the folders in a skill that may contain tools."""
    paths = [os.path.join(folder, name) for name in TOOL_FOLDERS]
    return [path for path in paths if os.path.isdir(path)]
