"""Wrappers in a directory of their own, and a way to start one as any host would: with hardly any environment."""

import json
import os
import subprocess
import sys

import pytest

from haft.authoring.toolbox.wrapper import wrap
from haft.sources.cli.spec import read_spec


@pytest.fixture(scope="session")
def bare_path():
    """Where a Python lies that has nothing installed."""
    return os.pathsep.join([os.path.dirname(os.path.realpath(sys.executable)), "/usr/bin", "/bin"])


@pytest.fixture
def bin_(tmp_path):
    folder = tmp_path / "bin"
    folder.mkdir()
    return folder


@pytest.fixture
def program(bin_):
    """Write a program; where it lies."""

    def program(name, text):
        path = bin_ / name
        path.write_text(text)
        path.chmod(0o755)
        return path

    return program


@pytest.fixture
def written(tmp_path):
    """Write wrappers from a spec; where each lies, by name."""

    def written(text, directory="toolbox"):
        placed = wrap(read_spec(text, "spec.toml"), str(tmp_path / directory))
        return {one.name: one.path for one in placed}

    return written


@pytest.fixture
def use(tmp_path, bin_, bare_path):
    """Start a wrapper in an empty directory, with PATH and TOOLBOX_ACTION alone."""
    (tmp_path / "elsewhere").mkdir()

    def use(path, given="", action="execute", front=(), **env):
        text = given if isinstance(given, str) else json.dumps(given)
        alone = {"PATH": f"{bin_}{os.pathsep}{bare_path}", **env}
        if action is not None:
            alone["TOOLBOX_ACTION"] = action
        return subprocess.run(
            [*front, path],
            input=text,
            capture_output=True,
            text=True,
            cwd=tmp_path / "elsewhere",
            env=alone,
            timeout=60,
        )

    return use
