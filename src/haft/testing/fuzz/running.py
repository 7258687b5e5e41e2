"""Fuzzes one tool: tries earlier findings, searches, and writes each new finding as a scenario."""

from __future__ import annotations

import os
import random
import sys
import time
from collections.abc import Callable, Sequence
from typing import Final

from haft.contracts import BadUsage
from haft.storage import default_home
from haft.testing.fuzz.calls import Calls
from haft.testing.fuzz.found_files import earlier, write_finding
from haft.testing.fuzz.report import Finding, Report
from haft.values import dataclass

EXAMPLES: Final = 100
SECONDS: Final = 60.0
TIMEOUT: Final = 10.0


@dataclass(frozen=True)
class FuzzOptions:
    """How a tool is fuzzed."""

    examples: int = EXAMPLES
    """How many arguments are tried. The search for smaller ones comes on top."""
    seconds: float = SECONDS
    seed: int | None = None
    """The same seed makes the same arguments. None: chosen by chance."""
    timeout: float = TIMEOUT
    """The deadline of each call; a call that passes it is a finding."""
    directory: str = "."
    """Where scenarios of findings are written and read."""
    really: bool = False
    """Whether a tool is called that the sandbox does not hold."""


def fuzz_tool(
    tool: str,
    load: Sequence[str] = (),
    options: FuzzOptions | None = None,
    told: Callable[[Finding], None] = lambda _finding: None,
) -> Report:
    """Look for arguments that break a tool. `tool` is its name, or "" for the only tool in `load`. `load` are absolute
    paths of tools or of configuration files, as in scenarios. `told` gets each finding when it is there. After a
    Ctrl-C, the report has what was found until then. Raises `BadUsage` if the tool cannot be fuzzed."""
    options = options or FuzzOptions()
    if not os.path.isdir(options.directory):
        raise BadUsage(f"there is no directory {options.directory}")
    _place_hypothesis()
    try:
        from haft.testing.fuzz.search import Budget, Search, examples_of
    except ImportError as error:
        raise BadUsage(
            f"`haft tools fuzz` needs the package hypothesis ({error})",
            hint="in a checkout of haft: pip install '.[fuzz]'",
        ) from None
    chosen = random.SystemRandom().randrange(2**32) if options.seed is None else options.seed
    report = Report(tool, chosen)
    began = time.monotonic()

    def tell(finding: Finding) -> None:
        finding.scenario = write_finding(finding, report.tool, load, options.directory, options.timeout)
        told(finding)

    with Calls(tool, load, timeout=options.timeout, really=options.really) as calls:
        report.tool = calls.spec.name
        try:
            budget = Budget(options.examples, options.seconds)
            search = Search(calls, report, budget, tell, timeout=options.timeout)
            _try_earlier(search.try_first, report, options.directory, told)
            for arguments in examples_of(calls.spec.input_schema):
                if (finding := search.try_first(arguments)) is not None:
                    report.findings.append(finding)
                    tell(finding)
            search.run()
        except KeyboardInterrupt:
            report.ended = "interrupted"
    report.seconds = time.monotonic() - began
    return report


def _try_earlier(
    try_first: Callable[..., Finding | None], report: Report, directory: str, told: Callable[[Finding], None]
) -> None:
    """Try what earlier runs found."""
    for path, scenario in earlier(report.tool, directory):
        finding = try_first(scenario.args)
        if finding is None:
            report.mended.append(path)
            continue
        finding.is_known, finding.scenario = True, path
        report.findings.append(finding)
        told(finding)


def _place_hypothesis() -> None:
    """Let hypothesis keep its files in the state home, and not in the current directory."""
    if "hypothesis" in sys.modules:
        return
    try:
        from hypothesis.configuration import set_hypothesis_home_dir
    except ImportError:  # The next import says so.
        return
    set_hypothesis_home_dir(os.path.join(default_home(os.environ), "hypothesis"))
