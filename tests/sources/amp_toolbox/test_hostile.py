"""Many tools at once, some of them hostile: each is listed, none disturbs another, and nothing is asked twice."""

import asyncio
import importlib.util
import os
import resource

import pytest

from haft.registry import Catalogue
from haft.service import probe_launcher
from haft.sources.description_cache import NOT_DESCRIBED
from haft.storage import StateHome
from haft.toolsets.discovery import Discovery

_spec = importlib.util.spec_from_file_location("hostile", os.path.join(os.path.dirname(__file__), "hostile.py"))
hostile = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(hostile)

GOOD = 300 - len(hostile.SCRIPTS) - len(hostile.NOT_FILES)


class NoLauncher:
    """Whoever starts something has failed."""

    async def is_confined(self):
        return True

    async def run(self, command, sink):
        raise AssertionError(f"{command.argv} was started")


def listed(workspace, home, launcher):
    """The listings of a fresh process."""
    discovery = Discovery(str(workspace), home, {"AMP_TOOLBOX": "", "HOME": str(workspace)})
    catalogue = Catalogue(why_inactive=discovery.why_inactive)
    discovery.fill_builtin(catalogue)
    discovery.fill(catalogue)
    for _ in range(20):  # a busy machine may not come to all of them in one deadline, and says so
        asyncio.run(discovery.renew(catalogue, launcher))
        if not any(one.reason == NOT_DESCRIBED for one in catalogue.listings(all=True)):
            break
    return [one for one in catalogue.listings(all=True) if one.spec.kind == "amp-toolbox"]


@pytest.mark.first
def test_three_hundred_tools_of_which_two_dozen_are_hostile(tmp_path, left_of, eventually):
    workspace, home = tmp_path / "workspace", StateHome(str(tmp_path / "home"))
    forever = f"1000.{os.urandom(4).hex().translate(str.maketrans('abcdef', '123456'))}"
    names = hostile.fill(str(workspace / ".agents/tools"), GOOD, forever=forever)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with probe_launcher(str(workspace), home) as launcher:
        first = listed(workspace, home, launcher)
        eventually(lambda: not left_of(forever), what="everything that was started has ended, while the sandbox stands")
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown < 60_000, f"the host grew by {grown} KB"  # one of them says 60 MB
    assert sorted(os.path.basename(one.spec.origin) for one in first) == names, "every file is listed"
    by_file = {os.path.basename(one.spec.origin): one for one in first}
    good = {name: one for name, one in by_file.items() if name.startswith("good_")}
    assert [name for name, one in good.items() if one.state != "ready"] in ([], ["good_1"])
    for name in (*hostile.SCRIPTS, *hostile.NOT_FILES):
        one = by_file[f"bad_{name}"]
        if name == "clash":
            loser = one if one.state == "duplicate" else by_file["good_1"]
            assert loser.state == "duplicate", "one of two tools of a name is shown as such"
            assert "bad_clash" in loser.reason and "good_1" in loser.reason, "with both paths"
        else:
            assert one.state == ("ready" if name in hostile.READY else "broken"), (name, one.reason)
            assert one.state == "ready" or len(one.reason) > 20, f"{name} says why"
    assert by_file["bad_traversal"].spec.name == "tb________etc_passwd"
    assert by_file["bad_ansi"].spec.name == "tb____31mred__0_title_"
    assert not (workspace / "owned.txt").exists(), "describing writes nothing"
    assert listed(workspace, home, NoLauncher()) == first, "a second listing starts no process, and says the same"


def test_a_tool_that_was_changed_is_asked_again_and_no_other(tmp_path):
    workspace, home = tmp_path / "workspace", StateHome(str(tmp_path / "home"))
    directory = workspace / ".agents/tools"
    hostile.fill(str(directory), 3, scripts={})
    asked = []

    class Counting:
        def __init__(self, launcher):
            self._launcher = launcher

        async def is_confined(self):
            return True

        async def run(self, command, sink):
            asked.append(os.path.basename(command.argv[0]))
            return await self._launcher.run(command, sink)

    with probe_launcher(str(workspace), home) as launcher:
        listed(workspace, home, Counting(launcher))
        assert sorted(asked) == ["good_0", "good_1", "good_2"]
        asked.clear()
        (directory / "good_1").write_text(hostile.GOOD.replace("{n}", "7"))
        second = listed(workspace, home, Counting(launcher))
    assert asked == ["good_1"]
    assert "tb__good_7" in [one.spec.name for one in second]
