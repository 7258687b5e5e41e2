"""What receivers are told, and that they are told it at least once, whatever dies."""

import asyncio
import base64
import contextlib
import hashlib
import hmac
import json
import os
import signal
import subprocess
import sys
import time

import pytest

from haft import ToolService
from haft.contracts import BadUsage
from haft.service import EVENTS, StateHome, Webhook, Webhooks, deliveries_of, user_name

SECRET = "a secret of the receiver"


def hook(receiver, **more):
    return Webhook(receiver.url, SECRET, "mine", frozenset(EVENTS), **{"private": True, **more})


@contextlib.asynccontextmanager
async def telling(home, workspace, *webhooks, url="http://127.0.0.1:8000/"):
    """A server's webhooks, until the end of the block."""
    made = Webhooks(StateHome(str(home)), webhooks, {"shop": str(workspace)}, url=url)
    running = asyncio.create_task(made.run())
    try:
        yield made
    finally:
        running.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await running


@pytest.fixture
def place(tmp_path):
    (tmp_path / "workspace").mkdir()
    return tmp_path


def opened(place, **options):
    settings = {"approval.expires_seconds": 60.0}
    return ToolService.open(workspace=place / "workspace", home=place / "home", settings=settings, **options)


async def request_of(service):
    while not (found := await service.approvals.waiting()):
        await asyncio.sleep(0.02)
    return found[0]


async def settled(place, count):
    """The deliveries, when so many are not pending any more."""
    log = deliveries_of(StateHome(str(place / "home")))
    while len(done := [each for each in log.all() if each.state != "pending"]) < count:
        await asyncio.sleep(0.02)
    return done


@pytest.mark.parametrize("arguments", [False, True])
def test_a_receiver_hears_that_a_call_waits_was_answered_failed_and_was_undone(place, receiver, arguments):
    async def go():
        async with (
            opened(place) as service,
            telling(place / "home", place / "workspace", hook(receiver, arguments=arguments)),
        ):
            await started(place)
            run = service.call("shell", {"command": "echo sesame > a; exit 3"}, thread="T-1")
            request = await request_of(service)
            await asyncio.to_thread(receiver.wait_for, 1)
            await service.approve(request.id)
            outcome = await run
            undo = await service.undo(outcome.run_id)
            await asyncio.to_thread(receiver.wait_for, 4)
            await settled(place, 4)
            return request, outcome, undo

    request, outcome, undo = asyncio.run(go())
    told = {each["event"]["type"]: each["event"]["data"] for each in receiver.received}
    assert sorted(told) == sorted(EVENTS) and receiver.received[0]["event"]["type"] == "request.waiting"
    common = {"workspace": "shop", "run": outcome.run_id, "tool": "shell", "who": outcome.who, "thread": outcome.thread}
    waiting = told["request.waiting"]
    assert waiting.items() >= {**common, "request": request.id}.items()
    assert waiting["link"] == f"http://127.0.0.1:8000/w/shop/approve/{request.id}"
    answered = {"request": request.id, "run": outcome.run_id, "approved": True, "answeredBy": user_name()}
    assert told["request.answered"].items() >= answered.items()
    assert told["run.failed"].items() >= {**common, "error": {"code": "tool-failed", "retryable": False}}.items()
    assert told["run.failed"]["link"].endswith(f"/w/shop/runs/{outcome.run_id}")
    assert told["run.undone"].items() >= {"run": undo.run_id, "runs": [outcome.run_id]}.items()
    quoted = b"sesame" in b"".join(each["body"] for each in receiver.received)
    assert quoted is arguments and ("args" in waiting) is arguments


async def started(place):
    """Wait until the webhooks have noted where they begin."""
    while not (place / "home/webhooks/cursor").exists():
        await asyncio.sleep(0.02)


async def failing(service, text="nothing"):
    await service.call("read_file", {"path": text})


def test_a_message_is_signed_over_its_id_the_time_and_the_body(place, receiver):
    async def go():
        async with opened(place) as service, telling(place / "home", place / "workspace", hook(receiver)):
            await started(place)
            await failing(service)
            await asyncio.to_thread(receiver.wait_for, 1)

    asyncio.run(go())
    (message,) = receiver.received
    headers = {name.lower(): value for name, value in message["headers"].items()}
    signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + message["body"]
    expected = base64.b64encode(hmac.digest(SECRET.encode(), signed, hashlib.sha256)).decode()
    assert headers["webhook-signature"] == f"v1,{expected}"
    assert abs(int(headers["webhook-timestamp"]) - time.time()) < 600
    assert "authorization" not in headers and "cookie" not in headers


def test_a_secret_in_the_form_of_standard_webhooks_is_its_bytes():
    secret = base64.b64encode(b"0123456789abcdef").decode()
    assert Webhook("https://x", f"whsec_{secret}", "x", frozenset()).key == b"0123456789abcdef"
    assert Webhook("https://x", "another secret", "x", frozenset()).key == b"another secret"


def test_what_a_receiver_refuses_is_sent_again_and_the_log_says_so(place, receiver, monkeypatch):
    monkeypatch.setattr("haft.service.webhooks.deliveries.DELAYS", (0.0, 0.0, 0.0))
    receiver.answers = [500, 302, 200]

    async def go():
        async with opened(place) as service, telling(place / "home", place / "workspace", hook(receiver)):
            await started(place)
            await failing(service)
            return await settled(place, 1)

    (delivery,) = asyncio.run(go())
    assert delivery.state == "delivered" and [each["status"] for each in delivery.attempts] == [500, 302, 200]
    assert "answered 302" in delivery.attempts[1]["error"]
    first, *others = receiver.received
    assert len(others) == 2 and all(each["path"] == first["path"] for each in others)  # No redirect was followed.
    ids = {each["headers"]["webhook-id"] for each in receiver.received}
    assert ids == {delivery.id}


