"""A connection to a host that was not granted waits for a person: who is asked, what an answer does, and what is on
record afterwards."""

import asyncio
import contextlib
import json
import socket
import subprocess
import sys
import textwrap
import threading

import pytest

from haft import ApprovalAnswer, ToolService
from haft.contracts import BadUsage
from haft.pipeline import deadline as deadlines
from haft.pipeline.connection_questions import MAX_QUESTIONS
from haft.policy.analysis.verdict import DANGERS

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="there is no sandbox elsewhere")

RULE = {"tool": "shell", "action": "allow", "dangers": [*DANGERS]}
INBOX = {"approval.expires_seconds": 60, "permissions": [RULE]}


@pytest.fixture(autouse=True)
def internet(monkeypatch):
    """The proxy of this machine: it leads every name to a server that says hello. Returns the names that were
    reached."""
    listener = socket.create_server(("127.0.0.1", 0))
    reached = []

    def talk(end):
        with contextlib.suppress(OSError), end:
            head = b""
            while b"\r\n\r\n" not in head:
                head += end.recv(4096)
            reached.append(head.split()[1].decode())
            end.sendall(b"HTTP/1.1 200 OK\r\n\r\nhello\n")

    def accept():
        with contextlib.suppress(OSError):
            while True:
                talk(listener.accept()[0])

    threading.Thread(target=accept, daemon=True).start()
    monkeypatch.setenv("all_proxy", f"http://127.0.0.1:{listener.getsockname()[1]}")
    with listener:
        yield reached
        listener.shutdown(socket.SHUT_RDWR)


def reads(host, port=4711):
    """A call that prints what a host says, or fails."""
    return {"command": f"exec 3<>/dev/tcp/{host}/{port} && cat <&3"}


async def eventually(condition):
    for _ in range(3000):
        if found := condition():
            return found
        await asyncio.sleep(0.01)
    raise AssertionError(f"did not happen: {condition}")


def serve(tmp_path, body, **options):
    workspace = tmp_path / "workspace"
    workspace.mkdir(exist_ok=True)

    async def main():
        async with ToolService.open(workspace, home=tmp_path / "home", **options) as service:
            return await asyncio.wait_for(body(service), 60)

    return asyncio.run(main())


def asked(answer, seen=None):
    """The options of a service whose approver approves all calls, and gives this answer about connections."""

    async def approve(request):
        if request.connection is None:
            return True
        if seen is not None:
            seen.append(request)
        return await answer(request) if asyncio.iscoroutinefunction(answer) else answer

    return {"approver": approve, "approves_connections": True}


def test_the_connection_that_a_person_approves_goes_on_and_is_on_record(tmp_path, internet):
    seen = []

    async def body(service):
        run = service.call("shell", reads("one.example"))
        events = [event async for event in run if event.type == "connection"]
        outcome = await run
        assert (outcome.status, outcome.output) == ("done", "hello\n"), outcome
        (request,) = seen
        assert (request.connection.host, request.connection.port) == ("one.example", 4711)
        assert "bash" in request.connection.program
        assert (request.arguments, request.run) == (reads("one.example"), run.id)
        assert "one.example:4711" in request.reason
        (connection,) = outcome.connections
        assert (connection.host, connection.port, connection.allowed) == ("one.example", 4711, True)
        assert (connection.received, connection.by) == (6, f"{run.call.who}, who was asked")
        assert [event.facts["state"] for event in events] == ["waiting", "answered", "open", "ended"]
        assert {event.status for event in events} == {"in-progress"}
        assert events[0].text == "one.example:4711: waits for the answer of a person"
        (kept,) = service.runs(limit=1)
        assert kept.to_json()["outcome"]["sandbox"]["connections"] == [connection.to_json()]

    serve(tmp_path, body, **asked(True, seen))
    assert internet == ["one.example:4711"]


def test_an_answer_holds_for_its_host_and_port_until_the_call_ends(tmp_path, internet):
    seen = []
    command = "; ".join(reads(*each)["command"] for each in (("one.example",), ("one.example",), ("one.example", 4712)))

    async def body(service):
        assert (await service.call("shell", {"command": command})).output == "hello\nhello\nhello\n"
        assert [request.connection.port for request in seen] == [4711, 4712]
        assert (await service.call("shell", {"command": command})).output == "hello\nhello\nhello\n"
        assert [request.connection.port for request in seen] == [4711, 4712, 4711, 4712]

    serve(tmp_path, body, **asked(True, seen))


def test_a_rejected_connection_is_reset_and_the_outcome_says_who_rejected_it(tmp_path, internet):
    async def body(service):
        outcome = await service.call("shell", reads("evil.example"))
        assert outcome.error.code == "sandbox-denied"
        assert "evil.example:4711: " in outcome.error.message
        assert "rejected it: not that one" in outcome.error.message
        assert not outcome.error.hint
        (connection,) = outcome.connections
        assert not connection.allowed and "not that one" in connection.reason

    serve(tmp_path, body, **asked(ApprovalAnswer(False, "not that one")))
    assert internet == []


