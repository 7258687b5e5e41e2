"""Runs the conformance suite against a URL, and reads its results."""

import json
import os
import re
import subprocess
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

import npm_programs

FOLDER = re.compile(r"server-(.+)-(\d{4}-\d\d-\d\d)T(\d\d)-(\d\d)-(\d\d)-(\d{3})Z")
BEGINS = "=== Running scenario: "
VERSIONS = ("2026-07-28", "2025-11-25")
EXTENSIONS = {
    "2026-07-28": ("sep-2640-skills-directory", "sep-2640-skills-enumeration", "sep-2640-skills-manifest"),
}
"""Scenarios of extensions that no version requires."""
WITH_RUNS = ("tools-call", "input-required-", "tasks-", "elicitation-")
"""How the names of scenarios begin that must leave runs in the log."""
WITHOUT_RUNS = {
    "input-required-result-unsupported-methods": "the suite calls no tool: it lists tools and prompts",
    "tasks-required-task-error": "the server refuses the call, because the client did not declare tasks",
    "tasks-status-notifications": "the suite makes no call",
}
"""Of these, those in which no tool may run, each with the reason."""


@dataclass
class Scenario:
    """One scenario that was run."""

    name: str
    began: float
    checks: list[dict]
    runs: list[str] = field(default_factory=list)
    """The names of the tools whose runs it left."""

    def count(self, *statuses: str) -> int:
        return sum(check["status"] in statuses for check in self.checks)

    def problems(self) -> list[str]:
        return [
            f"{self.name}: {check['status']} {check['id']}: {check.get('errorMessage', '')}"
            for check in self.checks
            if check["status"] in ("FAILURE", "WARNING")
        ]


def run_suite(url: str, version: str, output: Path, *, only: str | None = None) -> list[Scenario]:
    """Run all scenarios of a version, extensions too, or only one. Each scenario knows when it began."""
    command = [*npm_programs.command("conformance"), "server", "--url", url, "--output-dir", str(output)]
    command += ["--spec-version", version, "--scenario", only, "--force"] if only else ["--requirements", version]
    done = subprocess.run(command, capture_output=True, env=npm_programs.environment(), text=True)
    names = (
        [only]
        if only
        else [line[len(BEGINS) :].split(" ===")[0] for line in done.stdout.splitlines() if BEGINS in line]
    )
    assert names, done.stdout + done.stderr
    return [_result(output, name) for name in names]


def attribute_runs(scenarios: list[Scenario], runs: list[dict]) -> None:
    """Give each scenario the tools of the runs that began after it, and before the next one. When it ended is not
    known exactly: the time of its file can be some milliseconds before."""
    for scenario in scenarios:
        scenario.runs = []
    for run in runs:
        began = [each for each in scenarios if each.began <= _seconds(run["startedAt"])]
        if began:
            max(began, key=lambda each: each.began).runs.append(run["tool"])


def _seconds(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


def wants_runs(name: str) -> bool:
    """Whether a scenario must leave runs."""
    return name.startswith(WITH_RUNS) and name not in WITHOUT_RUNS


def _result(output: Path, name: str) -> Scenario:
    """What the suite wrote about a scenario: the name of a folder says when it began."""
    folders = {folder: found for folder in os.listdir(output) if (found := FOLDER.fullmatch(folder))}
    (folder,) = [folder for folder, found in folders.items() if found[1] == name]
    day, hour, minute, second, part = folders[folder].groups()[1:]
    began = _seconds(f"{day}T{hour}:{minute}:{second}.{part}+00:00")
    checks = output / folder / "checks.json"
    return Scenario(name, began, json.loads(checks.read_text()))
