"""Runs the conformance suite against a URL, and reads its results."""

import json
import os
import subprocess
import time
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

import npm_programs

BEGINS = "=== Running scenario: "
VERSIONS = ("2026-07-28", "2025-11-25")
EXTENSIONS = {
    "2026-07-28": ("sep-2640-skills-directory", "sep-2640-skills-enumeration", "sep-2640-skills-manifest"),
}
"""Scenarios of extensions that no version requires."""
WITH_RUNS = ("tools-call", "input-required-", "tasks-", "elicitation-")
"""How the names of scenarios begin that must leave runs in the log."""
WITHOUT_RUNS = frozenset(
    {"input-required-result-unsupported-methods", "tasks-required-task-error", "tasks-status-notifications"}
)
"""Of these, those in which no tool may run: the server refuses the call, or the suite makes none."""


@dataclass
class Scenario:
    """One scenario that was run."""

    name: str
    began: float
    ended: float = 0.0
    checks: list[dict] = field(default_factory=list)
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
    """Run all scenarios of a version, extensions too, or only one. Each scenario knows when it began and ended."""
    command = [*npm_programs.command("conformance"), "server", "--url", url, "--output-dir", str(output)]
    command += ["--spec-version", version, "--scenario", only, "--force"] if only else ["--requirements", version]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=npm_programs.environment(), text=True
    ) as process:
        scenarios: list[Scenario] = []
        printed = []
        if only:
            scenarios.append(Scenario(only, time.time()))
        for line in process.stdout:
            printed.append(line)
            if line.startswith(BEGINS):
                now = time.time()
                if scenarios:
                    scenarios[-1].ended = now
                scenarios.append(Scenario(line.removeprefix(BEGINS).split(" ===")[0], now))
    assert scenarios, "".join(printed)
    scenarios[-1].ended = time.time()
    for scenario in scenarios:
        scenario.checks = _checks(output, scenario.name)
    return scenarios


def attribute_runs(scenarios: list[Scenario], runs: list[dict]) -> None:
    """Give each scenario the tools of the runs that began while it ran."""
    for scenario in scenarios:
        scenario.runs = [run["tool"] for run in runs if scenario.began <= _seconds(run["startedAt"]) < scenario.ended]


def _seconds(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


def wants_runs(name: str) -> bool:
    """Whether a scenario must leave runs."""
    return name.startswith(WITH_RUNS) and name not in WITHOUT_RUNS


def _checks(output: Path, name: str) -> list[dict]:
    found = [folder for folder in os.listdir(output) if folder.startswith(f"server-{name}-2")]
    assert len(found) == 1, f"{name}: {found}"
    return json.loads((output / found[0] / "checks.json").read_text())