def test_an_approver_that_does_not_know_connections_opens_no_host(tmp_path, internet):
    requests = []

    def approve(request):
        requests.append(request)
        return True

    async def body(service):
        outcome = await service.call("shell", reads("evil.example"))
        assert outcome.error is not None and outcome.connections == ()
        assert [request.connection for request in requests] == [None]
        assert service.inbox() == []

    serve(tmp_path, body, approver=approve)
    assert internet == []


def test_a_refusal_is_a_note_with_the_grant_also_if_the_tool_swallows_the_error(tmp_path):
    async def body(service):
        swallowed = {"command": f"({reads('evil.example')['command']}) 2>/dev/null; true"}
        outcome = await service.call("shell", swallowed, grants={"network": ["good.example:4711"]})
        assert outcome.status == "done"
        assert outcome.notes == (
            "the sandbox refused a connection to evil.example:4711; to allow it: `--network=evil.example:4711`",
        )
        outcome = await service.call("shell", reads("evil.example"), grants={"network": ["good.example:4711"]})
        assert (outcome.error.code, outcome.notes) == ("sandbox-denied", ())
        assert "a connection to evil.example:4711 (" in outcome.error.message
        assert outcome.error.hint == "to allow it: `--network=evil.example:4711`"
        many = "; ".join(f"({reads(f'h{number}.example')['command']})" for number in range(5))
        outcome = await service.call("shell", {"command": f"{many}; true"}, grants={"network": ["good.example"]})
        assert outcome.notes[-1] == (
            f"the sandbox also refused connections to 2 more hosts: `haft show {outcome.run_id}` lists them"
        )
        assert len(outcome.notes) == 4

    serve(tmp_path, body, approver=lambda _request: True)


def test_a_grant_of_the_call_and_of_a_rule_name_where_they_come_from(tmp_path):
    rules = [{**RULE, "grant": {"network": ["*.rule.example:4711"]}}]

    async def body(service):
        for host, by in (
            ("own.example", "the call"),
            ("a.rule.example", "the caller, rule 1"),
            ("set.example", "sandbox.network"),
        ):
            outcome = await service.call("shell", reads(host), grants={"network": ["own.example:4711"]})
            assert [each.by for each in outcome.connections] == [by], outcome

    serve(tmp_path, body, settings={"permissions": rules, "sandbox.network": ["set.example:4711"]})


def test_nobody_is_asked_without_approval_nor_in_a_trial_run(tmp_path):
    seen = []

    async def body(service):
        assert (await service.call("shell", {"command": "cat /dev/tcp/evil.example/1"})).error is not None
        outcome = await service.call("shell", reads("evil.example"), trial=True)
        assert outcome.connections == () and seen == []

    serve(tmp_path, body, **asked(True, seen))


@pytest.mark.parametrize("setting", [{"sandbox.network": "never"}, {"sandbox.network_ask_seconds": 0}])
def test_settings_can_forbid_the_question(tmp_path, setting):
    seen = []

    async def body(service):
        assert (await service.call("shell", reads("evil.example"))).error is not None
        assert seen == []

    serve(tmp_path, body, settings=setting, **asked(True, seen))


def test_an_answer_from_another_process_lets_the_connection_go_on(tmp_path, internet):
    code = textwrap.dedent(
        """
        import json, sys
        from haft.surfaces.cli.main import main
        sys.exit(main(sys.argv[1:]))
        """
    )

    def haft(*words):
        environment = {"HAFT_HOME": str(tmp_path / "home"), "PATH": "/usr/bin:/bin", "HOME": str(tmp_path)}
        done = subprocess.run(
            [sys.executable, "-c", code, "-w", str(tmp_path / "workspace"), *words],
            env=environment, capture_output=True, text=True, check=False,
        )  # fmt: skip
        return done.stdout + done.stderr

    async def body(service):
        run = service.call("shell", reads("one.example"))
        (waiting,) = await eventually(service.inbox)
        assert run.status == "in-progress"
        listed = await asyncio.to_thread(haft, "inbox")
        assert "a connection of shell needs approval" in listed
        for shown in ("host: one.example", "port: 4711", "program:"):
            assert shown in listed, listed
        (question,) = json.loads(await asyncio.to_thread(haft, "inbox", "--json"))
        assert question["connection"]["host"] == "one.example"
        assert "connections of exactly this call of shell to one.example:4711" in listed
        replied = await asyncio.to_thread(haft, "approve", waiting.id, "--thread")
        assert "the connection of shell to one.example:4711 is approved" in replied
        assert "in its thread: connections of exactly this call" in replied
        outcome = await run
        assert (outcome.status, outcome.output) == ("done", "hello\n")
        assert service.inbox() == []
        assert (await service.call("shell", reads("one.example"))).output == "hello\n"

    serve(tmp_path, body, settings=INBOX)


