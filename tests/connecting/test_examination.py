"""How well an agent is connected."""

import os
import tomllib

import pytest

from haft.connecting import AGENTS, Launch, agent_named, examine
from haft.files import NAMES
from haft.values import replace as evolve


@pytest.fixture
def launch(home):
    """The words of a haft that exists."""
    start = home.path / "haft/surfaces/hook/start.py"
    start.parent.mkdir(parents=True)
    start.touch()
    program = home.path / "bin/haft"
    program.parent.mkdir()
    program.touch(0o755)
    hook = (os.path.realpath("/bin/sh"), "-I", "-S", str(start))
    return Launch((str(program), "serve", "mcp"), hook, shell="/state/hook/haft-shell")


def looked_at(home, name, launch, **options):
    return examine(agent_named(name), home.choice(**options), launch, home.env)


HOOKED = [name for name, agent in AGENTS.items() if agent.hooks is not None]


@pytest.mark.parametrize("name", HOOKED)
def test_what_connect_wrote_is_found_in_order(home, launch, name):
    assert not looked_at(home, name, launch).is_connected
    home.connect(name, launch, hooks=True)
    found = looked_at(home, name, launch)
    assert (found.server, found.hooks, found.problems) == ("ok", "ok", [])
    assert found.is_connected and "not covered" not in " ".join(found.coverage())


@pytest.mark.parametrize("name", HOOKED)
def test_another_version_of_haft_is_out_of_date(home, launch, name):
    home.connect(name, launch, hooks=True)
    other = Launch((*launch.server[:1], "serve", "mcp", "--lazy"), (*launch.hook[:2], *launch.hook[3:]))
    found = looked_at(home, name, other)
    assert (found.server, found.hooks) == ("outdated", "outdated")
    assert not any(problem.is_broken for problem in found.problems)
    home.connect(name, other, hooks=True)
    assert looked_at(home, name, other).problems == []


@pytest.mark.parametrize("name", [name for name in HOOKED if name != "opencode"])
def test_a_haft_that_is_gone_is_broken(home, launch, name):
    home.connect(name, launch, hooks=True)
    os.unlink(launch.server[0])
    os.unlink(launch.hook[-1])
    found = looked_at(home, name, launch)
    assert (found.server, found.hooks) == ("broken", "broken")
    assert all(f"haft connect {name}" in problem.hint for problem in found.problems)


def test_one_of_several_events_that_is_missing_is_out_of_date(home, launch):
    home.connect("claude-code", launch, hooks=True)
    path = home.path / ".claude/settings.json"
    path.write_text(path.read_text().replace('"PostToolUse"', '"Other"'))
    assert looked_at(home, "claude-code", launch).hooks == "outdated"


@pytest.mark.parametrize("name", ["opencode", "gemini"])
def test_a_missing_rule_for_hafts_program_is_out_of_date(home, launch, name):
    home.connect(name, evolve(launch, shell=None), hooks=True)
    found = looked_at(home, name, launch)
    assert found.hooks == "outdated" and "asks about haft's own program" in found.problems[0].detail
    home.connect(name, launch, hooks=True)
    assert looked_at(home, name, launch).problems == []
    home.connect(name, launch, hooks=True, replace=True)
    assert looked_at(home, name, launch).problems == [], "its shell is off"


def test_hooks_that_are_switched_off_are_broken(home, launch):
    for name, file, text in (
        ("claude-code", ".claude/settings.json", '{"disableAllHooks": true}'),
        ("gemini", ".gemini/settings.json", '{"hooksConfig": {"enabled": false}}'),
        ("codex", ".codex/config.toml", "[features]\nhooks = false\n"),
    ):
        home.write(file, text)
        home.connect(name, launch, hooks=True)
        found = looked_at(home, name, launch)
        assert found.hooks == "broken" and "switches all hooks off" in found.problems[0].detail


def test_hooks_that_codex_does_not_trust_are_broken(home, launch):
    home.connect("codex", launch, hooks=True)
    path = home.path / ".codex/config.toml"
    whole = path.read_text()
    path.write_text(whole.replace("sha256:", "sha256:0"))
    found = looked_at(home, "codex", launch)
    assert found.hooks == "broken" and "not trusted" in found.problems[0].detail
    path.write_text(f"{whole}enabled = true\n")
    assert tomllib.loads(path.read_text()) and looked_at(home, "codex", launch).hooks == "ok"
    path.write_text(f"{whole}enabled = false\n")
    assert looked_at(home, "codex", launch).hooks == "broken"


