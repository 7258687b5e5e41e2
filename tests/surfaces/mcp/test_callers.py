"""Who makes a request, and in which thread: the token or the pipe decides, and never what a client says of itself."""

import json
from types import SimpleNamespace

import pytest

from haft.service import ClientToken
from haft.surfaces.mcp.callers import SCOPE_KEY, Callers, thread_name

ONE, OTHER = ClientToken("codex", "1111", "", "ana"), ClientToken("gemini", "2222", "", "ana")
DAY = 86_400


def context(token=None, *, meta=None, software="", session=None, over_http=None):
    client = SimpleNamespace(client_info=SimpleNamespace(name=software)) if software else None
    request = None
    if token is not None or over_http:
        headers = {} if session is None else {"mcp-session-id": session}
        request = SimpleNamespace(scope={} if token is None else {SCOPE_KEY: token}, headers=headers)
    return SimpleNamespace(request=request, meta=meta, session=SimpleNamespace(client_params=client))


def test_over_http_the_token_says_who_calls_whatever_the_client_calls_itself():
    callers = Callers("ana")
    caller = callers.of(context(ONE, software="gemini", meta={"who": "ana", "kind": "person"}))
    assert (caller.name, caller.principal.who, caller.principal.kind) == ("codex", "codex", "agent")
    assert caller.software == "gemini" and caller.key != callers.of(context(OTHER, software="codex")).key


def test_a_request_over_http_without_a_checked_token_is_nobodys():
    with pytest.raises(PermissionError):
        Callers("ana").of(context(over_http=True, software="codex"))


def test_a_thread_name_is_one_among_the_clients_own_threads():
    callers = Callers("ana")
    mine = callers.of(context(ONE, meta={"threadId": "one"})).thread
    assert mine == callers.of(context(ONE, meta={"threadId": "one"}, session="s", software="x")).thread
    assert mine == Callers("ana").of(context(ONE, meta={"threadId": "one"})).thread, "also after a restart"
    others = {
        callers.of(context(ONE, meta={"threadId": "two"})).thread,
        callers.of(context(ONE)).thread,
        callers.of(context(OTHER, meta={"threadId": "one"})).thread,
        callers.of(context(OTHER, meta={"threadId": mine})).thread,
        callers.of(context(meta={"threadId": "one"}, software="codex")).thread,
        callers.of(context(meta={"threadId": mine}, software="codex")).thread,
    }
    assert mine not in others and len(others) == 6
    assert all(thread.startswith("T-") for thread in others)


def test_the_threads_of_a_new_token_are_not_those_of_the_revoked_one_with_the_same_name():
    again = ClientToken("codex", "3333", "", "ana")
    callers = Callers("ana")
    assert callers.of(context(ONE, meta={"threadId": "one"})).thread != (
        callers.of(context(again, meta={"threadId": "one"})).thread
    )


def test_without_a_name_there_is_a_thread_for_each_session_or_for_each_token_and_day():
    now = [10.0 * DAY]
    callers = Callers("ana", clock=lambda: now[0])
    today, session = callers.of(context(ONE)).thread, callers.of(context(ONE, session="s1")).thread
    assert session not in (today, callers.of(context(ONE, session="s2")).thread)
    assert callers.of(context(OTHER, session="s1")).thread != session
    now[0] += DAY - 1
    assert callers.of(context(ONE)).thread == today != callers.of(context(OTHER)).thread
    now[0] += 1
    assert callers.of(context(ONE)).thread != today
    assert callers.of(context(ONE, session="s1")).thread == session


def test_over_stdio_each_process_is_a_thread_and_the_first_name_counts():
    callers = Callers("ana")
    first = callers.of(context(software="claude-code"))
    later = callers.of(context(software="codex"))
    assert (first.name, later.name, later.software) == ("claude-code", "claude-code", "codex")
    assert first.thread == later.thread != Callers("ana").of(context(software="claude-code")).thread
    assert first.key == Callers("ana").of(context(software="claude-code")).key, "so that its states outlive a restart"


@pytest.mark.parametrize(
    ("software", "name"),
    [("", "mcp-client"), ("ana", "ana-client"), ("a b\n\u202e", "a_b__"), ("x" * 100, "x" * 64)],
)
def test_a_stdio_client_gets_a_name_that_nobody_else_has_and_that_can_be_read(software, name):
    assert Callers("ana").of(context(software=software)).name == name


@pytest.mark.parametrize(
    ("meta", "name"),
    [
        (None, None),
        ({}, None),
        ({"threadId": "t"}, "t"),
        ({"haft/thread": "h", "threadId": "t"}, "h"),
        ({"x-codex-turn-metadata": {"thread_id": "c"}}, "c"),
        ({"x-codex-turn-metadata": json.dumps({"thread_id": "c"})}, "c"),
        ({"x-codex-turn-metadata": "{"}, None),
        ({"x-codex-turn-metadata": "[" * 100_000}, None),
        ({"x-codex-turn-metadata": ["thread_id"]}, None),
        ({"threadId": 7}, None),
        ({"threadId": ""}, None),
        ({"threadId": {"a": "b"}, "x-codex-turn-metadata": {"thread_id": None}}, None),
        ({"threadId": "x" * 1001}, None),
    ],
)
def test_only_text_is_a_thread_name(meta, name):
    assert thread_name(meta) == name


def test_a_stdio_client_cannot_take_the_name_of_a_client_with_a_token():
    callers = Callers("ana", token_names=lambda: {"codex", "ana-client"})
    over_stdio = callers.of(context(software="codex"))
    assert over_stdio.name == "codex-stdio" and over_stdio.key == "stdio:codex-stdio"
    assert Callers("ana", token_names=lambda: {"ana-client"}).of(context(software="ana")).name == "ana-client-stdio"
