"""The stream of one run: the numbers that every observer sees; live, later, resumed anywhere, from other processes."""

import json
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from haft.contracts import Principal
from haft.runs import History, follow
from haft.storage import StateHome

from .talking import Heard, events_in

W = "/api/v1/workspaces/default"
SCRIPT = [
    "out one",
    "progress half",
    "err two",
    "bytes c3",  # A character in two pieces.
    "bytes a9",
    "out three",
]


def begin(running, steps, who="ann") -> str:
    """Begin a call that goes on; its run."""

    async def call():
        return running.server.workspaces.find("default").service.call("talk", {"steps": steps}, who=Principal(who)).id

    return running.run(call())


def listen(client, run, after=None, until=None) -> list[Heard]:
    """The events of a run, to the end of the stream or to the first one that fits."""
    headers = {} if after is None else {"Last-Event-ID": str(after)}
    heard = []
    with client.stream("GET", f"{W}/runs/{run}/events", headers=headers) as answer:
        assert answer.status_code == 200, answer.read()
        assert answer.headers["content-type"] == "text/event-stream"
        for event in events_in(answer.iter_lines()):
            heard.append(event)
            if until is not None and until(event):
                break
    return heard


def as_watched(running, run) -> list[dict]:
    """The events as `haft watch` prints them."""
    history = History(StateHome(str(running.home)))
    try:
        return [event.to_json() for event in follow(history, run) if event.type != "stdout" or event.text]
    finally:
        history.close()


def test_a_live_run_a_past_run_and_haft_watch_have_the_same_events(running, client, tmp_path):
    go = tmp_path / "go"
    run = begin(running, [*SCRIPT[:3], f"wait {go}", *SCRIPT[3:]])
    live = listen(client, run, until=lambda event: event.kind == "stderr")
    thread = threading.Thread(target=lambda: live.extend(listen(client, run, after=live[-1].id)))
    thread.start()
    go.touch()
    thread.join()
    assert [json.loads(json.dumps(each.data)) for each in live] == as_watched(running, run)
    assert [each.data for each in listen(client, run)] == [each.data for each in live]
    assert [int(each.id) for each in live] == [each.data["seq"] for each in live]
    assert [each.kind for each in live] == [each.data["type"] for each in live]
    assert "".join(each.data["text"] for each in live if each.kind == "stdout") == "oneéthree"
    assert live[-1].data["outcome"]["status"] == "done"


def test_a_stream_goes_on_after_every_single_event(running, client):
    run = begin(running, SCRIPT)
    whole = listen(client, run)
    for number, event in enumerate(whole):
        assert listen(client, run, after=event.id) == whole[number + 1 :]
    assert listen(client, run, after=-1) == whole


def test_many_readers_that_come_and_go_while_the_run_talks_miss_nothing(running, client, tmp_path):
    go = tmp_path / "go"
    run = begin(running, [*(f"out {n} " for n in range(20)), f"wait {go}", *(f"out {n} " for n in range(20, 200))])
    heard = [[] for _ in range(8)]

    def until_gone(mine, leave_after):
        while not mine or mine[-1].kind != "outcome":
            count = 0

            def enough(_event):
                nonlocal count
                count += 1
                return count >= leave_after

            mine += listen(client, run, after=mine[-1].id if mine else None, until=enough)

    threads = [threading.Thread(target=until_gone, args=(mine, 7 + 9 * n)) for n, mine in enumerate(heard)]
    for each in threads:
        each.start()
    go.touch()
    for each in threads:
        each.join()
    whole = listen(client, run)
    assert len([each for each in whole if each.kind == "stdout"]) == 200
    for mine in heard:
        assert mine == whole


def test_a_run_of_another_process_is_followed_while_it_goes_on(running, client, tmp_path):
    go = tmp_path / "go"
    host = Path(__file__).with_name("elsewhere.py")
    words = [sys.executable, str(host), str(running.workspace), str(running.home)]
    steps = json.dumps([*SCRIPT[:3], f"wait {go}", *SCRIPT[3:]])
    with subprocess.Popen([*words, steps], stdout=subprocess.PIPE, text=True) as process:
        try:
            run = process.stdout.readline().strip()
            live = listen(client, run, until=lambda event: event.kind == "stderr")
        finally:
            go.touch()
        live += listen(client, run, after=live[-1].id)
    assert [each.data for each in live] == as_watched(running, run)
    assert "".join(each.data["text"] for each in live if each.kind == "stdout") == "oneéthree"


def test_a_reader_that_falls_behind_is_told_where_to_go_on_and_misses_nothing(running, client, tmp_path):
    """It reads nothing while megabytes come; then it reads, and comes back wherever the stream ends."""
    go = tmp_path / "go"
    run = begin(running, [f"wait {go}", "flood 1500"])
    heard, ends = [], 0
    headers = {}
    while not heard or heard[-1].kind != "outcome":
        with client.stream("GET", f"{W}/runs/{run}/events", headers=headers) as answer:
            lines = answer.iter_lines()
            first = next(events_in(lines), None)
            if not ends:
                go.touch()
                finished = listen(client, run)  # Somebody else gets everything meanwhile.
            for event in ([first] if first else []) + list(events_in(lines)):
                if event.kind == "gap":
                    assert event.data == {"run": run, "from": int(heard[-1].id) + 1}
                else:
                    heard.append(event)
            ends += 1
            headers = {"Last-Event-ID": heard[-1].id}
    assert finished[-1].kind in ("outcome", "gap")
    text = "".join(each.data["text"] for each in heard if each.kind == "stdout")
    assert [int(line.split()[0]) for line in text.splitlines()] == list(range(1500))
    assert [int(each.id) for each in heard] == sorted({int(each.id) for each in heard})


@pytest.mark.parametrize("after", ["x", "1.5", "-", "9" * 40, "١"])
def test_an_id_that_is_no_number_is_refused(running, client, after):
    run = begin(running, [])
    answer = client.get(f"{W}/runs/{run}/events", params={"after": after})
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid-request")


def test_nobody_follows_a_run_that_is_not_theirs(running, client, tmp_path):
    go = tmp_path / "go"
    live, past = begin(running, [f"wait {go}"]), begin(running, [])
    listen(client, past)
    with running.client("bob") as bob:
        for run in (live, past, "r_000000000000000000000000", past[:20], ""):
            answer = bob.get(f"{W}/runs/{run}/events")
            assert answer.status_code == 404, run
            answer = bob.get(f"{W}/events", params={"run": run})
            assert answer.status_code == 404, run
    go.touch()
