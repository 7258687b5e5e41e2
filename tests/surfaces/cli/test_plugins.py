"""`haft plugins`: what is configured, what it is pinned to, and fetching it anew."""

import json
import subprocess

import pytest

from haft import ToolService

TOOL = """#!/usr/bin/env bash
case "$1" in
schema) echo '{"id": "greet", "version": "1", "args_mode": "flags", "tools": [{"type": "function", "function":
  {"name": "greet", "description": "Greets.", "parameters": {"type": "object", "properties": {}}}}]}' ;;
run) echo "hello from NUMBER" ;;
esac
"""


def git(where, *words):
    identity = ["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "init.defaultBranch=main"]
    done = subprocess.run(["git", *identity, *words], cwd=where, check=True, capture_output=True, text=True)
    return done.stdout.strip()


def tagged(repository, number):
    """Another commit, which the tag `v1` names from then on."""
    (repository / "greet.bash").write_text(TOOL.replace("NUMBER", str(number)))
    git(repository, "add", "-A")
    git(repository, "commit", "--quiet", "--message", str(number))
    git(repository, "tag", "--force", "v1")
    return git(repository, "rev-parse", "HEAD")


@pytest.fixture
def repository(tmp_path):
    made = tmp_path / "far" / "greeter"
    made.mkdir(parents=True)
    git(made, "init", "--quiet")
    (made / "agent_plugin.json").write_text('{"bash_tools": [{"file": "greet.bash"}]}')
    tagged(made, 1)
    return made


@pytest.fixture
def lock(haft, repository):
    """The user's lock file, where their configuration names the repository."""
    haft.env.pop("XDG_CACHE_HOME", None)
    own = haft.home.parent / "config" / "haft"
    own.mkdir(parents=True)
    (own / "haft.toml").write_text(
        f'plugins = ["bash+git:file://{repository}#v1"]\n[plugin_policy]\nallow_bash_tools = true\n'
    )
    return own / "haft.lock"


def test_what_was_granted_to_the_process_of_a_plugin_is_shown(haft, tmp_path, monkeypatch):
    (tmp_path / "py").mkdir()
    (tmp_path / "py" / "plugin.py").write_text(
        "class Plugin:\n"
        "    def get_tool_schemas(self, state): return [{'name': 'noted', 'description': 'Notes.', 'parameters': {}}]\n"
        "    def execute_tool(self, name, arguments, state): return 'x'\n"
    )
    monkeypatch.setattr(
        "haft.sources.brief_run.DESCRIBE_SECONDS", 60.0
    )  # It loads Python, on a machine that may be busy.
    settings = {"plugins": [f"path:{tmp_path}/py/plugin.py"]}
    with ToolService.open_sync(haft.workspace, home=haft.home, installed=False, settings=settings) as service:
        assert "noted" in [one.spec.name for one in service.tools()]
    own = haft.home.parent / "config" / "haft"
    own.mkdir(parents=True)
    entry = f'{{plugin = "path:{tmp_path}/py/plugin.py", grant = {{network = true, write = ["data/**", "."]}}}}'
    (own / "haft.toml").write_text(f"plugins = [{entry}]\n")
    grant = {"network": True, "env": [], "path": [], "read": [], "write": ["data/**", "."], "scratch": False}
    words = 'network = true, write = ["data/**", "."]'
    assert [one["grant"] for one in haft("plugins", "list", "--json").json] == [grant]
    assert f"plugin: grants of its process: {words}" in haft("plugins", "list").err
    assert f"Other grants: {words}." in haft("tools", "show", "noted").out
    assert haft("tools", "show", "noted", "--json").json["meta"]["plugin"]["grant"] == grant


def said(haft):
    """What the tool says when it is called."""
    return haft("tools", "use", "greet", "--approve", "--json").json["output"]


def test_a_git_plugin_is_fetched_by_the_first_listing_of_tools_and_can_be_called(haft, repository, lock):
    before = haft("plugins", "list", "--json").json
    assert [(one["name"], one["state"], one["tools"]) for one in before] == [("greeter", "not fetched", [])]
    assert before[0]["git"]["commit"] is None and not lock.exists()
    assert "greet" in haft("tools", "list").out
    assert said(haft) == "hello from 1\n"
    after = haft("plugins", "list")
    commit = git(repository, "rev-parse", "HEAD")
    assert "ready" in after.out and f"file://{repository}#v1 @ {commit[:12]}" in after.out and "greet" in after.out


def test_a_moved_tag_is_reported_and_taken_by_an_update(haft, repository, lock):
    first = haft("plugins", "update")
    old = git(repository, "rev-parse", "HEAD")
    assert first.code == 0 and f"fetched file://{repository}#v1 @ {old[:12]}" in first.out
    new = tagged(repository, 2)
    assert haft("plugins", "list", "--json").json[0]["state"] == "ready"
    (moved,) = haft("plugins", "list", "--remote", "--json").json
    assert (moved["state"], moved["git"]["commit"], moved["git"]["remoteCommit"]) == ("moved", old, new)
    assert "`haft plugins update greeter`" in moved["reason"]
    assert said(haft) == "hello from 1\n"
    done = haft("plugins", "update", "greeter")
    assert f"was {old[:12]}, is now {new[:12]}" in done.out
    assert json.loads(lock.read_text())["plugins"][0]["commit"] == new
    assert said(haft) == "hello from 2\n"
    assert "is still" in haft("plugins", "update").out


def test_a_name_that_is_nearly_right_is_suggested(haft, lock):
    done = haft("plugins", "update", "greetr")
    assert done.code == 2 and "did you mean `greeter`?" in done.err and not lock.exists()


def test_a_repository_that_is_gone_is_an_error_that_names_it(haft, repository, lock):
    repository.rename(repository.with_name("gone"))
    done = haft("plugins", "update")
    assert done.code == 1 and done.out == "" and f"file://{repository}#v1" in done.err


def test_plugins_on_this_machine_are_listed_too(haft):
    folder = haft.workspace / "plugins"
    folder.mkdir()
    (folder / "greet.bash").write_text(TOOL)
    (haft.workspace / "haft.toml").write_text(
        'plugins = ["bash:./plugins/greet.bash", "bash:./nothing"]\n[plugin_policy]\nallow_bash_tools = true\n'
    )
    good, bad = haft("plugins", "list", "--json").json
    assert (good["state"], good["path"], good["tools"]) == ("ready", str(folder / "greet.bash"), ["greet"])
    assert (bad["state"], bad["git"]) == ("broken", None) and "nothing" in bad["reason"]
    done = haft("plugins", "update", "greet")
    assert done.code == 2 and "nothing to fetch" in done.err
    assert "no git plugins are configured" in haft("plugins", "update").err
