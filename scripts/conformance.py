"""Run the MCP conformance suite against `haft serve mcp`, and print the checks or write the page about them.

    python scripts/conformance.py                            every scenario of both versions, and the extensions
    python scripts/conformance.py 2026-07-28 tools-list      one scenario
    python scripts/conformance.py --write                    write docs/reference/mcp-conformance.md too

The tests run the same: `tests/mcp/test_server_conformance.py`. `make conformance` writes the page.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from importlib.metadata import version as installed_version
from pathlib import Path
from urllib.parse import urlsplit

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "reference" / "mcp-conformance.md"
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests" / "mcp" / "conformance")]

from served_workspace import ServedWorkspace  # noqa: E402
from suite import EXTENSIONS, VERSIONS, Scenario, attribute_runs, run_suite, wants_runs  # noqa: E402
from token_proxy import TokenProxy  # noqa: E402

import npm_programs  # noqa: E402

INTRODUCTION = """# MCP conformance

`make conformance` runs the conformance suite of the Model Context Protocol (MCP) against `haft serve mcp`, and writes
this page. The suite's tools are ordinary haft tools, and its prompts and resources come from an MCP server that haft
hosts: `tests/mcp/conformance/`. The column *runs* names the tools whose runs a scenario left in `haft log`.
"""
STATUSES = ("SUCCESS", "FAILURE", "WARNING", "SKIPPED")


def results(version: str, only: str | None) -> list[Scenario]:
    """The scenarios of a version, or one of them, against a new server."""
    with tempfile.TemporaryDirectory(prefix="haft-conformance-") as base:
        workspace = ServedWorkspace(Path(base))
        with workspace.served() as (url, token), TokenProxy(urlsplit(url).port, token) as proxied:
            names = [only] if only else [None, *EXTENSIONS.get(version, ())]
            found = [
                scenario
                for number, name in enumerate(names)
                for scenario in run_suite(proxied, version, Path(base) / f"out-{number}", only=name)
            ]
            attribute_runs(found, workspace.runs())
    return found


def show(scenarios: list[Scenario]) -> bool:
    """Print the checks. Returns whether all passed."""
    passed = True
    for scenario in scenarios:
        counts = ", ".join(f"{count} {status.lower()}" for status in STATUSES if (count := scenario.count(status)))
        print(f"{scenario.name:<46} {counts:<32} {' '.join(sorted(set(scenario.runs)))}")
        for problem in scenario.problems():
            print(f"    {problem}")
        if wants_runs(scenario.name) and not scenario.runs:
            print("    it left no run in the log")
            passed = False
        passed = passed and not scenario.problems()
    print(", ".join(f"{sum(each.count(status) for each in scenarios)} {status.lower()}" for status in STATUSES))
    return passed


def page(found: dict[str, list[Scenario]]) -> str:
    """The page with the results of both versions."""
    suite, package, own = npm_programs.version("conformance"), installed_version("mcp"), installed_version("haft")
    lines = [INTRODUCTION, f"Versions: conformance {suite}, `mcp` {package}, haft {own}."]
    for version, scenarios in found.items():
        total = {status: sum(each.count(status) for each in scenarios) for status in STATUSES}
        skipped = f", {total['SKIPPED']} not applicable" if total["SKIPPED"] else ""
        passed = f"{total['SUCCESS']} passed, {total['FAILURE']} failed"
        lines += [
            "",
            f"## Protocol version {version}",
            "",
            f"{len(scenarios)} scenarios. Checks: {passed}, {total['WARNING']} warnings{skipped}.",
            "",
            "| scenario | passed | failed | warnings | runs |",
            "|---|---|---|---|---|",
        ]
        for each in scenarios:
            tools = ", ".join(f"`{tool}`" for tool in sorted(set(each.runs)))
            counts = " | ".join(str(each.count(status)) for status in STATUSES[:3])
            lines.append(f"| `{each.name}` | {counts} | {tools} |")
    return "\n".join([*lines, ""])


def main() -> int:
    parser = argparse.ArgumentParser(description="Run the MCP conformance suite against `haft serve mcp`.")
    parser.add_argument("version", nargs="?", choices=VERSIONS)
    parser.add_argument("scenario", nargs="?")
    parser.add_argument("--write", action="store_true", help="write the page about the results")
    given = parser.parse_args()
    found = {version: results(version, given.scenario) for version in VERSIONS if given.version in (None, version)}
    passed = [show(scenarios) for scenarios in found.values()]
    if given.write:
        PAGE.write_text(page(found))
    return 0 if all(passed) else 1


if __name__ == "__main__":
    sys.exit(main())