def test_a_rejection_from_the_inbox_ends_the_connection(tmp_path):
    async def body(service):
        run = service.call("shell", reads("one.example"))
        (waiting,) = await eventually(service.inbox)
        await service.reject(waiting.id)
        assert (await run).error.code == "sandbox-denied"

    serve(tmp_path, body, settings=INBOX)


def test_a_question_that_expires_refuses_the_connection_and_vanishes(tmp_path):
    async def body(service):
        outcome = await service.call("shell", reads("one.example"))
        assert "nobody answered within 0.3 seconds" in outcome.error.message
        assert outcome.error.hint == "to allow it: `--network=one.example:4711`"
        assert service.inbox() == []

    serve(tmp_path, body, settings={**INBOX, "sandbox.network_ask_seconds": 0.3})


def test_a_question_expires_beside_an_approver_that_does_not_answer(tmp_path):
    called_off = []

    async def slow(request):
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            called_off.append(request.id)
            raise

    async def body(service):
        outcome = await service.call("shell", reads("one.example"))
        assert "nobody answered" in outcome.connections[0].reason
        assert len(called_off) == 1
        assert service.inbox() == []

    serve(tmp_path, body, settings={"sandbox.network_ask_seconds": 0.3}, **asked(slow))


def test_cancelling_the_call_withdraws_the_question_and_records_the_connection(tmp_path):
    async def body(service):
        run = service.call("shell", reads("one.example"))
        (waiting,) = await eventually(service.inbox)
        run.cancel()
        outcome = await run
        assert outcome.status == "cancelled"
        assert [(each.host, each.allowed) for each in outcome.connections] == [("one.example", False)]
        assert service.inbox() == []
        with pytest.raises(BadUsage, match="needs no answer"):
            await service.approve(waiting.id)

    serve(tmp_path, body, settings=INBOX)


def test_a_program_that_gives_up_withdraws_its_question(tmp_path):
    async def body(service):
        run = service.call("shell", {"command": f"timeout 0.5 bash -c '{reads('one.example')['command']}'; cat gate"})
        await eventually(service.inbox)
        await eventually(lambda: not service.inbox())
        outcome = await run
        assert outcome.connections[0].reason == "it ended before anybody answered"

    serve(tmp_path, body, settings=INBOX)


def test_several_hosts_wait_in_the_inbox_at_once(tmp_path, internet):
    command = f"({reads('a.example')['command']}) & ({reads('b.example')['command']}); wait"

    async def body(service):
        run = service.call("shell", {"command": command})
        both = await eventually(lambda: len(found := service.inbox()) == 2 and found)
        hosts = {each.shown["connection"]["host"]: each.id for each in both}
        assert len({each.fingerprint for each in both}) == 2
        with pytest.raises(BadUsage, match="more than one request"):
            await service.approve(run.id)
        await service.approve(hosts["b.example"])
        await eventually(lambda: internet)
        await service.reject(hosts["a.example"])
        assert (await run).output.count("hello") == 1

    serve(tmp_path, body, settings=INBOX)
    assert internet == ["b.example:4711"]


def test_the_deadline_stands_still_while_a_person_thinks(tmp_path, monkeypatch):
    ahead = [0.0]
    real = deadlines.monotonic
    monkeypatch.setattr(deadlines, "monotonic", lambda: real() + ahead[0])

    async def think(_request):
        ahead[0] += 1000
        await asyncio.sleep(deadlines.CHECK_SECONDS * 4)
        return True

    async def body(service):
        outcome = await service.call("shell", reads("one.example"), timeout=30)
        assert (outcome.status, outcome.output) == ("done", "hello\n"), outcome.error

    serve(tmp_path, body, **asked(think))


def test_answers_for_a_thread_and_for_always_are_remembered_as_grants_and_approve_no_call(tmp_path):
    seen = []
    scopes = iter(["thread", "always"])

    async def answer(request):
        seen.append(request)
        return ApprovalAnswer(True, scope=next(scopes, "once"))

    calls = []

    async def approve(request):
        if request.connection is not None:
            return await answer(request)
        calls.append(request)
        return True

    async def body(service):
        async def hello(thread):
            outcome = await service.call("shell", reads("one.example"), thread=thread)
            assert outcome.output == "hello\n", outcome
            return outcome

        await hello("T-1")
        await hello("T-1")
        assert len(seen) == 1, "remembered for the thread"
        await hello("T-2")
        assert len(seen) == 2, "not for another thread; now for always"
        outcome = await hello("T-3")
        assert len(seen) == 2
        assert outcome.connections[0].by.startswith("remembered:")
        assert len(calls) == 4, "each call still needed approval"
        assert calls[-1].sandbox.network == ("one.example:4711",)
        await service.call("shell", reads("one.example", 99), thread="T-3")
        assert len(seen) == 3, "another port"
        tried = await service.call("shell", reads("one.example"), thread="T-3", trial=True)
        assert tried.error is None or tried.error.code != "bad-usage"

    serve(tmp_path, body, approver=approve, approves_connections=True)


