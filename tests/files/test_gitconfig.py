"""Configuration is read as git reads it: real git is the judge."""

import random
import subprocess

import pytest

from haft.files.gitconfig import Malformed, parsed, shareable_gitconfig

TEXTS = [
    "[core]\n\thooksPath = .hk\n",
    "[core] hooksPath=.hk ; comment\n",
    "[CORE]\nHooksPath = a # b\n",
    '[a "B c"]\nx = "y z"  w  \n',
    '[a "B\\"c\\\\d"]\nx = 1\n',
    "[a.B.c]\nx=1\n",
    '[a.B "C"]\nx=1\n',
    "[a]\nx\ny =\nz = \\\n  on\\\n ward\n",
    '[a]\nx = "a;b#c" d ; e\n',
    '[a]\nx = a\\tb\\nc\\\\d\\"e\n',
    "[a]\r\nx = 1\r\ny = 2\\\r\n3\r\n",
    "[a]\nx = 1\r2\n",
    "[a] x = 1 [b] y = 2\n",
    "[a][b]x=1",
    "\ufeff[a]\nx=1\n",
    "[a]\nx = 1\n\ufeff[b]\n",
    "[a ]\nx=1\n",
    "[ a]\nx=1\n",
    "[a\nx=1\n",
    '[a "b]\nx=1\n',
    '[a "b" ]\nx=1\n',
    "[a]\n1x = 1\n",
    "[a]\nx y = 1\n",
    '[a]\nx = "open\n',
    "[a]\nx = \\q\n",
    "[a]\nx = # nothing\ny = 2\n",
    "# only\n; comments",
    "[a]\nx = 1 \\",
    "[a]\nx = é ü\n",
    "[a]\n\x0bx = 1\n",
    "[a]\nx = \x0b1\x0c\n",
    "[a]\nx-y = 1\n",
    "[a-b.c]\nx = 1\n",
    '[a ""]\nx = 1\n',
]


def by_git(text, place):
    place.write_bytes(text.encode())
    done = subprocess.run(["git", "config", "--file", place, "--list", "-z"], capture_output=True)
    if done.returncode:
        return None
    lines = [line.partition(b"\n") for line in done.stdout.split(b"\0")[:-1]]
    return [(key.decode(), value.decode()) for key, _line, value in lines]


def by_us(text):
    try:
        return [(each.key, each.value) for each in parsed(text)]
    except Malformed:
        return None


@pytest.mark.parametrize("text", TEXTS)
def test_it_is_read_as_git_reads_it(text, tmp_path):
    assert by_us(text) == by_git(text, tmp_path / "config")


def test_chance_finds_nothing_that_git_reads_otherwise(tmp_path):
    chance = random.Random(4)
    words = [
        "[core]",
        '[a "b"]',
        "[",
        "]",
        '"',
        "\\",
        "\n",
        "\n",
        "=",
        " ",
        "\t",
        "x",
        "hooksPath",
        "#",
        ";",
        "\r",
        ".",
    ]
    for _ in range(300):
        text = "[a]\n" + "".join(chance.choices(words, k=chance.randint(1, 14)))
        assert by_us(text) == by_git(text, tmp_path / "config"), text


def test_a_zero_byte_is_not_understood():
    assert by_us("[a]\nx = 1\0\n") is None


def test_what_a_call_may_know_is_written_so_that_git_reads_the_same(tmp_path):
    name = 'Ann "A" \\ B; #1'
    subprocess.run(["git", "config", "--file", tmp_path / ".gitconfig", "user.name", name], check=True)
    (tmp_path / "copy").write_text(shareable_gitconfig(str(tmp_path), {}))
    read = ["git", "config", "--file", tmp_path / "copy", "user.name"]
    assert subprocess.run(read, capture_output=True, text=True, check=True).stdout == name + "\n"
