"""The contract suite: each test is written once, and runs with every kind of service."""

import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parent))
from contract_services import KINDS


@pytest.fixture(scope="module", params=KINDS)
def kind(request):
    return KINDS[request.param]()


@pytest.fixture(scope="module")
def place(kind, tmp_path_factory):
    """The directory that has the workspace and the state home of `service`."""
    return tmp_path_factory.mktemp("contract")


@pytest.fixture(scope="module")
def service(kind, place):
    """One service for the tests of a file."""
    with kind.open(place) as opened:
        yield opened


@pytest.fixture(scope="module")
def files(service, place):
    """The workspace of `service`."""
    return place / "workspace"
