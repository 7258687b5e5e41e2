"""A format that is defined here and joins by one line of the table: everything that haft does with tools, it does with
its tools. Nothing else of haft knows it."""

import asyncio
import json
import logging
import os

import pytest

from haft import ToolService
from haft.contracts import Answer, BadUsage, Command, DiscoveredTool, ToolFailed, ToolSpec
from haft.sources.checks.codes.model import Code
from haft.sources.checks.findings import Finding, Report
from haft.sources.identity import identity_at
from haft.sources.port import SourceHost, ToolSource
from haft.surfaces.cli.main import run
from haft.toolsets import formats

RUDE = Code("toy-rude", "warning", "It is rude.", "Nobody likes to play with it.", "Go!", "Hi")


class Toy:
    """Says its word."""

    def __init__(self, spec, says):
        self.spec = spec
        self._says = says

    async def preprocess(self, arguments, context):
        return arguments

    async def invoke(self, arguments, context):
        end = await context.launcher.run(Command(["echo", self._says, arguments.get("to", "you")]), context)
        return Answer(exit_code=end.code)


class Toys(ToolSource):
    """`NAME.toy` in the folder `toys` of a workspace: JSON with what it says."""

    name = "toy"
    codes = (RUDE,)

    def __init__(self, host: SourceHost):
        self._folder = os.path.join(host.workspace, "toys")
        self._seen = {}
        self.is_closed = False
        opened.append(self)

    def find(self):
        names = sorted(os.listdir(self._folder)) if os.path.isdir(self._folder) else []
        paths = [os.path.join(self._folder, name) for name in names if name.endswith(".toy")]
        self._seen = {path: identity_at(path) for path in paths}
        return [self._read(path) for path in paths]

    def _read(self, path):
        spec = ToolSpec(
            name=os.path.basename(path).removesuffix(".toy"),
            kind="toy",
            description="",
            input_schema={"type": "object", "properties": {"to": {"type": "string", "description": "Whom to greet."}}},
            origin=path,
            provenance="workspace",
            hosting="per-call",
            files=(path,),
        )
        try:
            with open(path) as file:
                says = json.load(file)["says"]
        except (ValueError, KeyError) as error:
            return DiscoveredTool(spec, None, "broken", f"it says nothing: {error!r}")
        spec = ToolSpec(**{each: getattr(spec, each) for each in spec.__slots__} | {"description": f"Says {says}."})
        return DiscoveredTool(spec, Toy(spec, says))

    def places(self):
        return [self._folder]

    def is_current(self, spec):
        return self._seen.get(spec.origin) == identity_at(spec.origin)

    def recognizes(self, path):
        return path.endswith(".toy")

    async def load(self, path, launcher, grants):
        found = self._read(path)
        if found.tool is None:
            raise BadUsage(f"{path} is no toy: {found.reason}")
        return found

    def is_checked_at_origin(self, spec):
        return os.path.isfile(spec.origin)

    async def check(self, target, launcher, reserved):
        found = self._read(target.path)
        if found.tool is None:
            return [Report(target.path, "toy", None, [Finding("describe-form", found.reason)])]
        rude = [Finding("toy-rude", "it shouts", "be kind", explained=RUDE)] if "!" in found.spec.description else []
        return [Report(target.path, "toy", found.spec.name, rude)]

    def cure(self, spec):
        return f"play with something other than {spec.origin}"

    async def close(self):
        self.is_closed = True


opened: list[Toys] = []


@pytest.fixture
def toys(tmp_path, monkeypatch):
    """A workspace with a friendly and a rude toy, and one that is broken; and the format, as one line."""
    opened.clear()
    workspace = tmp_path / "workspace"
    (workspace / "toys").mkdir(parents=True)
    (workspace / ".git").mkdir()
    monkeypatch.chdir(workspace)
    for name in ("HOME", "XDG_CONFIG_HOME", "HAFT_HOME"):
        monkeypatch.setenv(name, str(tmp_path / name))
    monkeypatch.setenv("AMP_TOOLBOX", "")
    log = logging.getLogger("haft")  # the command takes it over, as it may: its process is its own
    monkeypatch.setattr(log, "handlers", list(log.handlers))
    monkeypatch.setattr(log, "propagate", log.propagate)
    monkeypatch.setattr(formats, "FORMATS", (*formats.FORMATS, formats.Format("toy", Toys)))
    (workspace / "toys/bear.toy").write_text('{"says": "hello"}')
    (workspace / "toys/robot.toy").write_text('{"says": "EXTERMINATE!"}')
    (workspace / "toys/torn.toy").write_text("{")
    return workspace / "toys"


@pytest.fixture
def haft(toys, capsys):
    def call(*words):
        code = run(words)
        said = capsys.readouterr()
        return code, said.out, said.err

    return call


def test_its_tools_are_listed_and_shown_with_what_is_broken(haft):
    code, out, _err = haft("tools", "list", "--all", "--json")
    listed = {one["name"]: one["state"] for one in json.loads(out) if one["kind"] == "toy"}
    assert (code, listed) == (0, {"bear": "ready", "robot": "ready", "torn": "broken"})
    assert [line.split()[0] for line in haft("tools", "list", "--source", "toy")[1].splitlines()] == ["bear", "robot"]
    assert "Says hello." in haft("tools", "show", "bear")[1]


def test_they_are_found_by_their_words(haft):
    code, out, _err = haft("tools", "search", "exterminate", "--json")
    assert code == 0 and [one["name"] for one in json.loads(out)] == ["robot"]


