"""The commands that a rewritten line begins with, for the agent's own rules: they never run, whatever they contain."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import sampling
from haft.service import SimpleCommand, WrittenWord
from haft.surfaces.hook import never_run as module
from haft.surfaces.hook.never_run import MOST_COMMANDS, UNREAD, never_run

CORPORA = Path(__file__).parents[2] / "policy" / "corpora"
SHELLS = [shell for shell in ("bash", "zsh", "dash") if shutil.which(shell)]
SHOWN = {
    "touch a && rm -f b": "false && { touch a; rm -f b; }",
    "npm test 2>&1 | tee -a log": "false && { npm test 2>&1; tee -a log; }",
    "A=1 B='x y' C=$(id) make -j4": "false && { A=1 B='x y' C='$(id)' make -j4; id; }",
    "rm -rf ~/* \"$HOME/x\" {a,b}": "false && { rm -rf ~/* \"$HOME/x\" '{a,b}'; }",
    "find . -exec rm {} \\;": "false && { find . -exec rm '{}' ';'; }",
    "echo \"$(cat a)\" > b": "false && { echo '\"$(cat a)\"' > b; cat a; }",
    "cat <<'EOF' > x\nrm y\nEOF": "false && { cat < /dev/null > x; }",
    "for i in *; do rm \"$i\"; done > log": "false && { rm \"$i\" > log; }",
    "f() { rm x; }; f": "false && { rm x; f; }",
    "time rm x": "false && { rm x; }",
    "'if' x": "false && { 'if' x; }",
    "! git push --force": "false && { git push --force; }",
    "ls; ls; ls": "false && { ls; }",
}  # fmt: skip
PLAIN = {
    "touch a && rm -f b": "false && touch a && rm -f b",
    'A=1 make "it\'s" > log': "false && make 'it'\"'\"'s'",
    "export A=1; cd \"$HOME\" && 'if' x; git push": "false && cd '\"$HOME\"' && git push",
    "time rm x": "false && rm x",
    "echo $(rm x)": "false && echo '$(rm x)' && rm x",
    "(((": "",
}
PIECES = st.sampled_from([
    "ls", "touch x", "echo", "a", "$x", '"$x"', "'q'", '"', "'", "`", "\\", "$(", ")", "(", "{", "}", ";", "&&", "&",
    " ", "\n", "\\\n", ">", "<", "<<EOF\n", "\nEOF\n", "[[", "]]", "[", "]", "#", "=", "*", "~", "for", "in", "do",
    "done", "if", "then", "fi", "case", "esac", ";;", "!", "time", "2>&1", "<(", "$((", "))", "é", "x=", "|", "||",
    "|&", "touch a[", "export a=(", "<<<", "{a,b}", "$'", '$"', "${x:=", "coproc", "function f", "\t", "true", "-",
])  # fmt: skip
TEXT = st.one_of(st.lists(PIECES, max_size=12).map("".join), st.text(max_size=40))
WORDS = st.builds(WrittenWord, TEXT, st.one_of(st.none(), TEXT))


def runs(shell: str, text: str, cwd: Path) -> tuple[str, str, list[str]]:
    """What a shell prints and traces for a line that begins with this text, and the files that are there then."""
    line = f"set -x\n{text}; printf ended"
    done = subprocess.run(
        [shutil.which(shell) or shell, "-c", line],
        cwd=cwd,
        env={"PATH": "/nowhere", "PS4": "+ ", "LC_ALL": "C.UTF-8"},
        capture_output=True,
        stdin=subprocess.DEVNULL,
    )
    return done.stdout.decode(), done.stderr.decode("utf-8", "replace"), os.listdir(cwd)


def check(text: str, cwd: Path) -> None:
    if not text:
        return
    for shell in SHELLS:
        assert runs(shell, text, cwd) == ("ended", "+ false\n+ printf ended\n", []), (shell, text)


@pytest.mark.parametrize("command", SHOWN)
def test_the_commands_are_shown_as_they_were_written(command: str, tmp_path: Path) -> None:
    assert never_run(command, is_plain=False) == SHOWN[command]
    check(SHOWN[command], tmp_path)


@pytest.mark.parametrize("command", PLAIN)
def test_codex_gets_only_plain_words(command: str, tmp_path: Path) -> None:
    assert never_run(command, is_plain=True) == PLAIN[command]
    check(PLAIN[command], tmp_path)


@pytest.mark.parametrize(
    "command", ["(((", "> file", "echo \x01", 'echo "open', ";".join(f"touch {n}" for n in range(200))]
)
def test_what_is_not_shown_has_a_name_of_its_own(command: str, tmp_path: Path) -> None:
    shown = never_run(command, is_plain=False)
    assert shown.count(UNREAD) == 1 and shown.count(";") <= MOST_COMMANDS + 1
    other = never_run(f"{command} other", is_plain=False)
    assert shown.partition(UNREAD)[2] != other.partition(UNREAD)[2], "an answer for one covers the other"
    check(shown, tmp_path)


@settings(max_examples=2000 if sampling.IS_WHOLE else 60, deadline=None, suppress_health_check=list(HealthCheck))
@given(command=TEXT, is_plain=st.booleans())
def test_no_command_of_any_text_runs(command: str, is_plain: bool, tmp_path: Path) -> None:
    check(never_run(command, is_plain=is_plain), tmp_path)


@settings(max_examples=2000 if sampling.IS_WHOLE else 60, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    commands=st.lists(st.builds(SimpleCommand, st.lists(TEXT, max_size=2), st.lists(WORDS, min_size=1)), max_size=3),
    is_plain=st.booleans(),
)
def test_nothing_runs_even_if_the_parser_is_wrong(
    commands: list[SimpleCommand], is_plain: bool, tmp_path: Path
) -> None:
    class Found:
        is_complete = False

    Found.commands = commands  # type: ignore[attr-defined]  # as the parser would answer
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "split_commands", lambda _command: Found)
        shown = never_run("any", is_plain=is_plain)
    if "\0" not in shown:  # No command line can hold it.
        check(shown, tmp_path)


def corpus() -> list[str]:
    return [
        json.loads(line)["command"]
        for name in ("harmful", "harmless_other", "harmless_seed")
        for line in (CORPORA / f"{name}.jsonl").read_text().splitlines()
    ]


def test_no_command_of_the_corpora_runs(tmp_path: Path) -> None:
    known = corpus()
    for command in sampling.some(known, 100, "corpora for never_run") if sampling.IS_DAILY else known:
        for is_plain in (False, True):
            check(never_run(command, is_plain=is_plain), tmp_path)


def test_an_alias_of_the_agents_shell_runs_nothing(tmp_path: Path) -> None:
    shown = never_run("both a", is_plain=False)
    script = f"shopt -s expand_aliases\nalias both='touch x; touch y || touch z'\n{shown}; echo ended"
    done = subprocess.run(["bash", "-c", script], cwd=tmp_path, capture_output=True, text=True)
    assert (done.stdout, done.stderr, os.listdir(tmp_path)) == ("ended\n", "", [])
