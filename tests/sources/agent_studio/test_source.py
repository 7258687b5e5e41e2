"""Templates that are configured: which tools come of them, and what they need."""

import json
import shutil
from pathlib import Path

import pytest

from haft.contracts import BadConfig, BadUsage
from haft.service import ToolService

EXAMPLE = Path(__file__).parents[3] / "examples/json-reader"
WITH_KEY = "class UserParameters(BaseModel):\n    api_key: str\n    station: str = 'none'\n"


@pytest.fixture
def workspace(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    root = tmp_path / "workspace"
    for name in ("plain", "keyed"):
        shutil.copytree(EXAMPLE, root / "templates" / name, ignore=shutil.ignore_patterns(".*", "tests", "README.md"))
    tool = root / "templates/keyed/tool.py"
    tool.write_text(tool.read_text().replace("class UserParameters(BaseModel):\n    pass\n", WITH_KEY))
    return root


def configured(workspace, tmp_path, text):
    """The listings, by name, with that in the user's own file."""
    file = tmp_path / "config/haft/haft.toml"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    service = ToolService.open(workspace, home=str(tmp_path / "home"))
    return {one.spec.name: one for one in service.catalogue.listings(all=True) if one.spec.kind == "agent-studio"}


def instance(name, workspace, params="", folder="keyed"):
    return f'[[templates.instances]]\nname = "{name}"\ntemplate = "{workspace}/templates/{folder}"\n{params}\n'


def test_a_folder_is_a_tool_and_one_with_instances_is_those(workspace, tmp_path):
    text = f'[templates]\npaths = ["{workspace}/templates"]\n'
    text += instance("My API", workspace, 'user_params = {api_key = "one"}')
    text += instance("Other", workspace, 'user_params = {api_key = "two"}')
    found = configured(workspace, tmp_path, text)
    assert {name: one.state for name, one in found.items()} == {"my_api": "ready", "other": "ready", "plain": "ready"}
    assert all("one" not in json.dumps(each.to_json()["meta"]) for each in found.values())


def test_a_tool_whose_variable_is_not_set_names_it_and_the_others_work(workspace, tmp_path, monkeypatch):
    monkeypatch.delenv("NOT_SET_HERE", raising=False)
    text = instance("one", workspace, 'user_params = {api_key = "x", station = "${env:NOT_SET_HERE}"}')
    text += instance("two", workspace, 'user_params = {api_key = "y"}')
    found = configured(workspace, tmp_path, text)
    assert found["one"].state == "needs-config" and found["two"].state == "ready"
    assert "`station`" in found["one"].reason and "`NOT_SET_HERE`" in found["one"].reason


def test_what_is_missing_is_named_with_what_was_set_instead(workspace, tmp_path):
    found = configured(workspace, tmp_path, instance("one", workspace, 'user_params = {api_kee = "x"}'))
    assert found["one"].state == "needs-config"
    assert "it needs `api_key`" in found["one"].reason and "`api_kee`" in found["one"].reason


def test_two_of_one_name_are_said_to_be(workspace, tmp_path):
    text = instance("same", workspace, "", "plain") + instance("Same", workspace, 'user_params = {api_key = "x"}')
    configured(workspace, tmp_path, text)
    service = ToolService.open(workspace, home=str(tmp_path / "home"))
    states = [one.state for one in service.catalogue.listings(all=True) if one.spec.kind == "agent-studio"]
    assert sorted(states) == ["duplicate", "ready"]


async def _load(workspace, tmp_path):
    async with ToolService.open(workspace, home=str(tmp_path / "home")) as service:
        return await service.load(str(workspace / "templates/keyed"))


def test_a_folder_of_several_tools_is_none_of_them_by_its_path(workspace, tmp_path):
    import asyncio

    text = instance("one", workspace, 'user_params = {api_key = "1"}')
    configured(workspace, tmp_path, text)
    assert asyncio.run(_load(workspace, tmp_path)).spec.name == "one"
    configured(workspace, tmp_path, text + instance("two", workspace, 'user_params = {api_key = "2"}'))
    with pytest.raises(BadUsage, match="`one`, `two`"):
        asyncio.run(_load(workspace, tmp_path))


def test_a_file_that_changes_is_read_again_and_one_that_does_not_is_not(workspace, tmp_path, monkeypatch):
    from haft.sources.agent_studio import source

    read, times = source.read, []
    monkeypatch.setattr(source, "read", lambda each: times.append(each.name) or read(each))
    (tmp_path / "home").mkdir()
    text = f'[templates]\npaths = ["{workspace}/templates/plain"]\n'
    configured(workspace, tmp_path, text)
    configured(workspace, tmp_path, text)
    assert times == ["plain"]
    tool = workspace / "templates/plain/tool.py"
    tool.write_text(tool.read_text().replace("A simple JSON reader", "Another"))
    assert configured(workspace, tmp_path, text)["plain"].spec.description.startswith("Another")
    assert times == ["plain", "plain"]


def test_the_user_says_which_templates_have_answers_that_can_be_kept(workspace, tmp_path):
    shutil.copytree(workspace / "templates", tmp_path / "mine")
    claims = "readonly = true\ncacheable = true"
    text = instance("theirs", workspace, claims, folder="plain")
    text += instance("mine", workspace, claims, folder="plain").replace(f"{workspace}/templates", f"{tmp_path}/mine")
    found = configured(workspace, tmp_path, text)
    assert found["mine"].spec.effects.cacheable and found["mine"].spec.why_not_kept is None
    assert not found["theirs"].spec.effects.readonly, "a template of the workspace promises nothing"
    with pytest.raises(BadConfig, match="needs true or false as `readonly` and `cacheable`"):
        configured(workspace, tmp_path, instance("mine", workspace, 'cacheable = "yes"', folder="plain"))
