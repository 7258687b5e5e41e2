"""Where types come from, which of two counts, and trust."""

import os

import pytest

from haft.agents import AgentTypes, TypeTables
from haft.config import configured, load_config, revoke, trust, workspace_config
from haft.contracts import BadUsage
from haft.files import digest_of
from haft.service import budget_of, described_type, find_agent_types


@pytest.fixture
def home(tmp_path):
    (tmp_path / "home").mkdir()
    (tmp_path / "workspace").mkdir()
    return tmp_path


def write(path, name, text="Prompt.", **keys):
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = "".join(f"{key}: {value}\n" for key, value in keys.items())
    path.write_text(f"---\nname: {name}\ndescription: The one in {path.parent.name}.\n{lines}---\n{text}\n")
    return path


def types(home, tables=(), trusted=()):
    workspace = home / "workspace"
    digests = {str(path.relative_to(workspace)): digest_of(path.read_bytes()) for path in trusted}
    return AgentTypes(str(workspace), tables, lambda: digests, {"HOME": str(home / "home")})


def states(found):
    return {
        (one.name, os.path.basename(os.path.dirname(one.origin)) or one.origin): one.state for one in found.listed()
    }


def test_the_first_place_counts_and_the_others_are_said(home):
    places = [
        home / "workspace/.agents/agents/reviewer.md",
        home / "home/.config/agents/agents/reviewer.md",
        home / "workspace/.claude/agents/reviewer.md",
        home / "home/.claude/agents/reviewer.md",
    ]
    for path in places:
        write(path, "reviewer", str(path))
    trusted = [places[0], places[2]]
    table = {"reviewer": {"description": "D."}}
    tables = [TypeTables("the caller", "embedded", table), TypeTables("/w/haft.toml", "workspace", table)]
    users = TypeTables("/u/haft.toml", "user", table)
    order = ["the caller", "/w/haft.toml", str(places[0]), "/u/haft.toml", *map(str, places[1:])]
    found = types(home, [*tables, users], trusted)
    listed = [one for one in found.listed() if one.name == "reviewer"]
    assert [one.origin for one in listed] == order
    assert [one.state for one in listed] == ["ready", *["hidden"] * 6]
    assert listed[3].problem == "the caller has a type of this name, which counts"
    for number in range(3):
        counts = types(home, [*tables, users][number:], trusted).named("reviewer").origin
        assert counts == [order[0], order[1], order[2]][number]
    for number, path in enumerate(places):
        assert types(home, (), trusted).named("reviewer").prompt == str(path)
        path.unlink()
        trusted = [each for each in trusted if each.exists()]
        assert number == 3 or "reviewer" in types(home).names()


def test_a_file_of_the_workspace_counts_only_with_trust_in_its_bytes(home):
    own = write(home / "workspace/.agents/agents/helper.md", "helper", "The workspace's.")
    mine = write(home / "home/.claude/agents/helper.md", "helper", "Mine.")
    assert states(types(home))["helper", "agents"] == "ready"
    assert types(home).named("helper").prompt == "Mine.", "a file without trust hides nothing"
    assert [one.inside for one in types(home).waiting_files()] == [".agents/agents/helper.md"]
    trusting = types(home, (), [own])
    assert trusting.named("helper").prompt == "The workspace's." and trusting.waiting_files() == []
    own.write_text(own.read_text() + "And more.\n")
    assert trusting.named("helper").prompt == "Mine."
    mine.unlink()
    with pytest.raises(BadUsage, match="nobody trusts it yet"):
        trusting.named("helper")


def test_links_do_not_lead_around_trust_or_out_of_the_workspace(home):
    secret = write(home / "home/secret.md", "secret", "The user's secret.")
    folder = home / "workspace/.agents/agents"
    folder.mkdir(parents=True)
    (folder / "secret.md").symlink_to(secret)
    (folder / "pipe.md").parent.mkdir(exist_ok=True)
    os.mkfifo(folder / "pipe.md")
    own = write(home / "workspace/docs/inner.md", "inner")
    mine = home / "home/.config/agents/agents"
    mine.mkdir(parents=True)
    (mine / "inner.md").symlink_to(own)
    (mine / "linked.md").symlink_to(write(home / "home/dotfiles/linked.md", "linked"))
    found = {one.name: one for one in types(home).listed()}
    assert found["secret"].state == "broken" and "cannot be read" in found["secret"].problem
    assert found["pipe"].state == "broken"
    assert found["inner"].state == "untrusted", "who can write to the workspace can change it"
    assert found["linked"].state == "ready"
    assert types(home, (), [own]).named("inner").provenance == "workspace"


def test_a_home_that_is_the_workspace_has_no_files_that_count_without_trust(home):
    path = write(home / "workspace/.claude/agents/one.md", "one")
    other = write(home / "workspace/.config/agents/agents/two.md", "two")
    found = AgentTypes(str(home / "workspace"), (), dict, {"HOME": str(home / "workspace")})
    assert {one.origin: one.state for one in found.listed() if one.origin} == {
        str(path): "untrusted",
        str(other): "untrusted",
    }


