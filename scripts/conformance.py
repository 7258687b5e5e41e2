"""Run the MCP conformance suite against haft, as a server and as a client, and print the checks or write the page about
them.

    python scripts/conformance.py                            every scenario of both versions, and the extensions
    python scripts/conformance.py 2026-07-28 tools-list      one scenario
    python scripts/conformance.py --write                    write docs/reference/mcp-conformance.md too

The tests run the same: `tests/mcp/test_server_conformance.py` and `test_client_conformance.py`. `make conformance`
writes the page.
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

from client_suite import ALL as CLIENT_SCENARIOS  # noqa: E402
from client_suite import run_client  # noqa: E402
from served_workspace import ServedWorkspace  # noqa: E402
from suite import EXTENSIONS, VERSIONS, WITHOUT_RUNS, Scenario, attribute_runs, run_suite, wants_runs  # noqa: E402
from token_proxy import TokenProxy  # noqa: E402

import npm_programs  # noqa: E402

INTRODUCTION = """# MCP conformance

`make conformance` runs the conformance suite of the Model Context Protocol (MCP) against haft, and writes this page.

As a server: `haft serve mcp`. The suite's tools are ordinary haft tools, and its prompts and resources come from an MCP
server that haft hosts: `tests/mcp/conformance/`. The column *runs* names the tools whose runs a scenario left in
`haft log`. As a client: the suite's server is a provider, called with `haft tools use`, and `haft providers login` logs
in there: `tests/mcp/conformance_client.py`.
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


def client_results(version: str, only: str | None) -> list[Scenario]:
    """The client scenarios of a version, or one of them, with haft as the client."""
    found = []
    for each, name in CLIENT_SCENARIOS:
        if each == version and only in (None, name):
            with tempfile.TemporaryDirectory(prefix="haft-conformance-") as base:
                found.append(run_client(version, name, Path(base))[0])
    return found


def show(scenarios: list[Scenario], *, is_server: bool) -> bool:
    """Print the checks. Returns whether all passed."""
    passed = True
    for scenario in scenarios:
        counts = ", ".join(f"{count} {status.lower()}" for status in STATUSES if (count := scenario.count(status)))
        print(f"{scenario.name:<46} {counts:<32} {' '.join(sorted(set(scenario.runs)))}")
        for problem in scenario.problems():
            print(f"    {problem}")
        if is_server and wants_runs(scenario.name) and not scenario.runs:
            print("    it left no run in the log")
            passed = False
        passed = passed and not scenario.problems()
    print(", ".join(f"{sum(each.count(status) for each in scenarios)} {status.lower()}" for status in STATUSES))
    return passed


def page(served: dict[str, list[Scenario]], used: dict[str, list[Scenario]]) -> str:
    """The page with the results of all versions, as a server and as a client."""
    suite, package, own = npm_programs.version("conformance"), installed_version("mcp"), installed_version("haft")
    lines = [INTRODUCTION, f"Versions: conformance {suite}, `mcp` {package}, haft {own}."]
    for version, scenarios in served.items():
        lines += ["", f"## haft as a server, protocol version {version}", "", *_summary(scenarios), ""]
        lines += ["| scenario | passed | failed | warnings | runs |", "|---|---|---|---|---|"]
        for each in scenarios:
            tools = ", ".join(f"`{tool}`" for tool in sorted(set(each.runs)))
            counts = " | ".join(str(each.count(status)) for status in STATUSES[:3])
            lines.append(f"| `{each.name}` | {counts} | {tools} |")
        exempt = [f"- `{each.name}`: {WITHOUT_RUNS[each.name]}." for each in scenarios if each.name in WITHOUT_RUNS]
        lines += ["", "No tool may run in these scenarios, so they left no run:", "", *exempt] if exempt else []
        lines += _not_applicable(scenarios)
    for version, scenarios in used.items():
        lines += ["", f"## haft as a client, protocol version {version}", "", *_summary(scenarios), ""]
        lines += ["| scenario | passed | failed | warnings |", "|---|---|---|---|"]
        for each in scenarios:
            counts = " | ".join(str(each.count(status)) for status in STATUSES[:3])
            lines.append(f"| `{each.name}` | {counts} |")
        lines += _not_applicable(scenarios)
    return "\n".join([*lines, ""])


def _summary(scenarios: list[Scenario]) -> list[str]:
    total = {status: sum(each.count(status) for each in scenarios) for status in STATUSES}
    skipped = f", {total['SKIPPED']} not applicable" if total["SKIPPED"] else ""
    passed = f"{total['SUCCESS']} passed, {total['FAILURE']} failed"
    return [f"{len(scenarios)} scenarios. Checks: {passed}, {total['WARNING']} warnings{skipped}."]


def _not_applicable(scenarios: list[Scenario]) -> list[str]:
    """The checks that the suite skipped, in its own words."""
    found: dict[tuple[str, str], list[str]] = {}
    for scenario in scenarios:
        for check in scenario.checks:
            if check["status"] == "SKIPPED":
                why = check.get("errorMessage") or check.get("description") or "the suite gives no reason"
                words = " ".join(why.split()).removeprefix("Skipped: ")
                found.setdefault((scenario.name, words), []).append(f"`{check['id']}`")
    lines = [f"- `{name}`: {', '.join(dict.fromkeys(ids))}: {words}" for (name, words), ids in found.items()]
    return ["", "Checks that are not applicable, in the words of the suite:", "", *lines] if lines else []


def main() -> int:
    parser = argparse.ArgumentParser(description="Run the MCP conformance suite against haft.")
    parser.add_argument("version", nargs="?", choices=VERSIONS)
    parser.add_argument("scenario", nargs="?")
    parser.add_argument("--side", choices=("server", "client"), help="only haft as a server, or only as a client")
    parser.add_argument("--write", action="store_true", help="write the page about the results")
    given = parser.parse_args()
    versions = [version for version in VERSIONS if given.version in (None, version)]
    found = {version: results(version, given.scenario) for version in versions} if given.side != "client" else {}
    used = {version: client_results(version, given.scenario) for version in versions} if given.side != "server" else {}
    passed = [show(scenarios, is_server=True) for scenarios in found.values()]
    passed += [show(scenarios, is_server=False) for scenarios in used.values()]
    if given.write:
        PAGE.write_text(page(found, used))
    return 0 if all(passed) else 1


if __name__ == "__main__":
    sys.exit(main())
