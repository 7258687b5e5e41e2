"""What a session over HTTP keeps for a client that comes back."""

import asyncio

import pytest
from mcp.server import Server
from mcp_types import JSONRPCNotification

from haft.surfaces.mcp.over_http import kept_events
from haft.surfaces.mcp.over_http.app import application
from haft.surfaces.mcp.over_http.kept_events import KeptEvents


def message(number):
    return JSONRPCNotification(jsonrpc="2.0", method="notifications/message", params={"data": f"{number}"})


def replayed(events, after):
    async def replay():
        found = []

        async def take(event):
            found.append(event.message.params["data"])

        return await events.replay_events_after(after, take), found

    return asyncio.run(replay())


@pytest.fixture
def filled():
    """Two streams of one session, in turns: the ids of their events."""

    async def fill(events, numbers):
        return [await events.store_event("even" if number % 2 == 0 else "odd", message(number)) for number in numbers]

    def filled(numbers):
        events = KeptEvents()
        return events, asyncio.run(fill(events, numbers))

    return filled


def test_a_client_that_comes_back_gets_what_it_missed_of_its_stream_and_nothing_else(filled):
    events, ids = filled(range(6))
    assert replayed(events, ids[0]) == ("even", ["2", "4"])
    assert replayed(events, ids[3]) == ("odd", ["5"])
    assert replayed(events, ids[5]) == ("odd", [])


def test_an_event_that_is_not_kept_names_no_stream(filled):
    events, ids = filled(range(kept_events.MOST_EVENTS + 2))
    assert replayed(events, "guessed") == (None, [])
    assert replayed(events, ids[0]) == (None, [])
    assert replayed(events, ids[-3])[1] == [str(kept_events.MOST_EVENTS + 1)]


def test_large_messages_push_older_ones_out(filled, monkeypatch):
    monkeypatch.setattr(kept_events, "MOST_BYTES", 300)
    events, ids = filled(range(20))
    assert replayed(events, ids[0]) == (None, []) and replayed(events, ids[-2]) == ("even", [])


def test_ids_are_not_to_be_guessed_and_sessions_share_nothing(filled):
    _, ids = filled(range(4))
    other, others = filled(range(4))
    assert not {*ids} & {*others} and all(len(each) > 20 for each in ids)
    assert replayed(other, ids[0]) == (None, [])


def test_each_session_of_a_server_has_a_store_of_its_own():
    server = Server("some")
    application(server)
    one, other = (server.session_manager._admit_session(None) for _ in range(2))
    assert isinstance(one._event_store, KeptEvents) and one._event_store is not other._event_store


def test_one_client_cannot_open_all_sessions(monkeypatch):
    monkeypatch.setattr(kept_events, "MOST_SESSIONS_OF_ONE", 2)
    server = Server("some")
    application(server)
    admit = server.session_manager._admit_session
    assert [admit("one") is not None for _ in range(3)] == [True, True, False]
    assert admit("other") is not None
