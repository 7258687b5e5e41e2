"""Makes the modules beside it importable. Tests that start real agents run only with `make test-agents`."""

import json
import os
import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parent))

collect_ignore_glob = [] if os.environ.get("HAFT_AGENTS") else ["test_real_*.py"]


@pytest.fixture(scope="module")
def model():
    from haft.testing.scripted_model import ScriptedModel

    with ScriptedModel(without_tools="ok") as made:
        yield made


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """The tests of one agent in one module share a session: they run in one process."""
    for item in items:
        values = item.callspec.params.values() if hasattr(item, "callspec") else ()
        agent = next((value for value in values if value in ("claude-code", "codex", "opencode", "gemini")), None)
        if agent and item.path.is_relative_to(Path(__file__).parent):
            item.add_marker(pytest.mark.xdist_group(f"{item.path.stem}-{agent}"))


OUTCOMES: dict[str, str] = {}
KEPT = Path(sys.prefix) / "agent-results.json"
"""The results of earlier runs of some of the tests: `make test-agents` begins without them."""


def pytest_runtest_logreport(report):
    """Keep each result at once: a run takes long, and may be broken off."""
    if report.when == "call" or report.outcome != "passed":
        reason = f": {report.longrepr[2].removeprefix('Skipped: ')}" if report.skipped and report.longrepr else ""
        words = {"passed": "yes", "failed": "**no**", "skipped": f"not run{reason}"}[report.outcome]
        OUTCOMES[report.nodeid.split("@")[0]] = words
        if os.environ.get("HAFT_AGENTS") and "PYTEST_XDIST_WORKER" not in os.environ:
            known = json.loads(KEPT.read_text()) if KEPT.exists() else {}
            KEPT.write_text(json.dumps(known | OUTCOMES, indent=1))


def pytest_sessionfinish():
    """The process that gathers the results writes the page."""
    if os.environ.get("HAFT_AGENTS") and "PYTEST_XDIST_WORKER" not in os.environ:
        import results_page

        results_page.write(json.loads(KEPT.read_text()) if KEPT.exists() else OUTCOMES)
