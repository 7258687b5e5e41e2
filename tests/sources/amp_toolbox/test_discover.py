"""Whose a directory of executables is: what a workspace brings never becomes the user's."""

import pytest

from haft.sources.amp_toolbox.discover import ToolboxDirectory, candidates, standard_places


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


DATA = (
    "package.json", "package-lock.json", "pnpm-lock.yaml", "yarn.lock", "bun.lockb", "deno.lock", "uv.lock", "go.sum",
    "poetry.lock", "requirements.txt", "pyproject.toml", "tsconfig.json", "README", "README.MD", "notes.md", "LICENSE",
    "words.txt", ".gitignore",
)  # fmt: skip


def test_files_that_are_plainly_data_are_no_tools_though_they_may_be_executed(tmp_path):
    for name in (*DATA, "tool", "tool.sh", "tool.js", "licensed", "lock"):
        (tmp_path / name).write_text("{}")
        (tmp_path / name).chmod(0o755)
    found = candidates(ToolboxDirectory(str(tmp_path), "user"))
    assert [each.path.rsplit("/", 1)[-1] for each in found] == ["licensed", "lock", "tool", "tool.js", "tool.sh"]
