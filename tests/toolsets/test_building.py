"""Packages that have no wheel: built in the sandbox for a person's own templates, and after a question for others."""

import asyncio
import json
import sys
import tarfile
from io import BytesIO
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from sampling import IS_WHOLE, some

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parent.parent / "sandbox"))
from loaded import SMALL_PYDANTIC, written
from test_environments import Index, source_of_spy, wheel

from haft.service import ToolService
from haft.surfaces.cli.main import run as haft

QUESTION = "runs code of its authors"


class Bench:
    """A person, a workspace, and an index of their own."""

    def __init__(self, base, index, monkeypatch):
        self.base, self.index, self.workspace = base, index, base / "workspace"
        self.asked = []
        self.answers = lambda _request: True
        for folder in (self.workspace, base / "own"):
            folder.mkdir()
        self.index.files = dict([wheel("pydantic", "2.0", SMALL_PYDANTIC), wheel("tiny"), source_of_spy([])])
        for name, value in {
            "HOME": base / "own", "XDG_DATA_HOME": base / "own/data", "XDG_CONFIG_HOME": base / "own/config",
            "HAFT_HOME": base / "state", "UV_DEFAULT_INDEX": index.url,
        }.items():  # fmt: skip
            monkeypatch.setenv(name, str(value))
        (self.workspace / "haft.toml").write_text('[templates]\npaths = ["./templates"]\n')

    def write(self, where, *requirements):
        folder = written(where / "says", "return spy.__name__", top="import spy")
        (folder / "requirements.txt").write_text("".join(f"{line}\n" for line in ("pydantic", *requirements)))
        return folder

    def call(self, *, has_person=True, **settings):
        def approver(request):
            self.asked.append(request.reason)
            return self.answers(request)

        async def go():
            service = ToolService.open(
                self.workspace, approver=approver if has_person else None, installed=False,
                settings={
                    "templates.paths": [str(self.base / "own/templates")],
                    "permissions": [] if has_person else [{"tool": "says", "action": "allow"}],
                    **settings,
                },
            )  # fmt: skip
            async with service:
                return await service.call("says", {})

        return asyncio.run(go())

    def questions(self):
        """Those about building, since the last time."""
        found, self.asked = [reason for reason in self.asked if QUESTION in reason], []
        return found


@pytest.fixture
def bench(tmp_path, monkeypatch):
    index = Index()
    yield Bench(tmp_path, index, monkeypatch)
    index.gate.set()
    index.server.shutdown()
    index.server.server_close()


@pytest.mark.every_user
def test_it_is_built_for_a_persons_own_template_without_a_question(bench):
    bench.write(bench.base / "own/templates", "spy", "tiny")
    outcome = bench.call()
    assert (outcome.status, outcome.output) == ("done", "spy"), outcome.error
    assert bench.questions() == []


@pytest.mark.every_user
def test_it_is_asked_for_once_for_the_template_of_a_workspace(bench):
    folder = bench.write(bench.workspace / "templates", "spy", "tiny")
    outcome = bench.call()
    assert (outcome.status, outcome.output) == ("done", "spy"), outcome.error
    (question,) = bench.questions()
    assert "`spy`" in question and "none of your files" in question

    (folder / ".requirements_hash.txt").unlink()
    assert bench.call().status == "done" and bench.questions() == [], "the same requirements are built again"
    (folder / "requirements.txt").write_text("pydantic\nspy==1.0\n")
    assert bench.call().status == "done" and len(bench.questions()) == 1


@pytest.mark.every_user
def test_a_yes_holds_for_the_requirements_that_were_asked_about_and_no_others(bench):
    folder = bench.write(bench.workspace / "templates", "spy")

    def meanwhile(request):
        if request.build is not None:
            (folder / "requirements.txt").write_text("pydantic\nspy==1.0\n")
        return True

    bench.answers = meanwhile
    outcome = bench.call()
    assert outcome.error.code == "tool-failed" and "not allowed yet" in outcome.error.message
    assert not (folder / ".venv").exists() and not (bench.base / "own/data/haft/uv/built").exists()
    assert len(bench.questions()) == 1
    bench.answers = lambda _request: True
    assert bench.call().status == "done" and len(bench.questions()) == 1, "the others are asked about"


