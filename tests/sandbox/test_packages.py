"""Tools that lie in a package are described and run with it, and with nothing else of where it lies."""

import asyncio
import os
import shutil
import sys

import pytest

from haft.service import ToolService
from sampling import SELDOM

pytestmark = [
    pytest.mark.every_user(share=SELDOM),
    pytest.mark.skipif(sys.platform != "linux", reason="the sandbox is made of Linux"),
]

PYTHON = """#!/usr/bin/env python3
import json, os, sys
sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), ".."))
from library.words import WORDS
if os.environ["TOOLBOX_ACTION"] == "describe":
    print(json.dumps({"name": "speak", "description": WORDS, "args": {"path": ["string", "p"]}}))
else:
    path = json.load(sys.stdin)["path"]
    print(WORDS, open(path).read() if path and os.path.exists(path) else "unseen")
"""
NODE = """#!/usr/bin/env node
const { words } = require('../library/words');
const { more } = require('dependency');
const fs = require('fs');
if (process.env.TOOLBOX_ACTION === 'describe') {
  console.log(JSON.stringify({ name: 'speak', description: words + more, args: { path: ['string', 'p'] } }));
} else {
  const { path } = JSON.parse(fs.readFileSync(0, 'utf8'));
  console.log(words + more, fs.existsSync(path) ? fs.readFileSync(path, 'utf8') : 'unseen');
}
"""


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A home with a project in it, and a workspace elsewhere."""
    home = tmp_path / "person"
    (home / "work/project/tools").mkdir(parents=True)
    (home / "work/project/library").mkdir()
    (home / "work/secret").write_text("a secret")
    (home / "secret").write_text("a secret")
    (tmp_path / "workspace").mkdir()
    monkeypatch.setenv("HOME", str(home))
    return home / "work/project"


def put(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


def python_package(place):
    put(place / "pyproject.toml", "[project]\nname = 'p'\n")
    put(place / "library/words.py", "WORDS = 'from beside'\n")
    return put(place / "tools/speak", PYTHON)


def node_package(place):
    put(place / "package.json", "{}")
    put(place / "library/words.js", "exports.words = 'from beside';\n")
    put(place / "node_modules/dependency/index.js", "exports.more = ', and a dependency';\n")
    return put(place / "tools/speak", NODE)


MAKERS = {"python3": python_package, "node": node_package}


def called(place, *paths, toolbox=None, workspace=None, state=None):
    """What the tool says of itself, and what it sees of some paths."""
    top = place.parents[2]

    async def main():
        os.environ["AMP_TOOLBOX"] = str(toolbox or place / "tools")
        async with ToolService.open(
            workspace or top / "workspace", approver=lambda _request: True, home=state or top / "state", installed=False
        ) as service:
            (listing,) = [one for one in service.tools(all=True) if one.spec.name == "tb__speak"]
            if listing.reason:
                return listing.reason, []
            outcomes = [await service.call("tb__speak", {"path": str(path)}) for path in paths]
            return listing.spec.description, [outcome.output.strip() for outcome in outcomes]

    before = os.environ.get("AMP_TOOLBOX")
    try:
        return asyncio.run(main())
    finally:
        os.environ["AMP_TOOLBOX"] = before or ""


@pytest.mark.parametrize("program", MAKERS)
def test_a_tool_that_imports_from_beside_its_directory_is_described_and_runs(program, place):
    if shutil.which(program) is None:
        pytest.skip(f"{program} is not installed")
    MAKERS[program](place)
    said, seen = called(place, place.parent / "secret", place.parents[1] / "secret", place / "library")
    assert said.startswith("from beside")
    assert [each.endswith("unseen") for each in seen[:2]] == [True, True], seen


def test_a_manifest_in_a_home_or_in_a_directory_open_to_all_gives_nothing(place):
    path = python_package(place)
    (place / "pyproject.toml").unlink()
    (place.parents[1] / "package.json").write_text("{}")
    assert "ModuleNotFoundError" in called(place)[0] or "No module" in called(place)[0]
    (place.parents[1] / "package.json").unlink()
    (place.parent / "package.json").write_text("{}")
    place.parent.chmod(0o1777)
    put(path, PYTHON + "# changed\n")
    assert "No module" in called(place)[0]


def test_a_tool_of_the_workspace_does_not_see_the_package_around_the_workspace(place):
    """A clone below a directory with a manifest does not get that directory."""
    python_package(place)
    workspace = place / "clone"
    tell = '#!/bin/sh\necho "{\\"name\\": \\"speak\\", \\"description\\": \\"$(ls ../library 2>&1)\\"}"\n'
    put(workspace / ".agents/tools/speak", tell)
    (place / "tools/speak").unlink()
    said, _ = called(place, workspace=workspace)
    assert "words.py" not in said


def test_a_toolbox_that_is_a_link_is_run_by_its_own_name(place):
    python_package(place)
    link = place.parents[1] / "linked"
    link.symlink_to(place / "tools")
    assert called(place, "", toolbox=link) == ("from beside", ["from beside unseen"])


def environment(folder, home, words):
    """A virtual environment whose Python uv installed, by the name of a minor version, as uv does it."""
    root = home / ".local/share/uv/python"
    put(root / "cpython-mine/lib/python3.12/os.py", "")
    put(root / "cpython-mine/bin/python3.12", f"#!/bin/sh\n{words}\n")
    (root / "minor").symlink_to("cpython-mine")
    put(folder / ".venv/pyvenv.cfg", "")
    (folder / ".venv/bin").mkdir()
    (folder / ".venv/bin/python").symlink_to(root / "minor/bin/python3.12")


def test_a_tool_runs_with_the_python_of_its_packages_environment(place):
    path = python_package(place)
    environment(place, place.parents[1], 'echo \'{"name": "speak", "description": "the one of uv"}\'')
    put(path, f"#!{place}/.venv/bin/python\n")
    assert called(place)[0] == "the one of uv"


def test_what_haft_keeps_in_a_package_stays_hidden(place):
    python_package(place)
    said, seen = called(place, place / "state/haft.db", state=place / "state")
    assert (said, seen) == ("from beside", ["from beside unseen"])
    assert (place / "state/haft.db").exists()


def test_the_python_of_a_workspaces_environment_runs_where_uv_installed_it(place):
    home, top = place.parents[1], place.parents[2]
    root = home / ".local/share/uv/python"
    environment(top / "workspace", home, "echo the one of uv")
    (root / "cpython-other/lib").mkdir(parents=True)

    async def main():
        async with ToolService.open(
            top / "workspace", approver=lambda _request: True, home=top / "state", installed=False
        ) as service:
            ran = await service.call("shell", {"command": ".venv/bin/python -c 1"})
            listed = await service.call("shell", {"command": f"ls {root}; ls -A {home}"})
            return ran.output, listed.output.split()

    said, listed = asyncio.run(main())
    assert said == "the one of uv\n"
    assert "cpython-other" not in listed and "secret" not in listed
