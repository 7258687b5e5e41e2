"""Who acts: every act stands in the audit log under the name of whoever did it, and only people approve."""

import asyncio
import json
import sqlite3
import subprocess
import sys
from contextlib import closing

import pytest

from haft import ApprovalAnswer, Principal, Rejected, ToolService, tool
from haft.contracts import BadUsage
from haft.service import InboxFacade, RuleChanges, StateHome, TrustFacade, user_name

ALICE = Principal("alice", thread="T-alice")
BOT = Principal("bot", kind="agent")
HELPER = Principal("bot's helper", kind="sub-agent")


@tool(readonly=True)
async def wait_for_ever() -> None:
    """Never ends."""
    await asyncio.Event().wait()


@pytest.fixture
def places(tmp_path):
    (tmp_path / "workspace").mkdir()
    return {"workspace": tmp_path / "workspace", "home": tmp_path / "home", "installed": False}


def in_a_loop(test):
    def run(places):
        asyncio.run(test(places))

    run.__name__, run.__doc__ = test.__name__, test.__doc__
    return run


def acts(service, *types):
    """The entries of the audit log, oldest first: what was done, to which run or by which tool, by whom."""
    return [entry for entry in service.record.entries() if entry["type"] in types]


def people_of(service, verb):
    return {
        (entry["who"], entry["thread"], entry["whoKind"]) for entry in acts(service, "end") if entry["tool"] == verb
    }


async def written(service, path="a.txt", **options):
    return await service.call("write_file", {"path": path, "content": "hello"}, **options)


async def asked(service):
    """The first request in the inbox, once there is one."""
    while not (waiting := service.inbox()):
        await asyncio.sleep(0.01)
    return waiting[0]


@in_a_loop
async def test_an_undo_stands_in_the_audit_log_under_the_name_of_whoever_undid(places):
    async with ToolService.open(**places, who="host", approver=lambda _request: True) as service:
        made = await written(service, who="alice")
        assert (await service.undo(who="alice")).who == "alice"
        assert not (places["workspace"] / "a.txt").exists()
        assert (await service.redo(made.run_id, who=ALICE)).thread == "T-alice"
        assert (await service.undo(made.run_id)).who == "host"
        assert people_of(service, "undo") == {("alice", service.thread, "person"), ("host", service.thread, "person")}
        assert people_of(service, "redo") == {("alice", "T-alice", "person")}
        assert {run.tool for run in service.runs(who="alice")} == {"write_file", "undo", "redo"}


@in_a_loop
async def test_what_is_applied_or_dropped_is_so_by_a_name(places):
    async with ToolService.open(**places, who="host") as service:
        first, second = await written(service, trial=True), await written(service, "b.txt", trial=True)
        assert (first.changes.state, second.changes.state) == ("held", "held")
        assert (await service.apply(first.run_id, who=ALICE)).status == "done"
        assert (await service.drop(second.run_id, who="bob")).status == "done"
        assert people_of(service, "apply") == {("alice", "T-alice", "person")}
        assert people_of(service, "drop") == {("bob", service.thread, "person")}


@in_a_loop
async def test_answers_stand_in_the_audit_log_under_the_name_of_whoever_gave_them(places):
    settings = {"approval.expires_seconds": 600}
    async with ToolService.open(**places, who="host", settings=settings) as service:
        called = []
        for path, answer in (("a.txt", service.approve), ("b.txt", service.reject)):
            run = service.call("write_file", {"path": path, "content": "hello"}, who="carol")
            await answer((await asked(service)).id, who=ALICE, message="as discussed")
            assert (await run).who == "carol"
            called.append(run.id)
        given = acts(service, "approve", "reject")
        assert [(one["type"], one["who"], one["thread"], one["whoKind"]) for one in given] == [
            ("approve", "alice", "T-alice", "person"),
            ("reject", "alice", "T-alice", "person"),
        ]
        assert [one["message"] for one in given] == ["as discussed", "as discussed"]
        assert [one["run"] for one in given] == called


