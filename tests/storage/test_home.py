"""The state home: whose it is, and what stands in its way."""

import os
import stat

import pytest

from haft.contracts import BadConfig
from haft.storage import StateHome, default_home


def test_the_home_and_everything_below_is_its_owners_alone(tmp_path):
    home = StateHome(str(tmp_path / "deep" / "home"))
    before = os.umask(0)
    try:
        home.prepare()
    finally:
        os.umask(before)
    for path in (home.path, home.hosts, home.outputs, home.audit):
        assert stat.S_IMODE(os.stat(path).st_mode) == 0o700


def test_a_home_that_others_could_read_is_closed(tmp_path):
    (tmp_path / "home").mkdir(mode=0o755)
    StateHome(str(tmp_path / "home")).prepare()
    assert stat.S_IMODE(os.stat(tmp_path / "home").st_mode) == 0o700


@pytest.mark.parametrize("below", ["", "/further/down"])
def test_a_file_where_the_home_should_be_is_said_so(tmp_path, below):
    (tmp_path / "file").write_text("")
    with pytest.raises(BadConfig, match="not a directory"):
        StateHome(f"{tmp_path}/file{below}").prepare()


def test_the_environment_says_where_it_is():
    assert default_home({"HAFT_HOME": "/x/y"}) == "/x/y"
    assert default_home({"XDG_STATE_HOME": "/state"}) in (
        "/state/haft",
        os.path.expanduser("~/Library/Application Support/haft"),
    )