def test_an_answer_can_hold_for_all_approved_calls_of_the_tool(tmp_path, internet):
    seen = []

    async def body(service):
        await service.call("shell", reads("one.example"))
        assert [each.label for each in seen[0].to_allow] == [
            "connections of exactly this call of shell to one.example:4711",
            "connections of all approved calls of shell to one.example:4711",
        ]
        outcome = await service.call("shell", {"command": f"true; {reads('one.example')['command']}"})
        assert (outcome.output, len(seen)) == ("hello\n", 1)
        unasked = await service.call("shell", {"command": "ls"})
        assert unasked.sandbox.network is False

    serve(tmp_path, body, **asked(ApprovalAnswer(True, scope="always", allow=1), seen))


def test_the_answer_and_the_connections_are_in_the_audit_log_which_stays_intact(tmp_path):
    async def body(service):
        outcome = await service.call("shell", reads("one.example"))
        entries = [*service.record.entries()]
        (answer,) = [each for each in entries if each["type"] == "approve" and "connection" in each]
        assert answer["connection"]["host"] == "one.example" and answer["run"] == outcome.run_id
        (end,) = [each for each in entries if each["type"] == "end"]
        assert [each["host"] for each in end["sandbox"]["connections"]] == ["one.example"]
        assert service.record.verify().intact

    serve(tmp_path, body, **asked(True))


def test_runs_are_found_by_the_hosts_that_they_connected_to(tmp_path):
    async def body(service):
        one = await service.call("shell", reads("a.one.example"))
        other = await service.call("shell", reads("one.example"))
        await service.call("shell", {"command": "true"})
        for host, found in (
            ("one.example", [other]),
            ("*.one.example", [one]),
            ("*.example", [other, one]),
            ("example", []),
        ):
            assert [each.id for each in service.runs(host=host)] == [each.run_id for each in found], host

    serve(tmp_path, body, **asked(ApprovalAnswer(False)))


def test_a_secret_in_the_name_of_a_host_is_masked_everywhere(tmp_path):
    seen = []

    async def body(service):
        run = service.call(
            "shell",
            {"command": "touch made; exec 3<>/dev/tcp/$(echo czNjcjN0d29yZA== | base64 -d).example/4711; cat <&3"},
        )
        events = [event.to_json() async for event in run]
        outcome = await run
        assert outcome.connections and "s3cr3tword" not in json.dumps([events, outcome.to_json()])
        assert "s3cr3tword" not in str((seen[0].to_allow, seen[0].connection, seen[0].reason))

    serve(tmp_path, body, secrets=["s3cr3tword"], **asked(ApprovalAnswer(False), seen))


def test_the_answer_about_a_connection_takes_no_grants_and_no_arguments(tmp_path):
    async def body(service):
        run = service.call("shell", reads("one.example"))
        (waiting,) = await eventually(service.inbox)
        for more in ({"grants": {"network": True}}, {"arguments": {"command": "true"}}):
            with pytest.raises(BadUsage, match="about one connection of a call in progress"):
                await service.approve(waiting.id, **more)
        await service.approve(waiting.id)
        assert (await run).output == "hello\n"

    serve(tmp_path, body, settings=INBOX)


def test_approving_a_connection_approves_no_later_call(tmp_path):
    async def body(service):
        run = service.call("shell", reads("one.example"))
        await service.approve((await eventually(service.inbox))[0].id)
        (connection,) = await eventually(lambda: [each for each in service.inbox() if each.shown["connection"]])
        await service.approve(connection.id, scope="always")
        assert (await run).output == "hello\n"
        again = service.call("shell", reads("one.example"))
        (waiting,) = await eventually(service.inbox)
        assert (waiting.run, waiting.shown["connection"]) == (again.id, None)
        again.cancel()
        await again

    serve(tmp_path, body, settings={"approval.expires_seconds": 60})


def test_a_person_is_asked_about_a_bounded_number_of_hosts(tmp_path):
    seen = []
    command = "; ".join(f"({reads(f'h{number}.example')['command']})" for number in range(MAX_QUESTIONS + 3))

    async def body(service):
        outcome = await service.call("shell", {"command": f"{command}; true"})
        assert len(seen) == MAX_QUESTIONS
        assert len(outcome.connections) == MAX_QUESTIONS + 3
        assert "more than 20 hosts" in outcome.connections[-1].reason

    serve(tmp_path, body, **asked(False, seen))