def test_the_question_shows_the_sandbox_of_the_build_and_the_command_that_allows_it(bench):
    folder = bench.write(bench.workspace / "templates", "spy")
    seen = []
    bench.answers = lambda request: seen.append(request) or request.build is None
    bench.call()
    call, build = seen
    assert call.build is None and call.sandbox.profile == "workspace"
    assert build.build == f"haft templates build {folder} --allow-builds" and build.to_allow == build.parts == ()
    assert urlsplit(bench.index.url).netloc in build.sandbox.network and "only the listed hosts" in build.reason
    assert not build.sandbox.writable and build.sandbox.profile != "workspace"


def test_approve_beforehand_does_not_answer_for_what_is_built(bench, capsys, monkeypatch):
    folder = bench.write(bench.workspace / "templates", "spy")
    monkeypatch.chdir(bench.workspace)
    assert haft(["tools", "use", "says", "--approve", "--json"]) == 3
    error = json.loads(capsys.readouterr().out)["error"]
    assert f"`haft templates build {folder} --allow-builds` approves that" in error["message"]
    assert not (folder / ".venv").exists() and not (bench.base / "state/environments/builds").exists()
    assert haft(["templates", "build", str(folder), "--allow-builds", "-q"]) == 0
    capsys.readouterr()
    assert haft(["tools", "use", "says", "--approve", "--only", "output"]) == 0
    assert capsys.readouterr().out.strip() == "spy"


def test_in_the_inbox_it_is_answered_yes_or_no(bench):
    from haft.contracts import BadUsage

    bench.write(bench.workspace / "templates", "spy")

    async def go():
        service = ToolService.open(
            bench.workspace,
            installed=False,
            settings={"permissions": [{"tool": "says", "action": "allow"}], "approval.expires_seconds": 60},
        )
        async with service:
            calling = asyncio.ensure_future(service.call("says", {}))
            while not (waiting := service.inbox()) and not calling.done():
                await asyncio.sleep(0.05)
            assert waiting, calling.result().error
            with pytest.raises(BadUsage, match="only be approved or rejected as it is"):
                await service.approve(waiting[0].id, grants={"network": True})
            await service.approve(waiting[0].id)
            return await calling

    bench.call(**{"templates.allow_builds": False})  # Someone knows the template.
    outcome = asyncio.run(go())
    assert outcome.output == "spy", outcome.error


def test_who_says_no_has_nothing_built(bench):
    folder = bench.write(bench.workspace / "templates", "spy")
    bench.answers = lambda request: QUESTION not in request.reason
    outcome = bench.call()
    assert outcome.status == "rejected-by-user" and "building `spy` was not approved" in outcome.error.message
    assert len(bench.questions()) == 1 and not (folder / ".venv").exists()
    assert not (bench.base / "own/data/haft/uv/built").exists()