def test_haft_gives_up_in_the_end_and_a_person_can_send_it_again(place, receiver, monkeypatch):
    monkeypatch.setattr("haft.service.webhooks.deliveries.DELAYS", (0.0,))
    receiver.answers = [500, 500]

    async def go():
        log = deliveries_of(StateHome(str(place / "home")))
        async with opened(place) as service, telling(place / "home", place / "workspace", hook(receiver)):
            await started(place)
            await failing(service)
            (given_up,) = await settled(place, 1)
            assert given_up.state == "failed" and len(given_up.attempts) == 2
            assert log.send_again(given_up.id).state == "pending"
            await asyncio.to_thread(receiver.wait_for, 3)
            (sent,) = await settled(place, 1)
            with pytest.raises(BadUsage):
                log.send_again("msg_../../../tokens/x")
            return sent

    sent = asyncio.run(go())
    assert sent.state == "delivered" and len(sent.attempts) == 3


def test_a_private_address_gets_nothing_unless_the_configuration_says_so(place, receiver):
    async def go():
        async with (
            opened(place) as service,
            telling(place / "home", place / "workspace", hook(receiver, private=False)),
        ):
            await started(place)
            await failing(service)
            log = deliveries_of(StateHome(str(place / "home")))
            while not (found := [each for each in log.all() if each.attempts]):
                await asyncio.sleep(0.02)
            return found[0]

    delivery = asyncio.run(go())
    assert "private address" in delivery.attempts[0]["error"] and receiver.received == []
    assert "of-the-receiver" not in json.dumps(delivery.to_json())


def test_what_happens_while_no_server_runs_is_told_afterwards_and_what_happened_before_the_first_is_not(
    place, receiver
):
    async def go():
        async with opened(place) as service:
            await failing(service, "before")
        async with telling(place / "home", place / "workspace", hook(receiver)):
            await started(place)
        async with opened(place) as service:
            for number in range(3):
                await failing(service, f"meanwhile-{number}")
        async with telling(place / "home", place / "workspace", hook(receiver, arguments=True)):
            await asyncio.to_thread(receiver.wait_for, 3)
            await settled(place, 3)
        async with telling(place / "home", place / "workspace", hook(receiver)):
            await started(place)

    asyncio.run(go())
    paths = [each["event"]["data"]["args"]["path"] for each in receiver.received]
    assert sorted(paths) == [f"meanwhile-{number}" for number in range(3)]


def test_what_happens_in_a_workspace_of_another_server_is_not_told(place, receiver):
    async def go():
        (place / "other").mkdir()
        async with telling(place / "home", place / "other", hook(receiver)), opened(place) as service:
            await started(place)
            await failing(service)
            (place / "mine").mkdir()
        options = {"workspace": place / "other", "home": place / "home"}
        async with telling(place / "home", place / "other", hook(receiver)), ToolService.open(**options) as service:
            await failing(service)
            await asyncio.to_thread(receiver.wait_for, 1)
            await settled(place, 1)

    asyncio.run(go())
    assert len(receiver.received) == 1


SERVER = """
import asyncio, sys
from haft.service import EVENTS, StateHome, Webhook, Webhooks
from haft.service.webhooks import deliveries, webhooks
webhooks.SECONDS_BETWEEN_LOOKS, deliveries.DELAYS = 0.05, (0.1,) * 20
hook = Webhook(sys.argv[3], "a secret of the receiver", "mine", frozenset(EVENTS), private=True)
asyncio.run(Webhooks(StateHome(sys.argv[1]), [hook], {"shop": sys.argv[2]}).run())
"""


def test_each_failure_is_told_at_least_once_although_servers_are_killed_all_the_time(place, receiver):
    home, workspace = str(place / "home"), str(place / "workspace")
    receiver.answers = [503] * 4

    def serve():
        return subprocess.Popen([sys.executable, "-c", SERVER, home, workspace, receiver.url])

    async def go():
        made = []
        server = serve()
        try:
            await started(place)
            async with opened(place) as service:
                for number in range(9):
                    outcome = await service.call("read_file", {"path": f"none-{number}"})
                    made.append(outcome.run_id)
                    if number % 3 == 2:  # In the middle of whatever it does, with a message on its way.
                        await asyncio.to_thread(receiver.wait_for, len(receiver.received) + 1)
                        os.kill(server.pid, signal.SIGKILL)
                        server.wait()
                        server = serve()
            while {each["event"]["data"]["run"] for each in receiver.received} != set(made):
                await asyncio.sleep(0.05)
        finally:
            server.kill()
            server.wait()
        return made

    made = asyncio.run(asyncio.wait_for(go(), 60))
    ids = {}
    for each in receiver.received:
        ids.setdefault(each["event"]["data"]["run"], set()).add(each["headers"]["webhook-id"])
    assert set(ids) == set(made) and all(len(found) == 1 for found in ids.values())


def test_another_log_in_the_place_of_the_old_one_is_not_told_as_news(place, receiver):
    async def go():
        async with opened(place) as service, telling(place / "home", place / "workspace", hook(receiver)):
            await started(place)
            await failing(service)
            await settled(place, 1)
        cursor = place / "home/webhooks/cursor"
        seq, _ = json.loads(cursor.read_text())
        cursor.write_text(json.dumps([seq, "0" * 64]))
        async with opened(place) as service:
            await failing(service)
        async with telling(place / "home", place / "workspace", hook(receiver)):
            while json.loads(cursor.read_text())[1] == "0" * 64:
                await asyncio.sleep(0.02)

    asyncio.run(go())
    assert len(receiver.received) == 1
