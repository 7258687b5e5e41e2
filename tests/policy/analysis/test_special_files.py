"""A FIFO, a socket or a device in the workspace: opening it waits for another program and reads its output."""

import os
import socket
import subprocess

import pytest

from haft.builtin.ripgrep import find_ripgrep
from haft.policy.analysis import AnalysisContext, analyse

OPENED = [
    "cat pipe",
    "cat a.txt ./src/../pipe",
    "cat link",
    "cat around/inner",
    "cat *",
    "cat src/*",
    "head -n 1 < pipe",
    'echo "$(< link)"',
    "while read -r line; do echo x; done < pipe",
    "grep -f pipe a.txt",
    "grep --file=link a.txt",
    "grep -n x pipe",
    "rg x pipe",
    "sort -m a.txt pipe",
    "diff a.txt pipe",
    "jq . pipe",
    "awk 1 pipe",
    "sed -n 1p pipe",
    "tail -n 1 pipe",
    "stat pipe",
    "unzip -l pipe",
    "zipinfo pipe",
    "cd src && head inner",
    'for each in *; do wc -l "$each"; done',
    'for each in pipe; do wc -l "$each"; done',
    "name=pipe; cat $name",
    "cat {a.txt,pipe}",
    "find . -name 'inn*' | xargs cat",
    "find src -name 'inn*' -exec cat {} +",
    "xargs -a pipe echo",
]
NOT_OPENED = [
    "ls",
    "ls -d *",
    "echo *",
    "[ -p pipe ]",
    "test -e pipe",
    "find . -type p",
    "find . -type f -exec cat {} +",
    "grep -rn x .",
    "grep -rn x src",
    "rg x",
    "cat a.txt < /dev/null",
    "cat /dev/stdin < a.txt",
]


@pytest.fixture
def workspace(tmp_path):
    (tmp_path / "src").mkdir()
    (tmp_path / "a.txt").write_text("x\n")
    os.mkfifo(tmp_path / "pipe")
    os.mkfifo(tmp_path / "src" / "inner")
    (tmp_path / "link").symlink_to("pipe")
    (tmp_path / "around").symlink_to("src")
    return tmp_path.resolve()


@pytest.mark.parametrize("line", OPENED)
def test_a_fifo_as_an_argument_needs_approval(workspace, line):
    found = analyse(line, AnalysisContext(str(workspace)))
    assert not found.safe
    assert any("is a FIFO" in part.reason for part in found.parts), found
    os.remove(workspace / "pipe")
    os.remove(workspace / "src" / "inner")
    for name in ("pipe", "src/inner"):
        (workspace / name).write_text("x\n")
    assert analyse(line, AnalysisContext(str(workspace))).safe


@pytest.mark.parametrize("line", NOT_OPENED)
def test_a_fifo_that_no_command_opens_needs_no_approval(workspace, line):
    assert analyse(line, AnalysisContext(str(workspace))).safe


@pytest.mark.parametrize("line", [*NOT_OPENED, "git status", "diff -r src around", "git grep -n --no-index x"])
def test_programs_that_walk_a_tree_skip_fifos(workspace, line):
    subprocess.run(["git", "init", "-q"], cwd=workspace, check=True)
    env = {**os.environ, "PATH": f"{os.path.dirname(find_ripgrep())}:{os.environ['PATH']}"}
    # It ends: that is all that is asked of it. A program that opens the FIFO would wait for ever.
    subprocess.run(["bash", "-c", line], cwd=workspace, env=env, stdin=subprocess.DEVNULL, timeout=60)


def test_a_socket_needs_approval_too(workspace, monkeypatch):
    monkeypatch.chdir(workspace)  # The names of sockets may not be long.
    with socket.socket(socket.AF_UNIX) as end:
        end.bind("door")
    assert "`door` is a socket" in analyse("cat door", AnalysisContext(str(workspace))).parts[0].reason


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make a device")
def test_a_device_needs_approval_too(workspace):
    try:
        os.mknod(workspace / "endless", 0o20644, os.makedev(1, 5))
    except PermissionError:
        pytest.skip("this machine lets nobody make a device")
    assert "`endless` is a device" in analyse("cat endless", AnalysisContext(str(workspace))).parts[0].reason


@pytest.mark.parametrize("line", ["grep -rD read x src", "grep --devices=read -r x .", "grep -D read x a.txt"])
def test_an_option_that_makes_grep_read_fifos_needs_approval(workspace, line):
    assert not analyse(line, AnalysisContext(str(workspace))).safe
    assert analyse(line.replace("read", "skip"), AnalysisContext(str(workspace))).safe
