"""Tools that lie on disk, in a service that is open: found, changed, removed, brought by skills."""

import asyncio
import functools
import os
import re

import pytest

from haft import ToolService
from haft.contracts import BadUsage
from haft.sources.brief_run import DESCRIBE_SECONDS
from haft.sources.description_cache import FAIR_SECONDS

TOOL = """#!/bin/sh
case $TOOLBOX_ACTION in
describe) printf 'name: %s\\ndescription: %s\\nword: string? any word\\n' {name} {about} ;;
execute) cat; echo {says} ;;
esac
"""

SKILL = """---
name: {name}
description: Teaches {name}. Use it when you test {name}.
---

# {name}

Do it well.
"""


def in_a_loop(test):
    @functools.wraps(test)
    def run(*arguments, **named):
        asyncio.run(test(*arguments, **named))

    return run


@pytest.fixture
def places(tmp_path, monkeypatch):
    """A workspace, a state home, and a home directory with nothing in it."""
    workspace, home, own = tmp_path / "workspace", tmp_path / "state", tmp_path / "own"
    for place in (workspace, own):
        place.mkdir()
    monkeypatch.setenv("HOME", str(own))
    monkeypatch.delenv("AMP_TOOLBOX", raising=False)
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    return workspace, home, own


def write(path, name="it", about="Says_a_word.", says="done"):
    path.parent.mkdir(parents=True, exist_ok=True)
    # Beside and renamed: whoever looks meanwhile sees one or the other.
    fresh = path.with_name(f".{path.name}.new")
    fresh.write_text(TOOL.format(name=name, about=about, says=says))
    fresh.chmod(0o755)
    fresh.rename(path)
    return path


def skill(folder, name):
    folder = folder / name
    (folder / "tools").mkdir(parents=True)
    (folder / "SKILL.md").write_text(SKILL.format(name=name))
    return folder


def opened(places, approver=None, **options):
    workspace, home, _own = places

    async def yes(_request):
        return True

    return ToolService.open(workspace, home=home, approver=approver or yes, installed=False, **options)


def boxed(service, **options):
    """The toolbox tools of a service, by name, with their states."""
    return {one.spec.name: one.state for one in service.tools(**options) if one.spec.kind == "amp-toolbox"}


async def until(service, wanted):
    """Wait until the tools that can be called are these."""
    async with asyncio.timeout(60):
        async for found in service.watch_tools():
            if {one.spec.name for one in found if one.spec.kind == "amp-toolbox"} == wanted:
                return


@in_a_loop
async def test_tools_that_come_change_and_go_are_seen_without_a_restart(places):
    directory = places[0] / ".agents/tools"
    async with opened(places) as service:
        assert boxed(service) == {}
        write(directory / "a", "first")
        await until(service, {"tb__first"})
        write(directory / "a", "second")
        await until(service, {"tb__second"})
        write(directory / "b", "third")
        await until(service, {"tb__second", "tb__third"})
        (directory / "a").unlink()
        await until(service, {"tb__third"})


@in_a_loop
async def test_a_tool_that_was_just_made_or_changed_can_be_called_at_once(places):
    async with opened(places) as service:
        file = write(places[0] / ".agents/tools/a", says="one")
        assert (await service.call("tb__it")).output == "one\n"
        write(file, says="two")
        assert (await service.call("tb__it")).output == "two\n"
        file.unlink()
        outcome = await service.call("tb__it")
        assert outcome.error.code == "unknown-tool"


@in_a_loop
async def test_a_tool_that_changes_after_it_was_agreed_to_asks_again_and_shows_what_changed(places):
    asked = []

    async def approver(request):
        asked.append(request)
        return True

    rule = {"tool": "tb__it", "action": "allow"}
    file = write(places[0] / ".agents/tools/a", says="harmless")
    async with opened(places, approver, settings={"permissions": [rule]}) as service:
        assert (await service.call("tb__it")).status == "done"
        assert len(asked) == 1, "nobody has approved the workspace's own tool before"
        assert (await service.call("tb__it")).status == "done"
        assert len(asked) == 1
        write(file, says="harmful")
        assert (await service.call("tb__it")).output == "harmful\n"
        assert len(asked) == 2
        assert "-execute) cat; echo harmless" in asked[1].definition_diff
        assert "+execute) cat; echo harmful" in asked[1].definition_diff


