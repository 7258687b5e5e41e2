from __future__ import annotations

import contextlib
import os
import pty
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdd.pack import ranked, split
from cdd.terms import terms

LOGIN = """# Login

The user gives a name and a password.

## Tokens

A session token expires after a day.

```sh
token --expire

token --list
```

Nothing about money here.
"""
BILLING = """# Billing

The user pays by invoice. The invoice names the user.

A token of thanks goes to the user.
"""


@pytest.fixture
def specs(cdd):
    cdd.done("init")
    cdd.write(".context/specs/auth/login.md", LOGIN)
    cdd.write(".context/specs/billing.md", BILLING)
    return cdd


def test_paragraphs_that_fit_come_best_first_and_grouped_by_file(specs):
    told = specs.done("pack", "--focus", "expiry: when does a token expire")
    assert [line for line in told.splitlines() if line.startswith("===")] == [
        "=== .context/specs/auth/login.md",
        "=== .context/specs/billing.md",
    ]
    assert told.index("expires after a day") < told.index("token of thanks")
    assert "[lines 5-7; Login > Tokens]\n## Tokens\n\nA session token" in told
    assert "by invoice" not in told and "password" not in told


@pytest.mark.parametrize("option", ["-l", "--limit"])
def test_a_limit_shows_the_best_and_says_of_how_many(specs, option):
    whole = specs.done("pack", "--focus", "token")
    assert whole.count("\n[line") == 4 and "showing" not in whole
    told = specs.done("pack", "--focus", "token", option, "1")
    assert told.startswith("showing 1 of 4\n") and told.count("\n[line") == 1
    assert told.split("\n[", 1)[1].split("]\n")[0] == whole.split("\n[", 1)[1].split("]\n")[0]
    assert specs.done("pack", "--focus", "token", option, "9") == f"showing 4 of 4\n\n{whole}"


@pytest.mark.parametrize("limit", ["0", "-1", "abc", "1.5", ""])
def test_a_limit_that_is_no_count_is_wrong_usage(specs, limit):
    result = specs("pack", "--focus", "token", "--limit", limit)
    assert (result.exit_code, result.stdout) == (2, "")
    assert f"'{limit}' is not a number of paragraphs: give a whole number from 1 up" in result.stderr


def test_raw_is_plain_text_on_a_terminal_too(specs):
    def shown(*words: str) -> str:
        ours, theirs = pty.openpty()
        command = [sys.executable, "-m", "cdd", "pack", "-f", "day", *words]
        env = {**os.environ, "TERM": "xterm"}
        process = subprocess.Popen(command, cwd=specs.path, stdout=theirs, stderr=theirs, env=env)
        os.close(theirs)
        text = b""
        with contextlib.suppress(OSError):  # how a terminal says that its other end is closed
            while piece := os.read(ours, 65536):
                text += piece
        assert process.wait(timeout=60) == 0
        os.close(ours)
        return text.decode().replace("\r\n", "\n")

    plain = specs.done("pack", "--focus", "day")
    assert "\x1b" not in plain
    assert "\x1b[1m=== .context/specs/auth/login.md" in shown()
    assert shown("--raw") == shown("-r") == plain == specs.done("pack", "--focus", "day", "--raw")


def test_a_rare_word_counts_more_than_a_common_one(specs):
    specs.write(".context/specs/users.md", "A user.\n\nThe user, a user.\n\nUser by user by user.\n")
    told = specs.done("pack", "--focus", "user names with an asterisk, user invoice, thanks to the user")
    assert told.index("token of thanks") < told.index("User by user")
    found = ranked(
        tuple(split("f", "alpha alpha\n\nalpha alpha\n\nalpha alpha\n\nbeta of many other words")), "alpha beta"
    )
    assert found[0].text.startswith("beta")


def test_a_code_block_stays_whole(specs):
    assert "```sh\ntoken --expire\n\ntoken --list\n```\n" in specs.done("pack", "--focus", "token list")


def test_a_title_and_a_files_name_help_to_find_what_lies_under_them(specs):
    specs.write(".context/specs/shipping.md", "# Parcels\n\nThey go by train.\n")
    for focus in ("parcel", "shipping"):
        assert "They go by train." in specs.done("pack", "--focus", focus)


@pytest.mark.parametrize("focus", ["submarine", "the of and", "!!!", "潜水艦"])
def test_it_says_when_nothing_fits(specs, focus):
    specs.write(".context/specs/billing.md", "Invoices only.")
    specs.write(".context/specs/auth/login.md", "Passwords only.")
    assert "Nothing in .context/specs fits" in specs.done("pack", "--focus", focus)


def test_it_says_when_there_is_nothing_to_read(cdd):
    cdd.done("init")
    assert "There are no specifications in .context/specs" in cdd.done("pack", "--focus", "x")


@pytest.mark.parametrize("focus", ["", " \n"])
def test_an_empty_focus_is_refused(specs, focus):
    assert "focus is empty" in specs.refused("pack", "--focus", focus)


def test_hidden_files_are_passed_over_and_files_that_are_no_text_are_named(specs):
    specs.write(".context/specs/.draft.md", "zebra")
    specs.write(".context/specs/.git/x.md", "zebra")
    specs.write(".context/specs/image.png", "zebra\0")
    result = specs("pack", "--focus", "zebra")
    assert "Nothing" in result.stdout
    assert result.stderr == "skipped .context/specs/image.png: it is not text\n"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("caching", "cache"), ("caches", "cached"), ("policies", "policy"), ("parseUrl", "url"), ("parse_url", "URL"),
        ("HTTPServer", "server"), ("ＡＢＣ", "abc"), ("ログイン画面", "画面"), ("Straße", "STRASSE"),
    ],
)  # fmt: skip
def test_words_that_mean_the_same_share_a_term(one, other):
    assert set(terms(one)) & set(terms(other))


@pytest.mark.parametrize("word", ["class", "status", "basis", "red", "king", "axe"])
def test_short_words_and_false_endings_stay_whole(word):
    assert terms(word) == [word]


def test_words_that_only_hold_sentences_together_are_no_terms():
    assert terms("It is what it is") == []


@given(st.lists(st.sampled_from(["# a", "## b", "", " ", "text", "```", "- [ ] c", "    d"])))
def test_paragraphs_are_the_lines_where_they_say_they_stand(lines):
    for paragraph in split("f", "\n".join(lines)):
        first, last = paragraph.lines
        assert "\n".join(lines[first - 1 : last]) == paragraph.text
        assert paragraph.text.strip()


@given(st.lists(st.text(max_size=30), max_size=8), st.text(max_size=30))
def test_whatever_is_ranked_is_a_paragraph_that_shares_a_term(texts, focus):
    paragraphs = tuple(paragraph for number, text in enumerate(texts) for paragraph in split(f"{number}", text))
    found = ranked(paragraphs, focus)
    assert len(set(found)) == len(found) and set(found) <= set(paragraphs)
    for paragraph in found:
        assert set(terms(focus)) & set(terms(f"{paragraph.text} {' '.join(paragraph.titles)} {paragraph.file}"))
