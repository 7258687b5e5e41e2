"""Failures are kept, and looked at again when something changed that they may come from."""

import asyncio
import json
import os

import pytest

from haft import ToolService
from haft.sources.dependency_state import DEPENDENCY_FILES, dependency_state
from haft.surfaces.cli.main import run

NEEDY = """#!/bin/sh
here=$(dirname "$(dirname "$0")")
[ -e "$here/node_modules/dependency" ] || { echo "Cannot find package 'dependency'" >&2; exit 1; }
[ "$TOOLBOX_ACTION" = describe ] && printf 'name: needy\\ndescription: Needs a library.\\n'
[ "$TOOLBOX_ACTION" = execute ] && echo done
exit 0
"""


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A package with a tool that cannot be described yet."""
    place = tmp_path / "package"
    (place / "tools").mkdir(parents=True)
    (place / "package.json").write_text("{}")
    (tmp_path / "workspace").mkdir()
    tool = place / "tools/needy"
    tool.write_text(NEEDY)
    tool.chmod(0o755)
    monkeypatch.setenv("AMP_TOOLBOX", str(place / "tools"))
    monkeypatch.setenv("HOME", str(tmp_path / "person"))
    return place


class Counting:
    """Counts how often tools are described."""

    def __init__(self, monkeypatch):
        self.times = 0
        from haft.sources import brief_run

        real = brief_run.run_briefly

        async def run_briefly(*arguments, **named):
            self.times += 1
            return await real(*arguments, **named)

        monkeypatch.setattr(brief_run, "run_briefly", run_briefly)


@pytest.fixture
def counting(monkeypatch):
    return Counting(monkeypatch)


def opened(package, body, **options):
    async def main():
        place = package.parent
        async with ToolService.open(
            place / "workspace", home=place / "state", installed=False, approver=lambda _request: True, **options
        ) as service:
            return await body(service)

    return asyncio.run(main())


def state(package, **options):
    async def body(service):
        (one,) = [one for one in service.tools(all=True) if one.spec.name == "tb__needy"]
        return one.state

    return opened(package, body, **options)


def test_a_failure_is_asked_about_once_while_nothing_changes(package, counting):
    assert [state(package) for _ in range(3)] == ["broken"] * 3
    assert counting.times == 1


@pytest.mark.parametrize("how", ["installed", "lock file", "elsewhere"])
def test_a_failure_is_looked_at_again_when_its_libraries_changed(how, package, counting):
    assert state(package) == "broken"
    if how == "installed":
        (package / "node_modules/dependency").mkdir(parents=True)
    elif how == "lock file":
        (package / "package-lock.json").write_text("{}")
    else:
        (package / "notes.txt").write_text("x")
    assert state(package) == ("ready" if how == "installed" else "broken")
    assert counting.times == (1 if how == "elsewhere" else 2)


@pytest.mark.parametrize("name", DEPENDENCY_FILES)
def test_everything_that_says_what_a_package_needs_is_seen(name, package):
    tool = package / "tools/needy"
    before = dependency_state(str(tool))
    (package / name).parent.mkdir(exist_ok=True)
    (package / name).write_text("x")
    assert dependency_state(str(tool)) != before


def test_what_is_installed_into_an_environment_is_seen(package):
    library = package / ".venv/lib/python3.12/site-packages"
    library.mkdir(parents=True)
    before = dependency_state(str(package / "tools/needy"))
    os.utime(library, ns=(1, 1))
    assert dependency_state(str(package / "tools/needy")) != before


def test_a_failure_is_looked_at_again_when_it_would_be_confined_otherwise(package, counting):
    assert state(package) == "broken"
    state(package, settings={"sandbox.mode": "off"})
    assert counting.times == 2
    rule = {"tool": "tb__needy", "action": "allow", "grant": {"read": [str(package)]}}
    state(package, settings={"permissions": [rule]})
    assert counting.times == 3


def test_a_broken_tool_that_is_called_by_its_name_is_always_looked_at_again(package, counting):
    """Whatever it was that mended it: here nothing that anyone could see."""
    (package / "node_modules").mkdir()
    when = os.stat(package / "node_modules")

    async def body(service):
        first = await service.call("tb__needy")
        asked = counting.times
        (package / "node_modules/dependency").mkdir()
        os.utime(package / "node_modules", ns=(when.st_atime_ns, when.st_mtime_ns))
        return first, asked, await service.call("tb__needy")

    assert state(package) == "broken"
    first, asked, second = opened(package, body)
    assert first.error.code == "bad-config" and "Cannot find package" in first.error.message
    assert asked == 2
    assert (second.status, second.output) == ("done", "done\n")


def test_a_tool_that_broke_keeps_the_name_that_it_had(package):
    tool = package / "tools/needy"
    tool.rename(package / "tools/another-file")
    (package / "node_modules/dependency").mkdir(parents=True)
    assert state(package) == "ready"
    (package / "node_modules/dependency").rmdir()
    (package / "tools/another-file").write_text(NEEDY + "# changed\n")
    assert state(package) == "broken"

    async def body(service):
        return await service.call("tb__needy")

    assert "it is broken" in opened(package, body).error.message


def test_an_unknown_name_is_answered_with_the_broken_tool_that_was_meant(package):
    async def body(service):
        return [await service.call(name) for name in ("tb__needy", "needy", "tb__neddy", "something_else")]

    exact, bare, near, other = (outcome.error for outcome in opened(package, body))
    assert exact.code == "bad-config" and "it is broken: it exited 1" in exact.message
    for each in (bare, near):
        assert each.code == "unknown-tool"
        assert "`tb__needy` cannot be called: it is broken" in each.message and "Cannot find package" in each.message
    assert other.message == "there is no tool called `something_else`"


def test_an_unknown_name_is_answered_with_the_broken_plugin_that_may_have_brought_it(package):
    plugin = package / "greetings.py"
    plugin.write_text("import a_library_that_is_not_there\n")

    async def body(service):
        return (await service.call("say_hello")).error

    found = opened(package, body, settings={"plugins": [f"path:{plugin}"]})
    assert found.code == "unknown-tool" and "plugin" in found.hint and "a_library_that_is_not_there" in found.hint


TYPED = """#!/bin/sh
[ -e "$(dirname "$(dirname "$0")")/mended" ] || { echo "it is out of order" >&2; exit 1; }
[ "$TOOLBOX_ACTION" = execute ] && exec cat
echo '{"name": "needy", "args": {"count": ["integer", "how many"], "all": ["array", "which"]}}'
"""


def test_on_the_command_line_a_broken_tool_says_why_and_a_mended_one_gets_its_arguments(package, monkeypatch, capsys):
    (package / "tools/needy").write_text(TYPED)
    monkeypatch.setenv("HAFT_HOME", str(package.parent / "state"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(package.parent / "config"))
    monkeypatch.chdir(package.parent / "workspace")
    words = ["tools", "use", "tb__needy", "--count", "3", "--all", "a", "--approve", "--only", "output"]
    assert run(words) == 2
    said = capsys.readouterr().err
    assert "it is broken" in said and "it is out of order" in said
    (package / "mended").touch()
    assert run(words) == 0
    assert json.loads(capsys.readouterr().out) == {"count": 3, "all": ["a"]}
