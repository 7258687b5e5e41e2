"""Every page gets a workspace, a state home and a place for packages of its own."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from haft.sandbox.environment import NETWORK_VARIABLES
from warm import STUB

sys.path.insert(0, str(Path(__file__).parent))

PIP = '''\
"""`pip install DIRECTORY`, as far as the examples need it and without an index: the package's modules and entries."""
import pathlib, shutil, sys, tomllib

source, site = pathlib.Path(sys.argv[-1]), pathlib.Path({site!r})
project = tomllib.loads((source / "pyproject.toml").read_text())["project"]
info = site / f"{{project['name'].replace('-', '_')}}-{{project['version']}}.dist-info"
info.mkdir(parents=True, exist_ok=True)
name, version = project["name"], project["version"]
(info / "METADATA").write_text(f"Metadata-Version: 2.1\\nName: {{name}}\\nVersion: {{version}}\\n")
with open(info / "entry_points.txt", "w") as file:
    for group, entries in project.get("entry-points", {{}}).items():
        print(f"[{{group}}]", *(f"{{entry}} = {{value}}" for entry, value in entries.items()), sep="\\n", file=file)
for module in source.glob("*.py"):
    shutil.copy(module, site)
print(f"Successfully installed {{name}}-{{version}}")
'''


@dataclass(frozen=True)
class Desk:
    """Where a page's examples are played."""

    workspace: Path
    scratch: Path
    env: dict[str, str]


@pytest.fixture
def desk(outside_tmp: Path) -> Desk:
    workspace, scratch, site, programs = (outside_tmp / name for name in ("project", "scratch", "site", "bin"))
    for directory in (workspace, scratch, site, programs):
        directory.mkdir()
    (scratch / "pip.py").write_text(PIP.format(site=str(site)))
    python = sys.executable
    for name, words in {
        "pip": f'"{python}" "{scratch / "pip.py"}" "$@"',
        "python": f'"{python}" "$@"',
    }.items():
        (programs / name).write_text(f"#!/bin/sh\nexec {words}\n")
        (programs / name).chmod(0o755)
    program = f'"{python}" -m haft'
    (programs / "haft").write_text(STUB.format(calls=scratch / "calls", program=program))
    (programs / "haft").chmod(0o755)
    names = ("LANG", "LC_ALL", "TZ", *NETWORK_VARIABLES)
    kept = {name: os.environ[name] for name in names if name in os.environ}
    env = kept | {
        "HAFT_HOME": str(outside_tmp / "state"),
        "HOME": str(outside_tmp / "home"),
        "XDG_CONFIG_HOME": str(outside_tmp / "config"),
        "PATH": f"{programs}:{os.environ['PATH']}",
        "PYTHONPATH": str(site),
        "PYTHONDONTWRITEBYTECODE": "1",
        "NO_COLOR": "1",
        "COLUMNS": "120",
        "TERM": "xterm",
        "USER": "you",
    }
    return Desk(workspace, scratch, env)
