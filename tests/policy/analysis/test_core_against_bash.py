"""Bash runs lines that pass, with every program replaced by one that records its arguments."""

import os
import random
import shutil
import subprocess

import pytest

from haft.policy.analysis import analyse

from .conftest import TABLE

BASH = shutil.which("bash")
NOTE = "command_not_found_handle() { printf '%s\\0' \"$@\" $'\\x01' >&3; }; eval \"$0\""
WORDS = [
    "ls", "cat", "grep x", "echo", "a.py", "src", "-l", '"a b"', "'q'", "$x", '"$x"', "src/c.py", "head -5", "wc -l",
    "pwd", "true", "cd src", "x=a.py", "[ -f a.py ]", "*.py", "{a,b}", "a\\ b", '"$(ls)"', "$?", "$", "evil", "`evil`",
    "$(evil)", "# evil", "\\evil", "'", '"', "\\", "!", "time", "~", "-5", "2", "if", "fi", "{", "}", "EOF",
    "../secret",
]  # fmt: skip
SIGNS = [
    " ", " ", " ", " ", "\n", "; ", " && ", "||", " | ", "|&", "", " \\\n", "\\\n", " >/dev/null ", "2>&1 ", "<a.py ",
    "<<EOF\n", "\nEOF\n", "<<-EOF\n", "<<<", " #", "(", ")", ";;", "$(", "`", "<(",
]  # fmt: skip
FORMS = [
    'for f in @ @; do @ "$f"; done', "if @ @; then @ @; else @; fi", "case @ in @) @;; *) @;; esac", "(@ @; @) | @",
    'while read -r x; do @ "$x"; done < a.py', "cat <<EOF\n@ @\nEOF\n@ @", 'x=@; @ "$x"', "cd @ && @ @ | @", "@ <(@ @)",
    '@ "$(@ @)" @', "@ @ > /dev/null @", "@ @ 2>&1 | @ @", "! @ @", "@ @ # @\n@", "@ \\\n @ @", "@@@@@@",
]  # fmt: skip


def _line(chance):
    written = ""
    for character in chance.choice(FORMS):
        if character == "@":
            written += chance.choice(WORDS)
            written += chance.choice(SIGNS) + chance.choice(WORDS) if chance.random() < 0.2 else ""
        else:
            written += character
    return written


def _called(line, workspace, empty):
    reading, writing = os.pipe()
    with open(reading, "rb") as notes:
        try:
            subprocess.run(
                [str(BASH), "-c", f"exec 3>&{writing}; {NOTE}", line], cwd=workspace, stdin=subprocess.DEVNULL,
                capture_output=True, env={"PATH": str(empty)}, pass_fds=(writing,), timeout=20, check=False,
            )  # fmt: skip
        finally:
            os.close(writing)
        return [tuple(each.split("\0")[:-1]) for each in notes.read().decode().split("\1\0")[:-1]]


@pytest.mark.skipif(BASH is None, reason="needs bash")
def test_bash_calls_nothing_that_was_not_seen(context, tmp_path):
    empty = tmp_path / "empty"
    empty.mkdir()
    chance = random.Random(11)
    passed = 0
    for _ in range(1_500):
        line = _line(chance)
        analysis = analyse(line, context, TABLE)
        if not analysis.safe:
            continue
        passed += 1
        certain = {part.words for part in analysis.parts if part.literal}
        certain |= {words[1:] for words in certain if words[:1] == ("time",)}
        unsure = {part.program for part in analysis.parts if not part.literal}
        for called in _called(line, context.workspace, empty):
            assert called[0] in TABLE, line
            assert called in certain or called[0] in unsure or None in unsure or "time" in unsure, line
            assert "../secret" not in called or called[0] in ("grep", "echo", "true"), line
    assert passed > 40
