"""Makes the modules beside it importable. Tests that start real agents run only with `make test-agents`."""

import os
import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parent))

collect_ignore_glob = [] if os.environ.get("HAFT_AGENTS") else ["test_real_*.py"]


@pytest.fixture(scope="module")
def model():
    from scripted_model import ScriptedModel

    with ScriptedModel() as made:
        yield made


def pytest_collection_modifyitems(items):
    """The tests of one agent in one module share a session: they run in one process."""
    for item in items:
        agent = getattr(item, "callspec", None) and item.callspec.params.get("agent_name")
        if agent:
            item.add_marker(pytest.mark.xdist_group(f"{item.path.stem}-{agent}"))


OUTCOMES: dict[str, str] = {}


def pytest_runtest_logreport(report):
    if report.when == "call" or report.outcome != "passed":
        reason = f": {report.longrepr[2].removeprefix('Skipped: ')}" if report.skipped and report.longrepr else ""
        words = {"passed": "yes", "failed": "**no**", "skipped": f"not run{reason}"}[report.outcome]
        OUTCOMES[report.nodeid.split("@")[0]] = words


def pytest_sessionfinish(session):
    """The process that gathers the results of a whole run writes the page."""
    if os.environ.get("HAFT_AGENTS") == "1" and not hasattr(session.config, "workerinput") and len(OUTCOMES) > 30:
        import results_page

        results_page.write(OUTCOMES)
