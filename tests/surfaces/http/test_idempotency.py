"""Requests that are sent twice with one `Idempotency-Key`."""

import asyncio
import concurrent.futures

import httpx
import pytest

from haft import tool

from .conftest import serving

W = "/api/v1/workspaces/default"
CALL = {"tool": "count", "args": {"word": "a"}}


def counted(calls):
    """A tool that notes each of its calls."""

    @tool(readonly=True)
    async def count(word: str, seconds: float = 0) -> str:
        """Count a word."""
        calls.append(word)
        await asyncio.sleep(seconds)
        return f"{word} {len(calls)}"

    return count


@pytest.fixture(scope="module")
def calls():
    return []


@pytest.fixture(scope="module")
def running(tmp_path_factory, calls):
    with serving(tmp_path_factory.mktemp("served"), tools=[counted(calls)]) as found:
        yield found


def send(client, key, body=CALL, path="calls"):
    return client.post(f"{W}/{path}", json=body, headers={"Idempotency-Key": key})


def test_the_same_request_begins_one_run(client, calls):
    before = len(calls)
    first, second = send(client, "one"), send(client, "one", {**CALL, "wait": 5})
    assert first.json() == second.json()
    assert len(calls) == before + 1
    assert send(client, "two").json()["run"] != first.json()["run"]


def test_a_key_stands_for_one_request_only(client):
    send(client, "three")
    again = send(client, "three", {**CALL, "args": {"word": "b"}})
    assert (again.status_code, again.json()["code"]) == (422, "key-reused")


def test_each_principal_has_keys_of_its_own(client, running):
    mine = send(client, "four").json()["run"]
    with running.client("bert") as other:
        assert send(other, "four").json()["run"] != mine


def test_requests_at_the_same_time_share_one_run(running, calls):
    before = len(calls)
    body = {"tool": "count", "args": {"word": "c", "seconds": 0.2}}
    headers = {"Authorization": f"Bearer {running.token('cleo')}"}

    def one(_number):
        with httpx.Client(base_url=running.url, headers=headers, timeout=60, trust_env=False) as client:
            return send(client, "five", body)

    with concurrent.futures.ThreadPoolExecutor(5) as pool:
        answers = list(pool.map(one, range(5)))
    assert {answer.status_code for answer in answers} == {200}
    assert len({answer.json()["run"] for answer in answers}) == 1
    assert len(calls) == before + 1


def test_a_batch_begins_once(client, calls):
    before = len(calls)
    body = {"calls": [{**CALL, "id": "x"}, CALL]}
    first, second = send(client, "six", body, "batches").json(), send(client, "six", body, "batches").json()
    assert first == second and len(first["outcomes"]) == 2
    assert len(calls) == before + 2


def test_a_request_that_begins_nothing_keeps_no_key(client):
    wrong = {**CALL, "grants": {"network": "everything"}}
    assert send(client, "seven", wrong).status_code == 422
    assert send(client, "seven").status_code == 200


@pytest.mark.parametrize("key", ["", "x" * 256, "a b"])
def test_a_key_is_a_short_word(client, key):
    assert send(client, key).status_code == 422


def test_a_key_is_refused_where_it_would_do_nothing(client):
    answer = client.get(f"{W}/runs", headers={"Idempotency-Key": "eight"})
    assert answer.status_code == 422


def test_a_key_is_good_after_a_restart_also_for_a_run_that_was_interrupted(tmp_path):
    calls = []
    slow = {"tool": "count", "args": {"word": "slow", "seconds": 600}, "wait": 0}
    with serving(tmp_path, tools=[counted(calls)]) as before:
        headers = {"Authorization": f"Bearer {before.token('dora')}"}
        with httpx.Client(base_url=before.url, headers=headers, timeout=60, trust_env=False) as client:
            done = send(client, "done").json()
            begun = send(client, "begun", slow).json()
    with serving(tmp_path, tools=[counted(calls)]) as after:
        with httpx.Client(base_url=after.url, headers=headers, timeout=60, trust_env=False) as client:
            assert send(client, "done").json() == done
            again = send(client, "begun", slow).json()
    assert (again["run"], again["status"]) == (begun["run"], "cancelled")
    assert len(calls) <= 2
