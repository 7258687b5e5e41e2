"""A server with a tool that follows a script."""

import pytest

from ..conftest import serving  # noqa: TID252  all tests of the surface share this server
from .talking import talk


@pytest.fixture(scope="module")
def running(tmp_path_factory):
    with serving(tmp_path_factory.mktemp("served"), tools=[talk], installed=False) as found:
        yield found