@in_a_loop
async def test_the_file_is_looked_at_once_more_before_it_runs(places):
    file = write(places[0] / ".agents/tools/a", says="harmless")

    async def approver(_request):
        write(file, says="harmful")
        return True

    async with opened(places, approver) as service:
        outcome = await service.call("tb__it")
    assert outcome.status != "done" and "harmful" not in outcome.output


@in_a_loop
async def test_directories_count_in_their_order_and_the_loser_is_shown_with_both_paths(places, tmp_path, monkeypatch):
    workspace, _home, own = places
    winner = write(tmp_path / "one/x", says="one")
    loser = write(tmp_path / "two/y", says="two")
    write(own / ".config/amp/tools/z", "own")
    write(workspace / ".agents/tools/w", "project")
    monkeypatch.setenv("AMP_TOOLBOX", f"{tmp_path / 'one'}:{tmp_path / 'two'}")
    async with opened(places) as service:
        assert boxed(service) == {"tb__it": "ready", "tb__project": "ready"}, "the user's folder only where it is unset"
        (duplicate,) = [one for one in service.tools(all=True) if one.state == "duplicate"]
        assert str(winner) in duplicate.reason and str(loser) in duplicate.reason
        assert (await service.call("tb__it")).output == "one\n"
    monkeypatch.setenv("AMP_TOOLBOX", "")
    async with opened(places) as service:
        assert boxed(service) == {"tb__project": "ready"}, "set and empty means none"
    monkeypatch.delenv("AMP_TOOLBOX")
    async with opened(places) as service:
        assert boxed(service) == {"tb__own": "ready", "tb__project": "ready"}


@in_a_loop
async def test_a_tool_of_the_users_folder_runs_though_the_home_is_hidden(places):
    own = places[2]
    write(own / ".config/amp/tools/z", "own", says="$(cat $(dirname $0)/.beside)")
    (own / ".config/amp/tools/.beside").write_text("seen\n")
    (own / "secret").write_text("secret\n")
    async with opened(places) as service:
        assert (await service.call("tb__own")).output == "seen\n"


@in_a_loop
async def test_configured_directories_are_relative_to_the_file_that_names_them(places):
    workspace, _home, own = places
    write(workspace / "more/tools/a", "inside")
    write(own / ".config/haft/boxes/b", "users")
    (own / ".config/haft/haft.toml").write_text('[toolbox]\npaths = ["boxes"]\n')
    (workspace / "haft.toml").write_text('[toolbox]\npaths = ["more/tools", "/usr/bin", "../own"]\n')
    async with opened(places) as service:
        assert boxed(service) == {"tb__inside": "ready", "tb__users": "ready"}
        (ignored,) = service.config.ignored
        assert ignored.value == ["/usr/bin", "../own"], "a workspace names its own directories, and no others"


@in_a_loop
async def test_a_workspace_makes_no_tools_of_files_that_are_not_its_own(places):
    workspace, _home, own = places
    write(own / "private/x", "private")
    (workspace / ".agents/tools").mkdir(parents=True)
    (workspace / ".agents/tools/link").symlink_to(own / "private/x")
    async with opened(places) as service:
        (broken,) = [one for one in service.tools(all=True) if one.spec.kind == "amp-toolbox"]
        assert broken.state == "broken" and "leads out of the workspace" in broken.reason


