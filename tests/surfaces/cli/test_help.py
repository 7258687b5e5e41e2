"""Words that people try first: help, version, use, list, `python -m haft`; and Windows, where nothing can run."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from haft import __version__


def test_help_prints_what_the_option_prints(haft):
    assert haft("help").out == haft("--help").out != ""
    assert haft("help", "tools").out == haft("tools", "--help").out
    assert haft("help", "log").out == haft("log", "--help").out
    assert haft("help", "tools", "use").out == haft("tools", "use", "--help").out
    wrong = haft("help", "tools", "uze")
    assert wrong.code == 2 and "did you mean `haft tools use`?" in wrong.err
    assert haft("help", "log", "x").code == 2


def test_version_is_a_command_too(haft):
    assert haft("version").out == f"haft {__version__}\n" == haft("--version").out


def test_use_and_list_are_short_forms(haft):
    assert haft("list", "--json").json == haft("tools", "list", "--json").json
    assert haft("use", "read_file", "--path", "a.txt", "--only", "output").out == "one\ntwo\nthree\n"
    assert haft("use", "read_file", "--pth", "a.txt").json["run"] is None
    told = haft("--help").out
    assert "\n  use          Short for `tools use`.\n" in told and "\n  list         Short for `tools list`.\n" in told


def test_python_m_haft_is_the_command(haft):
    done = subprocess.run(
        [sys.executable, "-m", "haft", "version"], capture_output=True, text=True, env=haft.env, cwd=haft.workspace
    )
    assert (done.returncode, done.stdout) == (0, f"haft {__version__}\n")


ON_WINDOWS = """
import runpy, sys
sys.platform = "win32"
for name in ("fcntl", "termios", "pwd", "grp", "resource", "pty", "tty", "_posixsubprocess"):
    sys.modules[name] = None
sys.argv = ["haft", "tools", "list"]
"""


@pytest.mark.parametrize(
    "entry", ["import haft.__main__; haft.__main__.main()", "runpy.run_module('haft', run_name='__main__')"]
)
def test_on_windows_one_line_says_what_haft_needs(entry):
    done = subprocess.run([sys.executable, "-c", ON_WINDOWS + entry], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "error: haft needs Linux or macOS; on Windows it runs in WSL\n"


def test_on_windows_the_library_says_it_too():
    done = subprocess.run(
        [sys.executable, "-c", ON_WINDOWS + "from haft import ToolService"], capture_output=True, text=True
    )
    assert done.stderr.splitlines()[-1] == "ImportError: haft needs Linux or macOS; on Windows it runs in WSL"


def test_the_installed_command_begins_there():
    project = tomllib.loads((Path(__file__).parents[3] / "pyproject.toml").read_text())
    assert project["project"]["scripts"] == {"haft": "haft.__main__:main"}
