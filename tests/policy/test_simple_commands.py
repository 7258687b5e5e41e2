"""The simple commands of a line, for the rules of other programs."""

from __future__ import annotations

import pytest

from haft.policy import split_commands


def words(line: str) -> list[str]:
    return [" ".join(word.raw for word in command.words) for command in split_commands(line).commands]


@pytest.mark.parametrize(
    ("line", "commands"),
    [
        ("a && b || c; d & e | f", ["a", "b", "c", "d", "e", "f"]),
        ("echo $(a \"$(b)\") `c` <(d)", ["echo $(a \"$(b)\") `c` <(d)", "a \"$(b)\"", "b", "c", "d"]),
        ("f() { a; }; if b; then c; else d; fi; (e)", ["a", "b", "c", "d", "e"]),
        ("while a; do b; done; for x in $(c); do d; done; case $(e) in x) f;; esac", ["a", "b", "c", "d", "e", "f"]),
        ("A=1 B=$(a) b; x=$(c); export C=$(d)", ["b", "a", "c", "export C=$(d)", "d"]),
        ("! a; time b", ["a", "time b"]),
        ("cat <<EOF\n$(a)\nEOF", ["cat", "a"]),
    ],
)  # fmt: skip
def test_commands_are_found_wherever_they_are(line: str, commands: list[str]) -> None:
    assert words(line) == commands
    assert split_commands(line).is_complete


@pytest.mark.parametrize(
    "line", ["", "(", "echo 'open", "a\x00b", "a\ud800", "x=1", "> file", "a;" * 9_000, "a " * 20_000]
)
def test_what_cannot_be_split_is_said(line: str) -> None:
    assert not split_commands(line).is_complete


def test_a_word_is_known_as_written_and_without_its_quotes() -> None:
    (command,) = split_commands('A=\'1 2\' git commit -m "it\'s" "$x" a\\ b 2> log').commands
    assert command.assignments == ("A='1 2'",)
    assert [word.literal for word in command.words] == ["git", "commit", "-m", "it's", None, "a b"]
    assert [(each.operator, each.target.raw) for each in command.redirections] == [("2>", "log")]
