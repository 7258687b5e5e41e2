"""Secrets are masked whole, however their text comes: in one piece, in any pieces, overlapping, escaped, cut."""

import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from haft.contracts import MARK, NO_SECRETS, Secrets, named_secrets, says_secret

LETTERS = "zqx"
"""Few, so that secrets overlap themselves and one another; none is in the mark."""
secret_lists = st.lists(st.text(LETTERS, min_size=1, max_size=6), min_size=1, max_size=4)


def known(values: list[str]) -> Secrets:
    return Secrets(values, shortest=1)


def by_the_letter(text: bytes, secrets: list[str]) -> bytes:
    """The slow and obvious way: which bytes are part of an occurrence, and where the occurrences overlap."""
    spans = sorted(
        (at, at + len(secret)) for secret in secrets for at in range(len(text)) if text.startswith(secret.encode(), at)
    )
    shown, at, until = b"", 0, 0
    for start, end in spans:
        if start >= until:
            shown += text[at:start] + MARK.encode()
        at = until = max(until, end)
    return shown + text[at:]


@given(secret_lists, st.lists(st.text(f"{LETTERS}.", max_size=9), max_size=8))
@example(["zq", "qx"], ["zq", "x"])
@example(["zqzq"], ["zqz", "qzq", "z"])
@example(["xzqx", "zq"], ["xzq", "q"])
def test_a_stream_is_masked_as_the_whole_would_be_wherever_it_is_split(secrets, pieces):
    stream = known(secrets).stream()
    shown = b"".join(stream.feed(piece.encode()) for piece in pieces) + stream.end()
    whole = "".join(pieces).encode()
    assert shown == by_the_letter(whole, secrets) == known(secrets).masked_bytes(whole)
    assert known(secrets).masked_text(whole.decode()).encode() == shown
    left = shown.replace(MARK.encode(), b"|")
    assert not any(secret.encode() in left for secret in secrets)


@given(secret_lists, st.lists(st.text(f"{LETTERS}.", max_size=9), max_size=8))
def test_only_bytes_that_begin_a_secret_are_held_back(secrets, pieces):
    stream, shown, given_so_far = known(secrets).stream(), b"", b""
    for piece in pieces:
        shown += stream.feed(piece.encode())
        given_so_far += piece.encode()
        begun = max(
            (n for secret in secrets for n in range(len(secret)) if given_so_far.endswith(secret[:n].encode())),
            default=0,
        )
        # Whatever cannot be part of a secret that goes on is shown, whole.
        plain = by_the_letter(given_so_far, secrets).replace(MARK.encode(), b"")
        waiting = given_so_far[len(given_so_far) - begun :] if begun else b""
        assert plain.startswith(shown.replace(MARK.encode(), b""))
        assert len(plain) - len(shown.replace(MARK.encode(), b"")) <= len(waiting)
        if not begun:
            assert shown == by_the_letter(given_so_far, secrets)


def test_without_secrets_output_passes_as_the_same_object():
    data = b"x" * 100
    stream = NO_SECRETS.stream()
    assert stream.feed(data) is data and stream.end() == b""


def test_a_long_text_that_repeats_itself_takes_as_many_steps_as_any_other():
    secrets = Secrets(["z" * 9, "z" * 4000 + "q"])
    stream = secrets.stream()
    for _ in range(5):
        stream.feed(b"z" * 65536)
    assert stream.end() == b"", "all of it is one secret after another"


@pytest.mark.parametrize("secret", ["two\nlines of it", 'with "quotes" in', "pässwörd-☃-💾", "back\\slash\\es"])
def test_a_secret_is_masked_as_it_stands_in_json_too(secret):
    secrets = Secrets([secret])
    for text in (secret, json.dumps(secret)[1:-1], json.dumps(secret, ensure_ascii=False)[1:-1]):
        assert secrets.masked_text(f"<{text}>") == f"<{MARK}>"
        assert secrets.masked_bytes(f"<{text}>".encode()) == f"<{MARK}>".encode()


def test_values_names_and_numbers_of_a_result_are_masked_and_the_rest_stays():
    secrets = Secrets(["12345678", "hunter2hunter2"])
    value = {"a": ["x hunter2hunter2 y", 12345678, 1.5, True, None], "hunter2hunter2": {"b": "plain"}}
    assert secrets.masked(value) == {"a": [f"x {MARK} y", MARK, 1.5, True, None], MARK: {"b": "plain"}}


def test_what_a_cut_left_of_a_secret_is_masked():
    secrets = Secrets(["hunter2-hunter3-hunter4"])
    assert secrets.masked_text("it said hunter2-hunt…") == f"it said {MARK}…"
    assert secrets.masked_text("…-hunter3-hunter4 and more") == f"…{MARK} and more"
    assert secrets.masked_text("a hunter2-…") == f"a {MARK}…" and secrets.masked_text("hunter…") == "hunter…"


def test_short_values_are_not_looked_for():
    assert not Secrets(["1234567", "", "abc\n"])
    assert Secrets(["12345678\n"]).masked_text("a 12345678, b") == f"a {MARK}, b"


def test_secrets_are_not_printed_with_what_holds_them():
    assert "hunter2" not in repr(Secrets(["hunter2hunter2"]))


@pytest.mark.parametrize(
    "name",
    ["api_key", "apiKey", "OPENAI_API_KEY", "smtpPassword", "github-token", "DB_PASS", "secret", "client.secret", "key",
     "Authorization", "api_keys", "AWS_SECRET_ACCESS_KEY", "SENTRY_DSN", "dbPasswd", "X_PWD",
     "SLACK_WEBHOOK_URL"],
)  # fmt: skip
def test_names_say_that_a_value_is_secret(name):
    assert says_secret(name)


@pytest.mark.parametrize("name", ["PATH", "KEYBOARD", "PWD", "OLDPWD", "station", "compass", "monkey", "tokenizer"])
def test_other_names_do_not(name):
    assert not says_secret(name)


def test_whatever_stands_below_a_name_that_says_secret_is_secret():
    table = {"user": "me", "api_keys": ["a", {"b": "c"}], "deep": {"list": [{"token": "d"}, "e"]}}
    assert set(named_secrets(table)) == {"a", "c", "d"}
