"""The whole life of a track, in processes of their own, and what only a process shows."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys


def test_the_whole_life_of_a_track(cdd):
    def done(*words: str, given: str = "") -> str:
        result = cdd.process(*words, given=given)
        assert (result.returncode, result.stderr) == (0, "")
        return result.stdout

    done("init")
    done("start", "add-login")
    done("log", "add-login", 'Tokens, "because" of\n-- two servers')
    done("log", "add-login", given="From a pipe\n")
    assert re.search(r"\] From a pipe\n", done("view", "add-login", "--log"))
    plan = cdd.track("add-login", "plan.md")
    plan.write_text("# P\n\n## One\n- [x] a\n\n## Two\n- [ ] b\n")
    assert "## Two" in done("recite", "add-login")
    refused = cdd.process("archive", "add-login")
    assert (refused.returncode, refused.stdout) == (1, "")
    assert "line 7: b" in refused.stderr
    plan.write_text(plan.read_text().replace("[ ]", "[x]"))
    folder = re.search(r"\.context/archive/\d{14}_add-login", done("archive", "add-login"))[0]
    metadata = json.loads((cdd.path / folder / "metadata.json").read_text())
    assert metadata["archived_at"] >= metadata["started_at"]
    assert (cdd.path / folder / "decisions.md").read_text().count("] ") == 2
    assert "add-login" in done("view", "--archived", "--raw")
    done("delete", "setup")
    assert list(cdd.track("").iterdir()) == []


def test_on_a_terminal_delete_asks_first(cdd):
    cdd.done("start", "a")

    def answered(answer: bytes, *words: str) -> int:
        ours, theirs = pty.openpty()
        os.write(ours, answer)
        try:
            command = [sys.executable, "-m", "cdd", "delete", "a", *words]
            return subprocess.run(command, stdin=theirs, capture_output=True, cwd=cdd.path, timeout=60).returncode
        finally:
            os.close(ours)
            os.close(theirs)

    assert answered(b"n\n") == 1
    assert cdd.track("a").exists()
    assert answered(b"y\n") == 0
    assert not cdd.track("a").exists()
    cdd.done("start", "a")
    assert answered(b"", "--yes") == 0
    assert not cdd.track("a").exists()


def test_a_closed_standard_input_is_an_empty_one(cdd):
    cdd.done("start", "a")
    for words, code in ((["log", "a"], 1), (["delete", "a"], 0)):
        shell = ["sh", "-c", '"$0" "$@" <&-', sys.executable, "-m", "cdd", *words]
        result = subprocess.run(shell, cwd=cdd.path, capture_output=True, text=True, timeout=60)
        assert result.returncode == code
        assert "Traceback" not in result.stderr


def test_characters_that_the_terminal_lacks_are_spelled_out(cdd):
    cdd.done("start", "größe")
    result = cdd.process("recite", "größe", PYTHONIOENCODING="latin-1")
    assert (result.returncode, result.stderr) == (0, "")
    assert "\\u2026" in result.stdout


def test_a_folder_that_cannot_be_written_is_a_sentence(cdd):
    before = cdd.everything()
    cdd.write(".agents", "")
    result = cdd.process("agents", "--install", "--target", "agents")
    assert result.returncode == 1
    assert result.stderr.startswith("Error: ") and "Traceback" not in result.stderr
    (cdd.path / ".agents").unlink()
    assert cdd.everything() == before