@pytest.mark.parametrize("words", [(), ("toys",), ("toys/bear.toy", "toys/robot.toy", "toys/torn.toy")])
def test_they_are_checked_by_their_own_format(haft, words):
    code, out, _err = haft("tools", "check", "--json", *words)
    found = {os.path.basename(one["target"]): one for one in json.loads(out) if one["kind"] == "toy"}
    assert code == 1 and found["bear.toy"]["findings"] == []
    assert [(one["code"], one["level"]) for one in found["robot.toy"]["findings"]] == [("toy-rude", "warning")]
    assert [one["code"] for one in found["torn.toy"]["findings"]] == ["describe-form"]


def test_what_only_it_finds_is_explained(haft):
    code, out, _err = haft("tools", "check", "--explain", "toy-rude")
    assert code == 0 and "Nobody likes to play with it." in out


def test_doctor_says_what_to_do_about_one_that_is_broken(haft, toys):
    _code, out, err = haft("doctor")
    assert "`torn` is broken: it says nothing" in out + err
    assert f"play with something other than {toys}/torn.toy" in out + err


@pytest.mark.parametrize("name", ["bear", "toys/bear.toy"])
def test_they_are_called_by_name_and_by_path(haft, name):
    code, out, _err = haft("tools", "use", name, "--to", "Ann", "--approve", "--only", "output")
    assert (code, out) == (0, "hello Ann\n")


def test_a_path_that_is_broken_is_refused_in_its_own_words(haft, toys):
    code, _out, err = haft("tools", "use", "toys/torn.toy", "--approve")
    assert code == 2 and "is no toy: it says nothing" in err


def test_a_service_sees_its_tools_come_change_and_go_and_closes_it(toys, tmp_path):
    async def yes(_request):
        return True

    async def until(service, wanted):
        async with asyncio.timeout(60):
            async for found in service.watch_tools():
                if {one.spec.name for one in found if one.spec.kind == "toy"} == wanted:
                    return

    async def play():
        async with ToolService.open(".", approver=yes, installed=False) as service:
            (toys / "torn.toy").write_text('{"says": "mended"}')
            await until(service, {"bear", "robot", "torn"})
            (toys / "bear.toy").write_text('{"says": "goodbye"}')
            assert (await service.call("bear")).output == "goodbye you\n"
            (toys / "robot.toy").unlink()
            await until(service, {"bear", "torn"})
        assert all(source.is_closed for source in opened)

    asyncio.run(play())


def test_a_source_that_fails_keeps_no_other_from_its_tools(toys, monkeypatch):
    async def fail(self, launcher, told, *, retry_name=None):
        raise ToolFailed("the toys are out")

    async def play():
        async with ToolService.open(".", installed=False) as service:
            monkeypatch.setattr(Toys, "refresh", fail)
            folder = toys.parent / ".agents/skills/sewing"
            folder.mkdir(parents=True)
            (folder / "SKILL.md").write_text("---\nname: sewing\ndescription: Mends toys that are torn.\n---\n")
            async with asyncio.timeout(60):
                async for found in service.watch_tools():
                    if any("sewing" in one.spec.description for one in found if one.spec.name == "skill"):
                        return

    asyncio.run(play())


class _Wrong(Exception):
    """What no part of haft expects."""


def _wrong(*_words, **_named):
    raise _Wrong("out of stuffing")


async def _wrong_later(*_words, **_named):
    raise _Wrong("out of stuffing")


@pytest.mark.parametrize("method", ["find", "refresh", "places", "due", "is_current", "close"])
def test_a_source_that_is_wrong_itself_is_told_of_and_stops_nothing(toys, monkeypatch, caplog, method):
    broken = _wrong_later if method in ("refresh", "close") else _wrong
    monkeypatch.setattr(Toys, method, broken)

    async def play():
        async with ToolService.open(".", installed=False) as service:
            assert service.catalogue.peek("read_file") is not None
            folder = toys.parent / ".agents/tools"
            folder.mkdir(parents=True)
            (folder / "drum").write_text('#!/bin/sh\necho \'{"name": "drum", "description": "Drums.", "args": {}}\'\n')
            (folder / "drum").chmod(0o755)
            await service.discovery.renew(service.catalogue, service._sandbox.describe_launcher())
            kinds = {one.spec.kind for one in service.tools(all=True)}
            assert "amp-toolbox" in kinds, "a source that stands behind it in the table"
            assert await service.discovery.places()
            service.discovery.due()
            for one in service.tools(all=True):
                service.discovery.is_current(one)

    monkeypatch.setattr(formats, "FORMATS", (formats.Format("toy", Toys), *formats.FORMATS[:-1]))
    asyncio.run(play())
    assert "the source `toy` could not" in caplog.text and "out of stuffing" in caplog.text


@pytest.mark.parametrize("nonsense", [[None], ["bear"], 7], ids=repr)
def test_what_is_no_tool_is_told_of_and_changes_nothing(toys, monkeypatch, caplog, nonsense):
    async def nonsensical(self, launcher, told, *, retry_name=None):
        return nonsense

    async def play():
        async with ToolService.open(".", installed=False) as service:
            monkeypatch.setattr(Toys, "refresh", nonsensical)
            await service.discovery.renew(service.catalogue, service._sandbox.describe_launcher())
            assert {"bear", "robot"} <= {one.spec.name for one in service.tools()}

    asyncio.run(play())
    assert "the source `toy` could not refresh its tools" in caplog.text


def test_a_name_that_no_tool_can_have_keeps_no_other_tool_from_its_own(toys):
    (toys / "a bear with a very long name, and a comma.toy").write_text('{"says": "well"}')

    async def play():
        async with ToolService.open(".", installed=False) as service:
            states = {one.spec.name: one.state for one in service.tools(all=True) if one.spec.kind == "toy"}
            assert (states["bear"], states["robot"]) == ("ready", "ready")
            assert states["a bear with a very long name, and a comma"] == "broken"

    asyncio.run(play())