def test_where_nobody_can_be_asked_the_error_names_the_command_that_allows_it(bench, capsys, monkeypatch):
    folder = bench.write(bench.workspace / "templates", "spy")
    bench.answers = lambda request: QUESTION not in request.reason
    bench.call()  # Someone knows the template, and nothing is built.
    outcome = bench.call(has_person=False)
    assert outcome.status == "error" and "no wheel of `spy`" in outcome.error.message
    assert f"`haft templates build {folder} --allow-builds`" in outcome.error.hint
    monkeypatch.chdir(bench.workspace)
    assert haft(["templates", "build", str(folder), "--json"]) == 1, "not even by this command, without the word"
    assert "no wheel of `spy`" in capsys.readouterr().out
    assert haft(["templates", "build", str(folder), "--allow-builds", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said == {"name": "says", "folder": str(folder), "environment": str(folder / ".venv")}
    assert bench.call(has_person=False).output == "spy"


def test_where_it_is_switched_off_nobody_is_asked(bench):
    bench.write(bench.base / "own/templates", "spy")
    outcome = bench.call(**{"templates.allow_builds": False})
    assert outcome.status == "error" and "`templates.allow_builds` is false" in outcome.error.message
    assert bench.questions() == []


@pytest.mark.every_user
def test_what_is_built_sees_none_of_the_persons_files_and_writes_none(bench):
    (bench.base / "own/diary").write_text("dear")
    (bench.workspace / "work").write_text("mine")
    places = [bench.base / "own/diary", bench.workspace / "work", bench.base / "state/audit"]
    bench.index.files.update([source_of_spy(places)])
    folder = bench.write(bench.base / "own/templates", "spy")
    tool = folder / "tool.py"
    tool.write_text(tool.read_text().replace("spy.__name__", "spy.SAID"))
    outcome = bench.call()
    assert outcome.result["seen"] == dict.fromkeys(map(str, places), "FileNotFoundError"), outcome.error
    assert not [*bench.base.rglob("written-by-spy")]


@pytest.mark.every_user
def test_what_is_built_sees_of_the_machine_the_system_alone(bench):
    bench.index.files.update([source_of_spy(["/var/lib", "/etc/passwd"])])
    folder = bench.write(bench.base / "own/templates", "spy")
    tool = folder / "tool.py"
    tool.write_text(tool.read_text().replace("spy.__name__", "spy.SAID"))
    outcome = bench.call()
    assert outcome.result["seen"]["/var/lib"] == "FileNotFoundError", outcome.error
    assert "root" in outcome.result["seen"]["/etc/passwd"]


VARIABLES = ("UV_DEFAULT_INDEX", "PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL")
CREDENTIALS = [(name, settings) for name in VARIABLES for settings in ({}, {"templates.allow_builds": True})]


@pytest.mark.every_user
@pytest.mark.parametrize(("name", "settings"), some(CREDENTIALS, 2, "credentials of an index"))
def test_nothing_is_built_with_the_credentials_of_an_index(bench, monkeypatch, name, settings):
    monkeypatch.setenv(name, bench.index.url.replace("://", "://user:pw-4711@"))
    folder = bench.write(bench.base / "own/templates", "spy")
    outcome = bench.call(**settings)
    assert outcome.status == "error" and f"credentials in `{name}`" in outcome.error.message
    assert "wheel" in outcome.error.hint and "pw-4711" not in f"{outcome.error}"
    assert not (folder / ".venv").exists() and not (bench.base / "own/data/haft/uv/built").exists()
    (folder / "requirements.txt").write_text("pydantic\ntiny\n")
    tool = folder / "tool.py"
    tool.write_text(tool.read_text().replace("import spy", "import tiny as spy"))
    assert bench.call(**settings).output == "tiny", "wheels are installed with them"


@pytest.mark.every_user
def test_what_is_built_gets_no_address_that_names_a_person(bench, monkeypatch):
    monkeypatch.setenv("NPM_CONFIG_REGISTRY", "https://user:pw-4711@npm.example/")
    bench.index.files.update([source_of_spy(["/proc/self/environ", "/proc/1/environ"])])
    folder = bench.write(bench.base / "own/templates", "spy")
    tool = folder / "tool.py"
    tool.write_text(tool.read_text().replace("spy.__name__", "spy.SAID"))
    outcome = bench.call()
    assert outcome.result["env"] and "pw-4711" not in outcome.output, outcome.error


def test_a_wheel_is_preferred_where_an_older_version_has_one(bench):
    bench.index.files.update([wheel("spy", "0.9")])
    bench.write(bench.workspace / "templates", "spy")
    assert bench.call().output == "spy" and bench.questions() == []


@pytest.mark.skipif(not IS_WHOLE, reason="it needs setuptools from the real index")
def test_a_package_with_a_setup_py_is_built(bench, monkeypatch):
    contents = {
        "setup.py": "from setuptools import setup\nsetup(name='spy', version='1.0', py_modules=['spy'])\n",
        "spy.py": "",
        "PKG-INFO": "Metadata-Version: 2.1\nName: spy\nVersion: 1.0\n",
    }
    packed = BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as files:
        for name, words in contents.items():
            entry = tarfile.TarInfo(f"spy-1.0/{name}")
            entry.size = len(words)
            files.addfile(entry, BytesIO(words.encode()))
    bench.index.files["spy-1.0.tar.gz"] = packed.getvalue()
    monkeypatch.delenv("UV_DEFAULT_INDEX")
    monkeypatch.setenv("UV_INDEX", bench.index.url)
    bench.write(bench.base / "own/templates", "spy")
    outcome = bench.call()
    assert outcome.output == "spy", outcome.error
