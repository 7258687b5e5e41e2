"""Completion in real shells, through the script that the program prints."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

BIN = Path(sys.executable).parent

pytestmark = pytest.mark.skipif(not (BIN / "haft").exists(), reason="haft is not installed as a command here")


def bash(haft, *words, loading=None):
    """What bash offers for the last of these words. `loading` is the line of a person that loads the script."""
    loading = loading or haft("completion", "bash").out
    quoted = " ".join(f"'{word}'" for word in words)
    script = (
        f"{loading}\nCOMP_WORDS=({quoted})\nCOMP_CWORD={len(words) - 1}\n"
        'compopt() { echo "files"; }\n_haft_completion haft\nprintf "%s\\n" "${COMPREPLY[@]}"'
    )
    env = {**haft.env, "PATH": f"{BIN}{os.pathsep}{haft.env['PATH']}"}
    done = subprocess.run(
        ["bash", "--norc", "-c", script], capture_output=True, text=True, cwd=haft.workspace, env=env, timeout=60
    )
    assert done.stderr == ""
    return done.stdout.split()


def test_commands_and_options(haft):
    assert bash(haft, "haft", "", loading='eval "$(haft completion bash)"') == [
        "tools", "run", "log", "show", "output", "watch", "cancel", "diff", "blame", "undo", "redo", "changes", "inbox",
        "approve", "reject", "approval", "permissions", "agent", "skills", "plugins", "providers", "templates",
        "toolbox", "serve", "connect", "hook", "store", "tokens", "audit", "config", "trust", "doctor", "completion",
        "help", "version",
    ]  # fmt: skip
    assert bash(haft, "haft", "tools", "s") == ["show", "search"]
    assert "--source" in bash(haft, "haft", "tools", "list", "--s")
    assert "--json" in bash(haft, "haft", "doctor", "--j")
    assert bash(haft, "haft", "toolbox", "") == ["wrap", "export"]
    assert bash(haft, "haft", "toolbox", "export", "wr") == ["write_file"]
    assert bash(haft, "haft", "completion", "") == ["bash", "zsh", "fish"]
    (haft.workspace / ".mcp.json").write_text('{"mcpServers": {"memory": {"command": "x"}, "mail": {"command": "y"}}}')
    assert bash(haft, "haft", "providers", "tr") == ["trust"]
    assert bash(haft, "haft", "providers", "trust", "me") == ["memory"]


def test_tools_and_their_parameters(haft):
    assert bash(haft, "haft", "tools", "use", "re") == ["read_file"]
    assert bash(haft, "haft", "tools", "show", "wr") == ["write_file"]
    offered = bash(haft, "haft", "tools", "use", "read_file", "--")
    assert {"--path", "--start_line", "--end_line", "--args", "--json"} <= set(offered)
    assert "--command" not in offered
    assert bash(haft, "haft", "tools", "use", "edit_file", "--replace_all", "f") == ["false"]
    assert bash(haft, "haft", "tools", "use", "read_file", "--path", "a") == ["files"]
    assert bash(haft, "haft", "tools", "use", "shell", "--", "--ti") == ["--timeout"]
    assert bash(haft, "haft", "tools", "use", "shell", "--ti") == [], "it may mean two things here"
    assert bash(haft, "haft", "tools", "use", "--ti") == ["--timeout"]
    assert "--" in bash(haft, "haft", "tools", "use", "shell", "-")
    assert bash(haft, "haft", "tools", "use", "shell", "--n") == ["--no-cache", "--network"]
    assert bash(haft, "haft", "tools", "use", "--network", "re") == ["read_file"]
    assert bash(haft, "haft", "tools", "use", "--network=a.example", "re") == ["read_file"]
    assert bash(haft, "haft", "permissions", "add", "--network=a.example", "--n") == ["--network"]
    assert bash(haft, "haft", "approve", "--network", "--s") == ["--scratch"]
    assert bash(haft, "haft", "permissions", "test", "--network", "a.example", "re") == ["read_file"]
    assert bash(haft, "haft", "tools", "use", "shell", "--wr") == ["--write"]
    assert bash(haft, "haft", "tools", "use", "shell", "--write", "a") == ["files"]


def test_runs_and_statuses(haft):
    run = haft("tools", "use", "read_file", "--path", "a.txt").json["run"]
    for command in ("show", "output", "watch", "cancel", "diff"):
        assert bash(haft, "haft", command, "r_") == [run]
    assert bash(haft, "haft", "log", "--status", "can") == ["cancellation-requested", "cancelled"]
    assert bash(haft, "haft", "log", "--tool", "sh") == ["shell"]


def test_commands_about_changes_offer_the_runs_that_they_can_settle(haft):
    write = ["tools", "use", "write_file", "--content", "x", "--only", "run", "--path"]
    undone = haft(*write, "a", "--approve").out.strip()
    haft("undo")
    done = haft(*write, "b", "--approve").out.strip()
    held = haft(*write, "c", "--try").out.strip()
    assert bash(haft, "haft", "undo", "") == [done]
    assert bash(haft, "haft", "redo", "r_") == [undone]
    assert bash(haft, "haft", "changes", "apply", "r_") == [held]
    assert bash(haft, "haft", "changes", "") == ["list", "apply", "drop"]


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_take_the_script(haft, shell):
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not on this machine")
    script = haft("completion", shell).out
    check = [shell, "-n"] if shell == "zsh" else [shell, "--no-execute"]
    file = haft.workspace / "script"
    file.write_text(script)
    assert subprocess.run([*check, str(file)], timeout=60).returncode == 0


@pytest.mark.parametrize(("shell", "words"), [("zsh", "haft tools use re"), ("fish", "haft tools use re")])
def test_what_other_shells_are_answered(haft, shell, words):
    env = {"_HAFT_COMPLETE": f"{shell}_complete", "COMP_WORDS": words, "COMP_CWORD": "3" if shell == "zsh" else "re"}
    assert "read_file" in haft(**env).out
    assert "_haft_completion" in haft("completion", shell).out