def test_tools_that_are_switched_off_are_seen(home, launch):
    for name, agent in AGENTS.items():
        if agent.replacing is not None:
            assert not looked_at(home, name, launch).replaced
            home.connect(name, launch, replace=True)
            assert looked_at(home, name, launch).replaced, name


def test_a_broken_file_is_a_problem_and_not_an_exception(home, launch):
    home.write(".claude.json", "{")
    home.write(".codex/config.toml", "x = ")
    for name in ("claude-code", "codex"):
        (problem,) = looked_at(home, name, launch).problems
        assert "is not valid" in problem.detail


def test_a_server_that_is_not_haft_does_not_count(home, launch):
    home.write(".cursor/mcp.json", '{"mcpServers": {"haft": {"command": "x"}}}')
    assert not looked_at(home, "cursor", launch).is_connected


@pytest.mark.parametrize("scope", ["user", "project"])
@pytest.mark.parametrize("name", AGENTS)
def test_every_file_has_a_name_that_is_protected(home, launch, name, scope):
    agent = AGENTS[name]
    options = {"project": scope == "project", "hooks": agent.hooks is not None, "replace": agent.replacing is not None}
    plan = home.connect(name, home.launch(project=scope == "project"), **options)
    top = home.path if scope == "user" else home.project
    for change in plan.changes:
        words = os.path.relpath(change.path, top).lower().split("/")
        assert any("/".join(words[: count + 1]) in NAMES for count in range(len(words))), change.path


def program_of(home, name, path, version=None, package="@anthropic-ai/claude-code"):
    """Install an agent below the home directory, linked from a folder on PATH."""
    program = home.write(path, "#!/bin/sh\nexit 1\n")
    program.chmod(0o755)
    if version is not None:
        (program.parent / "package.json").write_text(f'{{"name": "{package}", "version": "{version}"}}')
    link = home.path / "programs" / name
    link.parent.mkdir(exist_ok=True)
    link.symlink_to(program)
    home.env["PATH"] = f"{link.parent}:{home.env['PATH']}"


@pytest.mark.parametrize(
    ("path", "version"),
    [
        ("lib/node_modules/@anthropic-ai/claude-code/cli.js", "2.1.197"),
        (".local/share/claude/versions/2.1.197", None),
        ("Caskroom/claude-code/2.1.197/claude", None),
    ],
)
def test_a_claude_code_that_ignores_the_denial_of_failing_hooks_is_told(home, launch, path, version):
    program_of(home, "claude", path, version)
    home.connect("claude-code", launch)
    assert looked_at(home, "claude-code", launch).problems == []
    home.connect("claude-code", launch, hooks=True)
    found = looked_at(home, "claude-code", launch)
    (problem,) = found.problems
    sentence = "Claude Code 2.1.197 ignores `onFailure`: if haft's hook fails to start, calls pass"
    assert problem.detail == sentence and sentence in found.coverage() and not problem.is_broken
    assert problem.hint == "update Claude Code to 2.1.295 or newer"


@pytest.mark.parametrize("version", ["2.1.295", "2.2.0", "3.0.0-beta.1"])
def test_a_new_claude_code_has_no_problem(home, launch, version):
    package = "@anthropic-ai/claude-code-linux-x64"
    program_of(home, "claude", "lib/node_modules/@anthropic-ai/claude-code-linux-x64/claude", version, package)
    home.connect("claude-code", launch, hooks=True)
    found = looked_at(home, "claude-code", launch)
    assert found.problems == [] and found.version == version.split("-")[0]
    assert "onFailure" not in " ".join(found.coverage()) and "2.1.295" not in " ".join(found.coverage())


@pytest.mark.parametrize("name", ["package of another program", None])
def test_a_version_that_cannot_be_seen_is_said_to_matter(home, launch, name):
    program_of(home, "claude", "bin/1.2.3/claude", None if name is None else "1.0.0", name)
    home.connect("claude-code", launch, hooks=True)
    found = looked_at(home, "claude-code", launch)
    assert found.version is None and found.problems == []
    assert "unless Claude Code is 2.1.295 or newer" in " ".join(found.coverage())
