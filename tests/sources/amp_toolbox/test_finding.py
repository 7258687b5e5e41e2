"""Whose a directory of executables is: what a workspace brings never becomes the user's."""

import pytest

from haft.sources.amp_toolbox.finding import standard_places


@pytest.fixture
def places(tmp_path):
    (tmp_path / "workspace/sub").mkdir(parents=True)
    (tmp_path / "own").mkdir()
    (tmp_path / "link").symlink_to("workspace")
    (tmp_path / "workspace/out").symlink_to("../own")

    def owner(written, *, configured=True):
        env = {"AMP_TOOLBOX": "" if configured else written}
        found = standard_places(env, str(tmp_path / "workspace"), [written] if configured else [])
        (one,) = [each for each in found if not each.directory.endswith(".agents/tools")]
        return one.provenance, one.within

    return tmp_path, owner


@pytest.mark.parametrize("configured", [True, False])
@pytest.mark.parametrize("way", ["workspace", "workspace/.", "workspace/sub", "link", "link/sub", "workspace/out"])
def test_by_whichever_way_it_is_reached(places, way, configured):
    top, owner = places
    assert owner(f"{top}/{way}", configured=configured) == ("workspace", str(top / "workspace"))


@pytest.mark.parametrize("configured", [True, False])
def test_what_lies_elsewhere_is_the_users(places, configured):
    top, owner = places
    assert owner(f"{top}/own", configured=configured) == ("user", None)