def test_a_broken_file_hides_no_other_and_builtin_types_are_never_displaced(home):
    folder = home / "home/.claude/agents"
    write(folder / "a.md", "explore")
    (folder / "b.md").write_text("nothing")
    write(folder / "c.md", "good")
    table = {"work": {"description": "D."}, "odd": 3, "Bad Name": {"description": "D."}, "named": {"name": "x"}}
    found = types(home, [TypeTables("/u/haft.toml", "user", table)])
    broken = {one.name: one.problem for one in found.listed() if one.state == "broken"}
    assert broken["a"].startswith("`explore` is a built-in type") and broken["work"].startswith("`work` is a built-in")
    assert broken["b"].startswith("it has no front matter") and broken["odd"] == "it is not a table"
    assert broken["named"].startswith("its name is the name of its table") and "Bad Name" in broken
    assert [one.name for one in found.usable()] == ["good", "explore", "work"]
    assert found.named("work").provenance == "builtin"


def test_an_unknown_name_is_answered_with_the_near_miss(home):
    with pytest.raises(BadUsage, match="no type of sub-agent called `explroe`") as caught:
        types(home).named("explroe")
    assert caught.value.hint == "did you mean `explore`?"
    with pytest.raises(BadUsage) as caught:
        types(home).named("zzz")
    assert caught.value.hint == "the types are explore, work"


def test_types_of_all_configuration_files_count_together(home, monkeypatch):
    monkeypatch.setenv("HOME", str(home / "home"))
    env = {"HOME": str(home / "home"), "XDG_CONFIG_HOME": str(home / "home/.config"), "KIND": "fast"}
    workspace, state = str(home / "workspace"), str(home / "state")
    (home / "home/.config/haft").mkdir(parents=True)
    (home / "home/.config/haft/haft.toml").write_text(
        '[subagents]\nmodel = "a:b"\ntokens = 5000\n[subagents.models]\nopus = "a:opus"\n'
        '[subagents.types.mine]\ndescription = "Mine."\nmodel = "${env:KIND}"\nlimits = {cost = 0.5}\n'
        '[subagents.types.lost]\ndescription = "Needs ${env:NOTHING}"\n'
    )
    (home / "workspace/haft.toml").write_text(
        "[subagents]\nenabled = true\ntokens = 4000\ncycles = 99\ncost = 1\n"
        '[subagents.models]\nfast = "a:fast"\n[subagents.types.theirs]\ndescription = "Theirs."\nprompt = "P."\n'
    )

    passed = {"subagents.types": {"x": {"description": "X."}}}

    def listed(*, trusted):
        config = configured(workspace, workspace_config(workspace), env, passed, trusted=trusted)
        found = find_agent_types(workspace, state, config, env)
        return config, {one.name: one for one in found.listed()}

    config, found = listed(trusted=False)
    assert {name: (one.state, one.provenance) for name, one in found.items() if one.provenance != "builtin"} == {
        "x": ("ready", "embedded"),
        "mine": ("ready", "user"),
        "theirs": ("untrusted", "workspace"),
    }
    assert (config.values["subagents.tokens"], config.values["subagents.cycles"]) == (4000, 10), (
        "it may lower, not raise"
    )
    assert config.values["subagents.cost"] == 1 and config.values["subagents.enabled"] is False
    assert config.values["subagents.models"] == {"opus": "a:opus"}
    mine = described_type(found["mine"].type, config, [])
    assert (mine.model.name, mine.budget["cost"], mine.budget["tokens"]) == ("a:b", 0.5, 4000)

    config, found = listed(trusted=True)
    assert found["theirs"].state == "ready" and found["theirs"].type.prompt == "P."
    assert config.values["subagents.models"] == {"opus": "a:opus", "fast": "a:fast"}
    assert described_type(found["mine"].type, config, []).model.name == "a:fast"
    assert budget_of(found["theirs"].type, config)["cycles"] == 99
    assert set(config.values["subagents.types"]) == {"mine", "theirs", "x"}


def test_nothing_is_read_before_somebody_asks(home):
    write(home / "workspace/.agents/agents/one.md", "one").chmod(0)
    config = load_config(None, {})
    found = find_agent_types(str(home / "workspace"), str(home / "state"), config, {"HOME": str(home / "home")})
    assert found.names() == ["explore", "work", "one"], "names need no reading"


def test_trust_counts_at_once_and_ends_at_once(home):
    path = write(home / "workspace/.agents/agents/one.md", "one")
    workspace, state = str(home / "workspace"), str(home / "state")
    found = find_agent_types(workspace, state, load_config(None, {}), {"HOME": str(home / "home")})
    with pytest.raises(BadUsage, match="nobody trusts it yet"):
        found.named("one")
    trust(state, workspace, None, "person", agents={".agents/agents/one.md": digest_of(path.read_bytes())})
    assert found.named("one").origin == str(path)
    revoke(state, workspace)
    with pytest.raises(BadUsage, match="nobody trusts it yet"):
        found.named("one")