@in_a_loop
async def test_an_approver_may_say_who_answered_and_answers_for_the_host_otherwise(places):
    said = iter([True, ApprovalAnswer(approved=True, who="dora"), ApprovalAnswer(approved=True, who=BOT)])

    async with ToolService.open(**places, who="host", approver=lambda _request: next(said)) as service:
        outcomes = [await written(service, path) for path in ("a", "b", "c")]
        assert [outcome.status for outcome in outcomes] == ["done", "done", "rejected-by-user"]
        assert "bot is an agent" in outcomes[2].error.message
        assert [one["who"] for one in acts(service, "approve")] == ["host", "dora"]


@in_a_loop
async def test_a_cancelled_run_names_whoever_cancelled_it(places):
    async with ToolService.open(**places, who="host", tools=[wait_for_ever]) as service:
        run = service.call("wait_for_ever")
        assert service.cancel(run.id, who=BOT) is True
        assert (await run).status == "cancelled"
        (entry,) = acts(service, "cancel")
        assert (entry["run"], entry["who"], entry["whoKind"]) == (run.id, "bot", "agent")


ELSEWHERE = """
import sys
from haft import Principal, ToolService
workspace, home, verb, name = sys.argv[1:]
alice = Principal("alice", thread="T-elsewhere", kind="agent" if verb in ("cancel", "reject") else "person")
with ToolService.open_sync(workspace, home=home, installed=False) as service:
    done = getattr(service, verb)(name, who=alice)
    print(getattr(done, "wait", lambda: done)())
"""


def from_another_process(places, verb, name):
    words = [sys.executable, "-c", ELSEWHERE, str(places["workspace"]), str(places["home"]), verb, name]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


@in_a_loop
async def test_whoever_acts_from_another_process_is_named_too(places):
    settings = {"approval.expires_seconds": 600}
    async with ToolService.open(**places, who="host", tools=[wait_for_ever], settings=settings) as service:
        waiting = service.call("wait_for_ever")
        first = service.call("write_file", {"path": "a.txt", "content": "hello"})
        await asyncio.to_thread(from_another_process, places, "approve", (await asked(service)).id)
        assert (await first).status == "done"
        await asyncio.to_thread(from_another_process, places, "undo", first.id)
        second = service.call("write_file", {"path": "b.txt", "content": "hello"})
        await asyncio.to_thread(from_another_process, places, "reject", (await asked(service)).id)
        assert (await second).status == "rejected-by-user"
        await asyncio.to_thread(from_another_process, places, "cancel", waiting.id)
        assert (await waiting).status == "cancelled"
        done = [
            (one["type"], one["run"], one["who"], one["whoKind"])
            for one in acts(service, "approve", "reject", "cancel")
        ]
        assert done == [
            ("approve", first.id, "alice", "person"),
            ("reject", second.id, "alice", "agent"),
            ("cancel", waiting.id, "alice", "agent"),
        ]
        assert {entry["thread"] for entry in acts(service, "approve", "reject", "cancel")} == {"T-elsewhere"}
        assert people_of(service, "undo") == {("alice", "T-elsewhere", "person")}


@pytest.mark.parametrize("who", [BOT, HELPER], ids=lambda who: who.kind)
def test_agents_call_reject_undo_and_cancel_but_neither_approve_nor_apply(places, who):
    async def main():
        settings = {"approval.expires_seconds": 600}
        async with ToolService.open(**places, who="host", settings=settings) as service:
            held = service.call("write_file", {"path": "b.txt", "content": "hello"}, trial=True, who=who)
            request = await asked(service)
            with pytest.raises(Rejected, match="needs a person"):
                await service.approve(request.id, who=who)
            await service.reject(request.id, who=who)
            assert (await held).changes.state == "discarded"
            asking = service.call("write_file", {"path": "a.txt", "content": "hello"}, who=who)
            await service.approve((await asked(service)).id)
            made = await asking
            assert (await service.undo(made.run_id, who=who)).status == "done"
            assert (await service.redo(made.run_id, who=who)).status == "done"
            with pytest.raises(Rejected, match=f"needs a person: {who.who} is a"):
                service.apply(made.run_id, who=who)
            assert ("bot" in who.who, who.kind) in {
                ("bot" in name, kind) for name, _, kind in people_of(service, "undo")
            }

    asyncio.run(main())


