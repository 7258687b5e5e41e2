"""The feed: runs, requests and tools of a workspace, of this process and of others, and who sees what of them."""

import json
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from haft.contracts import Principal
from haft.service import Tokens
from haft.sources.python import tool

from .talking import events_in

W = "/api/v1/workspaces/default"


class Listener:
    """Reads a feed in a thread."""

    def __init__(self, running, client, path=f"{W}/events", **params):
        self.events = []
        self._running = running
        self._client, self._path, self._params = client, path, params
        self._thread = threading.Thread(target=self._read, daemon=True)

    def _read(self):
        with self._client.stream("GET", self._path, params=self._params) as answer:
            for event in events_in(answer.iter_lines()):
                self.events.append(event)

    def until(self, wanted):
        """The first event that is wanted, now or later."""
        ends = time.monotonic() + 60
        while time.monotonic() < ends:
            for event in [*self.events]:
                if wanted(event):
                    return event
            time.sleep(0.01)
        raise AssertionError(f"never came: {[(each.kind, each.data) for each in self.events]}")

    def __enter__(self):
        self._thread.start()
        self.until(lambda event: event.kind == "ready")
        return self

    def __exit__(self, *_error):
        async def end_all():
            for stream in self._running.server.hub.streams:
                stream.subscriber.end()

        self._running.run(end_all())
        self._thread.join()


def call(running, name, arguments, who="ann"):
    async def begin():
        return running.server.workspaces.find("default").service.call(name, arguments, who=Principal(who)).id

    return running.run(begin())


def of_run(run, status):
    return lambda event: event.kind == "run" and (event.data["run"]["id"], event.data["run"]["status"]) == (run, status)


@pytest.fixture(scope="module")
def reader(running):
    """A client that sees all runs and the inbox."""
    _, token = Tokens(running.home).add("eve", Principal("tester"), kind="person", roles=["reader"])
    with running.client("eve2") as found:
        found.headers["Authorization"] = f"Bearer {token}"
        yield found


def test_a_reader_sees_runs_requests_and_tools_of_everyone(running, reader):
    @tool
    def added() -> None:
        """Needs approval."""

    async def add():
        running.server.workspaces.find("default").service.add(added)

    with Listener(running, reader) as feed:
        running.run(add())
        feed.until(lambda event: event.kind == "tools")
        run = call(running, "added", {})
        feed.until(of_run(run, "blocked-on-user"))
        asked = feed.until(lambda event: event.kind == "inbox" and event.data["request"]["run"] == run)
        assert (asked.data["request"]["state"], asked.data["request"]["who"]) == ("open", "ann")

        async def approve():
            service = running.server.workspaces.find("default").service
            await service.approve(asked.data["request"]["id"], who=Principal("tester"))

        running.run(approve())
        ended = feed.until(of_run(run, "done"))
        assert ended.data["run"]["who"] == "ann"
        feed.until(lambda event: event.kind == "inbox" and event.data["request"]["state"] == "closed")


def test_a_caller_sees_only_its_own_runs(running, client):
    with running.client("carl") as carl, Listener(running, carl) as feed:
        other, own = call(running, "talk", {"steps": []}), call(running, "talk", {"steps": []}, who="carl")
        feed.until(of_run(own, "done"))
        last = call(running, "talk", {"steps": []}, who="carl")
        feed.until(of_run(last, "done"))
        assert other not in json.dumps([each.data for each in feed.events])


def test_runs_of_other_processes_are_in_the_feed(running, reader, tmp_path):
    go = tmp_path / "go"
    host = Path(__file__).with_name("elsewhere.py")
    words = [sys.executable, str(host), str(running.workspace), str(running.home), json.dumps([f"wait {go}"])]
    with (
        Listener(running, reader, "/api/v1/events") as feed,
        subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process,
    ):
        try:
            run = process.stdout.readline().strip()
            feed.until(of_run(run, "in-progress"))
        finally:
            go.touch()
        feed.until(of_run(run, "done"))


def test_the_events_of_a_run_that_a_page_shows_are_in_its_feed(running, client, tmp_path):
    go = tmp_path / "go"
    run = call(running, "talk", {"steps": ["out one", f"wait {go}", "out two"]})
    with Listener(running, client, run=run) as feed:
        feed.until(lambda event: event.kind == "stdout" and event.data["text"] == "one")
        go.touch()
        two = feed.until(lambda event: event.kind == "stdout" and event.data["text"] == "two")
        feed.until(lambda event: event.kind == "outcome")
    with Listener(running, client, "/api/v1/events", run=f"default/{run}:{two.data['seq'] - 1}") as feed:
        feed.until(lambda event: event.kind == "outcome")
        assert [each.data["text"] for each in feed.events if each.kind == "stdout"] == ["two"]


def test_a_client_that_comes_back_misses_nothing_and_is_told_if_it_missed_too_much(running, client):
    with Listener(running, client) as feed:
        start = feed.until(lambda event: event.kind == "ready").id
        first = call(running, "talk", {"steps": []})
        feed.until(of_run(first, "done"))
    second = call(running, "talk", {"steps": []})
    with Listener(running, client, after=start) as feed:
        feed.until(of_run(first, "done"))
        feed.until(of_run(second, "done"))
        ids = [each.id for each in feed.events if each.kind == "run"]
        assert len(set(ids)) == len(ids) and "gap" not in [each.kind for each in feed.events]
    for stranger in ("other.5", start.partition(".")[0] + ".999999", "x", "."):
        with Listener(running, client, after=stranger) as feed:
            assert feed.events[0].kind == "gap" and feed.events[0].data == {"from": None}


@pytest.mark.parametrize("run", ["default/r_1", "r_1:x"])
def test_a_run_that_is_named_wrongly_is_refused(client, run):
    assert client.get(f"{W}/events", params={"run": run}).status_code in (404, 422)


def test_a_feed_shows_only_so_many_runs(client):
    answer = client.get(f"{W}/events", params={"run": [f"r_{n}" for n in range(21)]})
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid-request")


def test_nobody_has_the_feed_of_a_workspace_that_does_not_exist(client):
    assert client.get("/api/v1/workspaces/other/events").status_code == 404
