"""Secrets never reach the disk, and taking them out breaks nothing."""

import asyncio
import json
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from haft.audit import Redactor, secret_values
from haft.contracts import MARK
from haft.service import ToolService
from haft.sources.python import tool
from haft.storage import decode, encode

SECRETS = [
    "hunter2hunter2",
    'with "quotes" and \\slashes\\',
    "two\nlines\tand a tab",
    "pässwörd-☃-💾",
    "-----BEGIN KEY-----\r\nabc+/=\r\n-----END KEY-----",
    "\x01\x02control\x7f",
]


@tool(readonly=True)
async def echo(words: dict, again: str = "") -> dict:
    """Hands back what it was handed."""
    return {"echoed": words}


@tool
async def fail(words: dict) -> str:
    """Fails, and says with what."""
    raise ValueError(f"cannot do anything with {words}")


async def yes(_request) -> bool:
    return True


def on_disk(home, but_for: tuple[str, ...] = ()) -> bytes:
    """Everything in the state home, but what files of the workspace held: that is kept as it is."""
    found = b""
    for where, _, names in os.walk(home):
        if not os.path.relpath(where, home).startswith(("blobs", "changes", *but_for)):
            for name in names:
                with open(os.path.join(where, name), "rb") as file:
                    found += file.read()
    return found


def forms(secret: str) -> set[bytes]:
    return {secret.encode(), json.dumps(secret)[1:-1].encode(), json.dumps(secret, ensure_ascii=False)[1:-1].encode()}


def call_with(tmp_path, words, **options):
    """Make calls with these arguments; the runs as they are read back."""
    (tmp_path / "workspace").mkdir(exist_ok=True)

    async def go():
        async with ToolService.open(
            tmp_path / "workspace", tools=[echo, fail], approver=yes, home=tmp_path / "home", installed=False, **options
        ) as service:
            outcomes = [
                await service.call("echo", {"words": words}),
                await service.call("fail", {"words": words}),
                await service.call("write_file", {"path": "x", "content": json.dumps(words, ensure_ascii=False)}),
                await service.call("no_such_tool", words),
                await service.call("shell", {"command": "true #" + str(next(iter(words.values()))).replace("\0", "")}),
            ]
            assert service.record.verify().intact
        return outcomes, service.runs(limit=100)

    return asyncio.run(go())


@pytest.mark.parametrize("secret", SECRETS)
@pytest.mark.parametrize("source", ["environment", "caller"])
def test_a_secret_in_arguments_results_and_errors_is_nowhere_on_disk(tmp_path, monkeypatch, secret, source):
    if source == "environment":
        monkeypatch.setenv("SERVICE_API_KEY", secret)
    words = {"plain": secret, "in": f"text {secret} around", "deep": [{"er": [secret]}], f"name {secret}": 1}
    _outcomes, runs = call_with(tmp_path, words, secrets=[secret] if source == "caller" else [])
    assert len(runs) == 5
    # A variable that no tool was granted is not looked for in what tools print.
    written = on_disk(tmp_path / "home", ("outputs",) if source == "environment" else ())
    assert MARK.encode() in written
    for form in forms(secret):
        assert form not in written


def test_variables_and_configuration_of_one_call_are_not_on_disk_either(tmp_path):
    (tmp_path / "workspace").mkdir()

    async def go():
        async with ToolService.open(
            tmp_path / "workspace", tools=[echo], approver=yes, home=tmp_path / "home", installed=False
        ) as service:
            words = {"a": "env-secret-1", "b": "config-secret-2"}
            await service.call(
                "echo", {"words": words}, env={"MY_TOKEN": "env-secret-1"}, config={"x": "config-secret-2"}
            )

    asyncio.run(go())
    written = on_disk(tmp_path / "home")
    assert b"env-secret-1" not in written
    assert b"config-secret-2" not in written


@pytest.mark.parametrize(
    "secret",
    ["output", "status", "startedAt", "in-progress", "record", "123456", "true, ", '":{"a"', "redacted", "double"],
)
def test_a_secret_that_looks_like_one_of_our_own_words_breaks_nothing(tmp_path, secret):
    outcomes, runs = call_with(tmp_path, {"pin": 1234567, "word": secret, secret: [secret, True]}, secrets=[secret])
    assert {run.id for run in runs} == {outcome.run_id for outcome in outcomes}
    assert {run.id: run.status for run in runs} == {outcome.run_id: outcome.status for outcome in outcomes}
    assert all(secret not in str(run.record["arguments"]).replace(MARK, "") for run in runs)


def test_the_names_of_variables_say_which_are_secret():
    env = {
        "GITHUB_TOKEN": "t" * 10, "AWS_SECRET_ACCESS_KEY": "s" * 10, "DB_PASSWORD": "p" * 10, "api_key": "k" * 10,
        "SENTRY_DSN": "d" * 10, "PATH": "/usr/bin:/bin", "KEYBOARD": "qwertyui", "SHORT_TOKEN": "abc",
    }  # fmt: skip
    assert {value[0] for value in secret_values(env)} == {"t", "s", "p", "k", "d"}


def test_the_longer_of_two_secrets_goes_first():
    redactor = Redactor(["secret", "secret-and-more"])
    assert decode(redactor(encode({"arguments": {"a": "secret-and-more"}}))) == {"arguments": {"a": MARK}}


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=10,
)


@given(values, st.lists(st.text(min_size=6, max_size=9), max_size=3), st.booleans())
def test_taking_secrets_out_always_leaves_json_and_leaves_the_rest_alone(value, secrets, plant):
    if plant and secrets:
        value = [value, {secrets[0]: f"a {secrets[0]} b"}]
    document = {"run": "r_1", "arguments": value, "noted": [[1, 2.0, "progress", "in-progress", {"message": "m"}]]}
    cleaned = decode(Redactor(secrets)(encode(document)))
    assert cleaned["run"] == "r_1"
    flat = json.dumps(document["arguments"], ensure_ascii=False)
    if not any(json.dumps(secret, ensure_ascii=False)[1:-1] in flat for secret in secrets):
        assert cleaned["arguments"] == value
    elif plant:
        assert secrets[0] not in str(next(iter(cleaned["arguments"][1].values()))) or secrets[0] in MARK