@in_a_loop
async def test_bundled_tools_join_with_their_skill_in_its_thread_and_leave_with_it(places):
    folder = skill(places[0] / ".agents/skills", "testing")
    write(folder / "tools/x", "bundled")
    async with opened(places) as service:
        assert boxed(service) == {}
        assert boxed(service, all=True) == {"tb__x": "inactive"}, "it was not even described"
        outcome = await service.call("tb__bundled")
        assert outcome.status == "error"
        outcome = await service.call("skill", {"name": "testing"})
        assert "Do it well." in outcome.output and "`tb__bundled`" in outcome.output
        assert boxed(service) == {"tb__bundled": "ready"}, "it is there as soon as the skill was read"
        assert (await service.call("tb__bundled")).output == "done\n"
        assert boxed(service, thread="T-another") == {}
        outcome = await service.call("tb__bundled", thread="T-another")
        assert outcome.error.code == "bad-config" and "haft skills activate testing" in outcome.error.message
        service.discovery.activations.deactivate(str(folder), service.thread)
        outcome = await service.call("tb__bundled")
        assert outcome.status == "error"
        assert boxed(service) == {}


@in_a_loop
async def test_a_skill_that_is_active_in_the_workspace_brings_its_tools_to_every_thread(places):
    folder = skill(places[2] / ".claude/skills", "testing")
    write(folder / "toolbox/x", "bundled", says="$(cat $(dirname $0)/../words.txt)")
    (folder / "words.txt").write_text("words\n")
    async with opened(places) as service:
        service.discovery.activations.activate(str(folder), None)
        assert (await service.call("tb__bundled", thread="T-any")).output == "words\n", "it sees its skill's files"


@in_a_loop
async def test_the_tool_that_reads_skills_lists_them_and_cannot_be_displaced(places):
    from haft import tool

    @tool(name="skill")
    def another(name: str) -> str:
        """Not it."""
        return name

    skill(places[0] / ".agents/skills", "testing")
    async with opened(places, tools=[another]) as service:
        (listing,) = [one for one in service.tools() if one.spec.name == "skill"]
        assert listing.spec.kind == "builtin" and "python__skill" in [one.spec.name for one in service.tools()]
        assert "- testing: Teaches testing." in listing.spec.description
        assert "haft-tool-creator" in listing.spec.description
        outcome = await service.call("skill", {"name": "testin"})
        assert outcome.error.code == "invalid-arguments" and "did you mean `testing`?" in outcome.error.hint


@in_a_loop
async def test_a_tool_at_a_path_is_taken_in_and_one_that_is_loaded_is_found(places, tmp_path):
    elsewhere = write(tmp_path / "elsewhere/x", "elsewhere")
    loaded = write(places[0] / ".agents/tools/a")
    async with opened(places) as service:
        listing = await service.load(str(elsewhere))
        assert listing.spec.name == "tb__elsewhere"
        assert (await service.call("tb__elsewhere")).output == "done\n"
        assert (await service.load(str(loaded))).spec.name == "tb__it"
        for path, words in (
            (tmp_path / "none", "there is no file"),
            (tmp_path, "is a directory"),
            (tmp_path / "text", "chmod \\+x"),
        ):
            if path.name == "text":
                path.write_text("x")
            with pytest.raises(BadUsage, match=words):
                await service.load(str(path))


@in_a_loop
async def test_an_answer_of_a_tool_that_hung_is_remembered_and_others_are_not_kept_waiting(places):
    hung = places[0] / ".agents/tools/hung"
    write(places[0] / ".agents/tools/a")
    hung.write_text("#!/bin/sh\nsleep 100\n")
    hung.chmod(0o755)
    async with opened(places) as service:
        assert boxed(service, all=True) == {"tb__it": "ready", "tb__hung": "broken"}
    async with opened(places) as service:
        assert not service._host._is_incomplete, "nothing has to be asked again"
        (broken,) = [one for one in service.tools(all=True) if one.state == "broken"]
        # What is left of the five seconds when it is asked: less on a busy machine, and never so little that the answer
        # would not have been kept.
        (seconds,) = re.findall(r"did not describe itself within ([\d.]+) s", broken.reason)
        assert FAIR_SECONDS <= float(seconds) <= DESCRIBE_SECONDS
        assert f"haft tools check {hung}" in broken.reason


