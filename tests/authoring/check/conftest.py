"""Files that are checked, and a launcher that starts them in a read-only sandbox."""

import asyncio
import os

import pytest

from haft.authoring.check import check_targets, targets_of
from haft.service import probe_launcher
from haft.storage import StateHome
from haft.toolsets.discovery import Discovery

RESERVED = frozenset({"timeout", "approve", "json"})


@pytest.fixture
def sources(tmp_path_factory):
    """Every format, where nothing is configured."""
    place = tmp_path_factory.mktemp("nothing")
    return Discovery(str(place), StateHome(str(place / "state")), {"HOME": str(place)}).every_source()


@pytest.fixture(scope="session")
def check_all(tmp_path_factory):
    """Check paths as the command does: every report, by the last part of its path."""
    place = tmp_path_factory.mktemp("looking")
    workspace = place / "workspace"
    workspace.mkdir()

    home = StateHome(str(place / "state"))
    with probe_launcher(str(workspace), home) as launcher:

        def check(*paths):
            sources = Discovery(str(workspace), home, os.environ).every_source()
            targets = [target for path in paths for target in targets_of(sources, str(path))]
            found = asyncio.run(check_targets(sources, targets, launcher, RESERVED))
            return [report for reports in found for report in reports]

        yield check


@pytest.fixture(scope="session")
def check(check_all):
    """Check one path, which is one thing."""

    def one(path):
        (report,) = check_all(path)
        return report

    return one


def codes(report):
    """What was found, but for what a busy machine makes of any of them."""
    return {finding.code for finding in report.findings} - {"describe-slow"}