@in_a_loop
async def test_a_service_that_was_opened_for_an_agent_cannot_act_for_a_person(places):
    settings = {"approval.expires_seconds": 600}
    async with ToolService.open(**places, who="host", settings=settings) as person:
        run = person.call("write_file", {"path": "a.txt", "content": "hello"})
        request = await asked(person)
        async with ToolService.open(**places, who=BOT, settings=settings) as service:
            for name in (None, "alice", ALICE):
                with pytest.raises(Rejected, match="needs a person"):
                    await service.approve(request.id, who=name)
                with pytest.raises(Rejected, match="needs a person"):
                    service.apply(run.id, who=name)
            assert person.inbox()
            await service.call("list_directory", {"path": "."}, who="alice")
        assert ("alice", service.thread, "agent") in people_of(service, "list_directory")
        run.cancel()
        await run


@in_a_loop
async def test_a_tool_that_an_agent_calls_cannot_approve_by_the_service_that_it_holds(places):
    """The program hands its own service to a tool: there, nobody is allowed more than whoever called."""
    said = []

    @tool(readonly=True)
    async def approves(request: str) -> None:
        for who in (None, "alice", ALICE):
            try:
                await service.approve(request, who=who)
            except Rejected as error:
                said.append(str(error))

    settings = {"approval.expires_seconds": 600}
    async with ToolService.open(**places, who="host", tools=[approves], settings=settings) as service:
        run = service.call("write_file", {"path": "a.txt", "content": "hello"}, who=BOT)
        request = (await asked(service)).id
        await service.call("approves", {"request": request}, who=BOT)
        assert said == [f"`approve` needs a person: {name} is an agent" for name in ("bot", "alice", "alice")]
        await service.reject(request)
        assert (await run).status == "rejected-by-user"


def test_an_answer_in_the_database_that_an_agent_wrote_approves_nothing(places):
    """Whoever goes past the facade is stopped by the host that takes the answer."""

    async def main():
        settings = {"approval.expires_seconds": 600}
        async with ToolService.open(**places, who="host", settings=settings) as service:
            run = service.call("write_file", {"path": "a.txt", "content": "hello"})
            request = await asked(service)
            with closing(InboxFacade(service.home)) as inbox, pytest.raises(Rejected, match="needs a person"):
                inbox.answer(request, approved=True, who=BOT)
            forged = {"approved": True, "who": "bot", "kind": "agent", "seen": request.digest, "at": 0}
            with closing(sqlite3.connect(places["home"] / "haft.db")) as database, database:
                database.execute("UPDATE approvals SET state = 'answered', answer = ?", [json.dumps(forged)])
            assert (await run).status == "rejected-by-user"
            assert not (places["workspace"] / "a.txt").exists()

    asyncio.run(main())


@pytest.mark.parametrize(
    "change",
    [{"kind": "root"}, {"approved": 1}, {"approved": "yes"}, {"who": ""}, {"further": 1}, None],
    ids=["kind", "number", "text", "nobody", "field", "no object"],
)
def test_an_answer_in_the_database_that_haft_did_not_write_approves_nothing_and_is_over(places, change):
    async def main():
        settings = {"approval.expires_seconds": 600}
        async with ToolService.open(**places, who="host", settings=settings) as service:
            for _ in range(2):  # The same call, which looks for a kept approval.
                run = service.call("write_file", {"path": "a.txt", "content": "hello"})
                request = await asked(service)
                forged = {"approved": True, "who": "eve", "seen": request.digest, "at": 0}
                forged = [] if change is None else forged | change
                with closing(sqlite3.connect(places["home"] / "haft.db")) as database, database:
                    words = "UPDATE approvals SET state = 'answered', answer = ? WHERE state = 'open'"
                    database.execute(words, [json.dumps(forged)])
                assert (await run).status == "rejected-by-user"
            assert not (places["workspace"] / "a.txt").exists()

    asyncio.run(main())


