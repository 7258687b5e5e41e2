"""SIGTERM: what a server does before it is gone, and what the next one goes on with."""

import os
import signal
import threading
import time

import httpx

from haft import Principal
from haft.service import InboxFacade, StateHome, recover_dead_hosts

from .conftest import W


def until(found, what):
    """What `found` returns, once it is something."""
    ends = time.monotonic() + 60
    while time.monotonic() < ends:
        if (result := found()) is not None:
            return result
        time.sleep(0.01)
    raise AssertionError(f"never: {what}")


def call(client, tool, path, seconds, wait=0):
    answer = client.post(
        f"{W}/calls", json={"tool": tool, "args": {"path": str(path), "seconds": seconds}, "wait": wait}
    )
    assert answer.status_code == 200, answer.text
    return answer.json()["run"]


def status(client, run):
    return client.get(f"{W}/runs/{run}").json()["status"]


def test_running_calls_end_waiting_ones_go_on_in_the_next_server_and_nobody_hangs(restarted, tmp_path):
    restarted.begin()
    ended, heard = {}, []
    with restarted.client() as client:
        short = call(client, "look", tmp_path / "short", 1.0)
        endless = call(client, "look", tmp_path / "endless", 300.0)
        waiting = call(client, "effect", tmp_path / "effect", 0.0)
        until(lambda: status(client, waiting) == "blocked-on-user" or None, "it waits")

        def follow():
            with restarted.client() as other, other.stream("GET", f"{W}/events") as answer:
                heard.extend(answer.iter_lines())

        def await_outcome():
            with restarted.client() as other:
                body = {"tool": "look", "args": {"path": str(tmp_path / "awaited"), "seconds": 1.0}, "wait": 60}
                ended["awaited"] = other.post(f"{W}/calls", json=body).json()

        threads = [threading.Thread(target=each) for each in (follow, await_outcome)]
        for each in threads:
            each.start()
        until(lambda: (tmp_path / "awaited").exists() or None, "the awaited call runs")
        os.kill(restarted.pid, signal.SIGTERM)
        until(lambda: client.get("/readyz").status_code == 503 or None, "it is not ready")
        assert client.get("/healthz").status_code == 200
        refused = client.post(f"{W}/calls", json={"tool": "look", "args": {"path": "x", "seconds": 0.0}})
        assert (refused.status_code, refused.json()["code"], refused.json()["retryable"]) == (503, "not-ready", True)
        assert int(refused.headers["retry-after"]) > 0
        until(lambda: status(client, short) == "done" or None, "a running call ends while others cannot begin")
    assert restarted.wait() == 0
    for each in threads:
        each.join()
    assert ended["awaited"]["status"] == "done"
    assert "event: end" in heard and heard[-1] == "" and any(line.startswith("retry: ") for line in heard[3:])

    restarted.begin()
    with restarted.client() as client:
        assert status(client, endless) == "cancelled"
        asked = until(lambda: client.get(f"{W}/inbox").json()["requests"] or None, "it asks again")
        assert [each["run"] for each in asked] == [waiting]
        assert not (tmp_path / "effect").exists()
        approved = client.post(f"{W}/inbox/{asked[0]['id']}/approve", json={})
        assert approved.status_code == 200, approved.text
        until(lambda: status(client, waiting) == "done" or None, "the approved call runs")
        assert (tmp_path / "effect").read_text() == "ran\n"
    assert restarted.end(signal.SIGTERM) == 0


def test_an_answer_that_came_while_no_server_ran_counts(restarted, tmp_path):
    restarted.begin()
    with restarted.client() as client:
        run = call(client, "effect", tmp_path / "effect", 0.0)
        until(lambda: client.get(f"{W}/inbox").json()["requests"] or None, "it asks")
    assert restarted.end(signal.SIGKILL) == -signal.SIGKILL
    home = StateHome(str(restarted.home))
    recover_dead_hosts(home)
    inbox = InboxFacade(home)
    assert inbox.answer(inbox.find(run), approved=True, who=Principal("tester")).is_paused
    inbox.close()
    restarted.begin()
    with restarted.client() as client:
        until(lambda: status(client, run) == "done" or None, "the approved call runs")
    assert (tmp_path / "effect").read_text() == "ran\n"
    assert restarted.end(signal.SIGTERM) == 0


def test_a_second_signal_ends_it_at_once(restarted, tmp_path):
    restarted.begin()
    with restarted.client() as client:
        call(client, "look", tmp_path / "endless", 300.0)
        os.kill(restarted.pid, signal.SIGTERM)
        until(lambda: client.get("/readyz").status_code == 503 or None, "it is not ready")
        os.kill(restarted.pid, signal.SIGTERM)
        assert restarted.wait() == 128 + signal.SIGTERM


def test_a_client_that_reads_nothing_does_not_keep_the_server_from_ending(restarted, tmp_path):
    restarted.begin()
    with restarted.client() as client, httpx.Client(trust_env=False) as stalled:
        headers = {"Authorization": f"Bearer {restarted.token}"}
        with stalled.stream("GET", f"{restarted.url}{W}/events", headers=headers):
            run = call(client, "look", tmp_path / "short", 0.0)
            until(lambda: status(client, run) == "done" or None, "it ends")
            assert restarted.end(signal.SIGTERM) == 0