@in_a_loop
async def test_agents_make_check_and_use_a_tool_by_what_the_skill_teaches(places):
    """A scripted agent: reads the skill, makes a tool by its words, has it checked, and uses it."""
    workspace = places[0]
    async with opened(places) as service:
        taught = (await service.call("skill", {"name": "haft-tool-creator"})).output
        assert "haft tools make" in taught and "haft tools check" in taught and ".agents/tools" in taught
        script = TOOL.format(name="count_words", about="x", says="counted")
        outcome = await service.call(
            "write_file", {"path": ".agents/tools/count_words", "content": script}, grants={"write": [".agents/**"]}
        )
        if outcome.status == "error" and outcome.changes.state == "held":
            outcome = await service.apply(outcome.run_id)
        assert outcome.status == "done", outcome.error
        outcome = await service.call(
            "shell", {"command": "chmod +x .agents/tools/count_words"}, grants={"write": [".agents/**"]}
        )
        if outcome.status == "error" and outcome.changes.state == "held":
            outcome = await service.apply(outcome.run_id)
        assert outcome.status == "done", (outcome.error, outcome.output)
        assert os.access(workspace / ".agents/tools/count_words", os.X_OK)
        outcome = await service.call("tb__count_words", {"word": "a: b"})
        assert outcome.output == "word: a: b\ncounted\n"


@in_a_loop
async def test_without_a_sandbox_nothing_that_a_workspace_brought_runs_because_tools_are_listed(places):
    marks = places[0].parent / "marks"
    marks.mkdir()
    evil = places[0] / ".agents/tools/evil"
    evil.parent.mkdir(parents=True)
    evil.write_text(f"#!/bin/sh\ntouch {marks}/ran\nprintf 'name: evil\\ndescription: d\\n'\n")
    evil.chmod(0o755)
    write(places[2] / ".config/amp/tools/own", "own")
    async with opened(places, settings={"sandbox.mode": "off"}) as service:
        assert boxed(service, all=True) == {"tb__evil": "broken", "tb__own": "ready"}
        (broken,) = [one for one in service.tools(all=True) if one.state == "broken"]
        assert "this machine has no sandbox to run it in" in broken.reason
    assert not list(marks.iterdir())


@in_a_loop
async def test_a_tool_by_its_path_is_never_another_tool_of_its_name(places, tmp_path):
    long = "x" * 55
    write(places[0] / ".agents/tools/theirs", long, says="THEIRS")
    mine = write(tmp_path / "mine", long, says="mine")
    async with opened(places) as service:
        with pytest.raises(BadUsage, match="cannot be used"):
            await service.load(str(mine))


@in_a_loop
async def test_a_path_can_be_loaded_again_and_again_as_it_changes(places, tmp_path):
    mine = write(tmp_path / "mine", "mine", says="one")
    async with opened(places) as service:
        for says in ("one", "two", "three"):
            write(mine, "mine", says=says)
            listing = await service.load(str(mine))
            assert (listing.spec.name, (await service.call("tb__mine")).output) == ("tb__mine", f"{says}\n")


@in_a_loop
async def test_what_a_tool_says_in_its_meta_changes_nothing_about_it(places):
    file = places[0] / ".agents/tools/a"
    file.parent.mkdir(parents=True)
    meta = '{"skill": ["x"], "timeoutArgument": "amount", "plugin": 1, "toolbox": 2}'
    file.write_text(
        "#!/bin/sh\n[ $TOOLBOX_ACTION = execute ] && exec cat\n"
        f'echo \'{{"name": "a", "description": "d", "args": {{"amount": ["number", "n"]}}, "meta": {meta}}}\'\n'
    )
    file.chmod(0o755)
    async with opened(places) as service:
        (listing,) = [one for one in service.tools() if one.spec.name == "tb__a"]
        assert (
            set(listing.spec.meta) == {"toolbox", "said"} and listing.spec.meta["said"]["timeoutArgument"] == "amount"
        )
        outcome = await service.call("tb__a", {"amount": 0.001})
        assert outcome.status == "done", "no deadline came of it"