HOST = """
import sys
from haft import ToolService
workspace, home = sys.argv[1:]
settings = {"approval.expires_seconds": 600}
with ToolService.open_sync(workspace, home=home, installed=False, who="host", settings=settings) as service:
    service.call("write_file", {"path": "a.txt", "content": "hello"}).wait()
"""


def test_an_answer_to_a_host_that_was_killed_is_logged_by_whoever_answers(places):
    words = [sys.executable, "-c", HOST, str(places["workspace"]), str(places["home"])]
    host = subprocess.Popen(words)

    async def main():
        async with ToolService.open(**places) as service:
            request = await asked(service)
            host.kill()
            host.wait()
            reply = await service.reject(request.id, who=ALICE)
            assert reply.host_lives is False
            (entry,) = acts(service, "reject")
            assert (entry["who"], entry["run"], entry["request"]) == ("alice", request.run, request.id)

    try:
        asyncio.run(main())
    finally:
        host.kill()
        host.wait()


@pytest.mark.parametrize("who", [BOT, HELPER], ids=lambda who: who.kind)
def test_agents_neither_trust_a_workspace_nor_change_rules(places, who, monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    file = places["workspace"] / "haft.toml"
    file.write_text('[[permissions]]\ntool = "shell"\naction = "allow"\n')
    home = StateHome(str(places["home"]))
    facade = TrustFacade(str(places["workspace"]), home)
    with pytest.raises(Rejected, match="`trust` needs a person"):
        facade.trust(facade.look(), who)
    assert facade.look().counts is False
    rules = RuleChanges(str(places["workspace"]), home, who)
    with pytest.raises(Rejected, match="needs a person"):
        rules.add({"tool": "*", "action": "allow"}, (), in_workspace=False, is_first=True)
    with pytest.raises(Rejected, match="needs a person"):
        rules.remove("haft.toml:1")
    assert not (tmp_path / "config").exists() and file.read_text().count("permissions") == 1
    assert facade.trust(facade.look(), ALICE) is not None
    assert facade.look().counts is True


def test_the_command_line_acts_as_the_user_who_typed_it(places, capsys, monkeypatch):
    from haft.surfaces.cli.main import run as haft

    monkeypatch.setenv("HAFT_HOME", str(places["home"]))
    workspace = ["-w", str(places["workspace"])]

    async def main():
        async with ToolService.open(**places, who="host", settings={"approval.expires_seconds": 600}) as service:
            run = service.call("write_file", {"path": "a.txt", "content": "hello"})
            request = await asked(service)
            assert await asyncio.to_thread(haft, [*workspace, "approve", request.id]) == 0
            await run

    asyncio.run(main())
    capsys.readouterr()
    assert haft([*workspace, "audit", "list", "--json"]) == 0
    entries = json.loads(capsys.readouterr().out)
    assert [entry["who"] for entry in entries if entry["type"] == "approve"] == [user_name()]
    assert haft([*workspace, "audit", "list"]) == 0
    assert "approve" in capsys.readouterr().out
    assert haft([*workspace, "undo"]) != 0, "the call was the host's, and not this user's"
    run = next(entry["run"] for entry in entries if entry["type"] == "end")
    assert haft([*workspace, "undo", run]) == 0
    capsys.readouterr()
    assert haft([*workspace, "log", "--who", user_name(), "--json"]) == 0
    assert [run["tool"] for run in json.loads(capsys.readouterr().out)] == ["undo"]


def test_a_principal_has_a_name_and_a_known_kind():
    for wrong in ({"who": ""}, {"who": 3}, {"who": "x", "kind": "robot"}, {"who": "x", "thread": 5}):
        with pytest.raises(BadUsage):
            Principal(**wrong)
    with pytest.raises((AttributeError, TypeError)):
        ALICE.kind = "agent"
