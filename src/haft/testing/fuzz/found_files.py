"""Writes findings as scenario files, `NAME.found-N.scenario.yaml`, and reads those of earlier runs."""

from __future__ import annotations

import asyncio
import base64
import glob
import json
import os
import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from haft.contracts import BadUsage, HaftError
from haft.testing.crashes import crash_of
from haft.testing.fuzz.calls import SAMPLES
from haft.testing.fuzz.report import Finding
from haft.testing.reading.files import read_scenario_file
from haft.testing.reading.spellings import scenarios_from
from haft.testing.running import run_scenario
from haft.testing.scenarios.scenario import Scenario

_UNREADABLE: Final = re.compile("[\x7f-\xa0\xad\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufffe\uffff]")
"""Characters that YAML does not read, reads as the end of a line, or that nobody sees."""
_PLAIN: Final = re.compile(r"[A-Za-z_.][A-Za-z_./][A-Za-z0-9_./-]*|[A-Za-z_]")
_NUMBER: Final = re.compile(r"\.found-(\d+)\.scenario\.yaml$")


def earlier(tool: str, directory: str) -> Iterator[tuple[str, Scenario]]:
    """The scenario files of earlier findings, in their order. Files that cannot be read are left out."""
    found = glob.glob(os.path.join(glob.escape(directory), f"{glob.escape(tool)}.found-*.scenario.yaml"))
    for path in sorted(found, key=_number):
        try:
            scenarios = read_scenario_file(path)
        except HaftError:
            continue
        for each in scenarios:
            if each.tool == tool:
                yield path, each


def _number(path: str) -> int:
    found = _NUMBER.search(path)
    return int(found[1]) if found else 0


def write_finding(finding: Finding, tool: str, load: Sequence[str], directory: str, timeout: float) -> str | None:
    """Write a finding as a scenario that fails as long as the tool has the problem. Returns the path of the file; None
    if no scenario brings the problem about. Raises `BadUsage` if the file cannot be written."""
    base = _form(finding, tool, load, directory, timeout)
    for files in ({}, _samples()):
        form = {**base, "files": files} if files else base
        if _brings_about(finding, form, directory):
            return _write(_text(form, finding), tool, directory)
    return None


def _form(finding: Finding, tool: str, load: Sequence[str], directory: str, timeout: float) -> dict[str, Any]:
    """The scenario of a finding as plain data."""
    form: dict[str, Any] = {"tool": tool}
    if load:
        form["load"] = [_relative(each, directory) for each in load]
    form["args"] = dict(finding.args)
    if finding.problem.kind == "hang":
        form["timeout"] = timeout
    if not finding.is_valid or finding.problem.kind == "changed":
        form["unguarded"] = True
    if finding.problem.kind == "changed":
        form["expect"] = {"status": "done", "only_changed": []}
    elif finding.is_valid:
        form["expect"] = {"status": "done", "only_changed": "any"}
    else:
        form["expect"] = {"status": "error", "crashes": False, "only_changed": "any"}
    return form


def _relative(path: str, directory: str) -> str:
    near = os.path.relpath(path, os.path.realpath(directory))
    return near if os.sep in near else f"./{near}"


def _samples() -> dict[str, Any]:
    found: dict[str, Any] = {}
    for path, given in SAMPLES.items():
        try:
            found[path] = given.content.decode()
        except UnicodeDecodeError:
            found[path] = {"base64": base64.b64encode(given.content).decode()}
    return found


def _brings_about(finding: Finding, form: Mapping[str, Any], directory: str) -> bool:
    """Whether a scenario fails, and for the same reason."""
    (scenario,) = scenarios_from(form, directory=os.path.realpath(directory))
    result = asyncio.run(run_scenario(scenario))
    outcome = result.outcome
    if not result.mismatches or outcome is None:
        return False
    code = (outcome["error"] or {}).get("code")
    paths = {each.path for each in result.mismatches}
    match finding.problem.kind:
        case "crash":
            return crash_of(outcome) == finding.problem.sign
        case "hang":
            return code == "timed-out"
        case "limit":
            return code == "limit-exceeded"
        case "changed":
            return "expect.only_changed" in paths or code == "sandbox-denied"
        case "not-json" | "broken-result":
            return "expect.result" in paths or code == "tool-failed"


def _text(form: Mapping[str, Any], finding: Finding) -> str:
    """The scenario as YAML, each part on one line."""
    about = textwrap.shorten(finding.problem.message.partition("\n")[0], 200, placeholder=" …")
    lines = [f"# Found by `haft tools fuzz {form['tool']}`: {about}"]
    if not finding.is_valid:
        lines.append("# The arguments break the schema of the tool: it should refuse them with a message.")
    elif finding.problem.kind != "changed":
        lines.append("# If the tool should refuse these arguments, expect `status: error` and `crashes: false`.")
    lines += [f"{key}: {_yaml(value)}" for key, value in form.items()]
    return "\n".join(lines) + "\n"


def _yaml(value: Any) -> str:
    """A value on one line of YAML."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_yaml(key)}: {_yaml(each)}" for key, each in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_yaml, value)) + "]"
    if isinstance(value, str) and _PLAIN.fullmatch(value) and value.lower() not in ("true", "false", "null"):
        return value
    written = json.dumps(value, ensure_ascii=False)
    if isinstance(value, float) and "." not in written:
        return written.replace("e", ".0e")
    return _UNREADABLE.sub(lambda found: f"\\u{ord(found[0]):04x}", written)


def _write(text: str, tool: str, directory: str) -> str:
    """Write a scenario under the first number that is free."""
    number = 1
    while True:
        path = os.path.join(directory, f"{tool}.found-{number}.scenario.yaml")
        try:
            with open(path, "x", encoding="utf-8") as file:
                file.write(text)
        except FileExistsError:
            number += 1
        except OSError as error:
            raise BadUsage(
                f"the scenario {path} cannot be written: {error.strerror}", hint="`--to DIR` names another directory"
            ) from error
        else:
            return path
