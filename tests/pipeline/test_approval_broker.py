"""Questions that any process can answer: the inbox beside an approver, expiry, memory, what outlives a host."""

import asyncio
import subprocess
import sys
import textwrap

import pytest

from haft import ApprovalAnswer, ToolService
from haft.contracts import AnsweredBefore, BadUsage, Conflict

WAITING = {"approval.expires_seconds": 60}


async def eventually(condition):
    for _ in range(2000):
        if found := condition():
            return found
        await asyncio.sleep(0.01)
    raise AssertionError(f"did not happen: {condition}")


def serve(tmp_path, body, **options):
    workspace = tmp_path / "workspace"
    workspace.mkdir(exist_ok=True)

    async def main():
        options.setdefault("settings", WAITING)
        async with ToolService.open(workspace, home=tmp_path / "home", **options) as service:
            return await asyncio.wait_for(body(service), 60)

    return asyncio.run(main())


def test_without_an_approver_a_call_waits_in_the_inbox_and_goes_on_when_it_is_approved(tmp_path):
    async def body(service):
        run = service.call("shell", {"command": "touch made"})
        (waiting,) = await eventually(service.inbox)
        assert (waiting.run, waiting.shown["arguments"]) == (run.id, {"command": "touch made"})
        assert waiting.shown["parts"][0]["action"] == "ask"
        assert run.status == "blocked-on-user"
        reply = await service.approve(waiting.id)
        assert reply.host_lives
        outcome = await run
        assert (outcome.status, outcome.decision.by) == ("done", "person")
        assert (tmp_path / "workspace" / "made").exists()
        assert service.inbox() == []
        with pytest.raises(AnsweredBefore, match="answered already"):
            await service.approve(waiting.id)

    serve(tmp_path, body)


def test_a_no_reaches_the_caller_with_its_message(tmp_path):
    async def body(service):
        run = service.call("write_file", {"path": "a", "content": ""})
        (waiting,) = await eventually(service.inbox)
        await service.reject(waiting.run, message="not today")
        outcome = await run
        assert (outcome.status, outcome.decision.by, outcome.decision.reason) == (
            "rejected-by-user",
            "person",
            "not today",
        )
        assert "not today" in outcome.error.message

    serve(tmp_path, body)


def test_nobody_answers_and_it_expires(tmp_path):
    async def body(service):
        outcome = await service.call("write_file", {"path": "a", "content": ""})
        assert (outcome.status, outcome.error.code, outcome.decision.by) == ("rejected-by-user", "rejected", "expiry")
        assert service.inbox() == []

    serve(tmp_path, body, settings={"approval.expires_seconds": 0.3})


def test_edited_arguments_are_validated_and_decided_again(tmp_path):
    rules = [{"tool": "shell", "action": "reject", "matches": {"command": "rm *"}}]

    async def body(service):
        run = service.call("shell", {"command": "touch made"})
        (waiting,) = await eventually(service.inbox)
        await service.approve(waiting.id, arguments={"command": "touch other"})
        assert (await run).status == "done"
        assert not (tmp_path / "workspace" / "made").exists()
        assert (tmp_path / "workspace" / "other").exists()
        run = service.call("shell", {"command": "touch made"})
        (waiting,) = await eventually(service.inbox)
        await service.approve(waiting.id, arguments={"command": "rm other"})
        outcome = await run
        assert (outcome.status, outcome.decision.layer) == ("rejected-by-user", "rules")
        assert (tmp_path / "workspace" / "other").exists()
        run = service.call("shell", {"command": "touch made"})
        (waiting,) = await eventually(service.inbox)
        await service.approve(waiting.id, arguments={"comand": "ls"})
        assert (await run).error.code == "invalid-arguments"

    serve(tmp_path, body, settings={**WAITING, "permissions": rules})


def test_a_cancelled_call_withdraws_its_question(tmp_path):
    async def body(service):
        run = service.call("write_file", {"path": "a", "content": ""})
        (waiting,) = await eventually(service.inbox)
        run.cancel()
        assert (await run).status == "cancelled"
        assert service.inbox() == []
        with pytest.raises(BadUsage, match="needs no answer"):
            await service.approve(waiting.id)

    serve(tmp_path, body)


def test_an_approver_and_the_inbox_race_and_the_first_wins(tmp_path):
    called_off = []

    async def slow(request):
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            called_off.append(request.id)
            raise

    async def body(service):
        run = service.call("shell", {"command": "touch made"})
        (waiting,) = await eventually(service.inbox)
        await service.approve(waiting.id)
        assert (await run).status == "done"
        assert called_off == [waiting.id]

    serve(tmp_path, body, approver=slow, settings={"approval.expires_seconds": 0})


def test_a_slow_approver_that_answers_closes_the_question(tmp_path):
    async def slow(request):
        await asyncio.sleep(0.4)
        return True

    async def body(service):
        run = service.call("shell", {"command": "touch made"})
        (waiting,) = await eventually(service.inbox)
        assert (await run).status == "done"
        with pytest.raises((BadUsage, Conflict)):
            await service.approve(waiting.id)

    serve(tmp_path, body, approver=slow)


def test_an_answer_to_something_else_than_was_asked_is_no_answer(tmp_path):
    from haft.storage.sqlite.database import Database

    async def body(service):
        run = service.call("shell", {"command": "touch made"})
        (waiting,) = await eventually(service.inbox)
        database = Database(service.home.database)
        database.execute("UPDATE approvals SET shown = replace(shown, 'touch made', 'ls')")
        database.close()
        await service.approve(waiting.id)
        outcome = await run
        assert (outcome.status, outcome.decision.by) == ("rejected-by-user", "nobody")
        assert not (tmp_path / "workspace" / "made").exists()

    serve(tmp_path, body)


@pytest.mark.parametrize("scope", ["thread", "always"])
def test_what_was_allowed_beyond_once_passes_unasked_and_nothing_wider_does(tmp_path, scope):
    asked = []

    async def allow(request):
        asked.append(request.arguments["command"])
        return ApprovalAnswer(approved=True, scope=scope)

    async def body(service):
        for thread, command in (
            ("T-1", "touch made"),
            ("T-1", "touch made"),
            ("T-1", "touch made; touch more"),
            ("T-2", "touch made"),
        ):
            outcome = await service.call("shell", {"command": command}, thread=thread)
            assert outcome.status == "done"
        again = ["touch made"] if scope == "thread" else []
        assert asked == ["touch made", "touch made; touch more", *again]
        assert outcome.decision.source.startswith("remembered:") or scope == "thread"

    serve(tmp_path, body, approver=allow)
    if scope == "always":

        async def later(service):
            outcome = await service.call("shell", {"command": "touch made"})
            assert (outcome.status, outcome.decision.by) == ("done", "rule")

        serve(tmp_path, later, settings={"approval.expires_seconds": 0})


def test_always_for_what_runs_anything_is_a_yes_for_once(tmp_path):
    asked = []

    async def always(request):
        asked.append(request)
        return ApprovalAnswer(approved=True, scope="always")

    async def body(service):
        for _ in range(2):
            outcome = await service.call("shell", {"command": "python3 -c 'print(1)'"})
            assert "this once" in outcome.decision.reason
        assert len(asked) == 2

    serve(tmp_path, body, approver=always)


ASKER = """
import asyncio, sys
from haft import ToolService

async def main():
    async with ToolService.open(sys.argv[1], home=sys.argv[2], settings={"approval.expires_seconds": 60}) as service:
        print((await service.call("shell", {"command": "touch made"}, trial=sys.argv[3] == "try")).status, flush=True)

asyncio.run(main())
"""


@pytest.fixture
def asker(tmp_path):
    """Another process with a call that waits."""
    started = []

    def start(how="plain"):
        (tmp_path / "workspace").mkdir(exist_ok=True)
        words = [sys.executable, "-c", textwrap.dedent(ASKER), tmp_path / "workspace", tmp_path / "home", how]
        process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.wait()
        process.stdout.close()


def test_another_process_goes_on_when_this_one_approves(tmp_path, asker):
    process = asker()

    async def body(service):
        (waiting,) = await eventually(service.inbox)
        await service.approve(waiting.id)
        assert (await asyncio.to_thread(process.stdout.readline)).strip() == "done"
        assert (tmp_path / "workspace" / "made").exists()

    serve(tmp_path, body)


def test_a_yes_after_the_asker_died_is_kept_for_exactly_that_call_once(tmp_path, asker):
    process = asker()

    async def wait(service):
        (waiting,) = await eventually(service.inbox)
        return waiting

    waiting = serve(tmp_path, wait)
    process.kill()
    process.wait()

    async def body(service):
        thread = waiting.thread
        assert service.run(waiting.run).outcome["error"]["code"] == "interrupted"
        assert [each.id for each in service.inbox()] == [waiting.id]
        with pytest.raises(BadUsage, match="has ended"):
            await service.approve(waiting.id, arguments={"command": "touch other"})
        reply = await service.approve(waiting.id)
        assert not reply.host_lives
        assert not (tmp_path / "workspace" / "made").exists()
        for command, where, status in (
            ("touch other", thread, "rejected-by-user"),
            ("touch made", "T-other", "done"),
            ("touch made", thread, "rejected-by-user"),
        ):
            assert (await service.call("shell", {"command": command}, thread=where)).status == status

    serve(tmp_path, body, settings={"approval.expires_seconds": 0})


@pytest.mark.parametrize("approved", [True, False])
def test_what_a_dead_asker_had_tried_is_committed_or_dropped_by_who_answers(tmp_path, asker, approved):
    process = asker("try")

    async def wait(service):
        (waiting,) = await eventually(service.inbox)
        assert waiting.tried
        assert "made" in waiting.shown["diff"]
        return waiting

    waiting = serve(tmp_path, wait)
    process.kill()
    process.wait()

    async def body(service):
        await (service.approve if approved else service.reject)(waiting.id)
        assert (tmp_path / "workspace" / "made").exists() == approved
        assert service.inbox() == []

    serve(tmp_path, body)


def test_a_tool_that_changes_while_it_is_asked_about_is_not_run(tmp_path):
    from haft.contracts import Answer, ToolName, ToolSpec

    file = tmp_path / "tool.py"
    file.write_text("good\n")
    ran = []

    class Foreign:
        spec = ToolSpec(
            ToolName("foreign"), "python", "Helps.", {"type": "object"}, provenance="workspace", files=(str(file),)
        )

        async def preprocess(self, arguments, _context):
            return arguments

        async def invoke(self, _arguments, _context):
            ran.append(file.read_text())
            return Answer(text="ran")

    async def swapping(_request):
        file.write_text("evil\n")
        return ApprovalAnswer(approved=True, scope="always")

    async def body(service):
        outcome = await service.call("foreign")
        assert (outcome.status, outcome.error.code) == ("error", "conflict")
        assert ran == []

    serve(tmp_path, body, approver=swapping, tools=[Foreign()])


def test_whoever_watches_a_call_that_waits_learns_which_request_why_and_what_would_allow_it(tmp_path):
    async def body(service):
        run = service.call("shell", {"command": "touch made"})
        (waiting,) = await eventually(service.inbox)
        late = await anext(aiter(run))
        assert (late.type, late.status) == ("status", "blocked-on-user")
        assert late.facts == {
            "request": waiting.id,
            "reason": waiting.shown["reason"],
            "toAllow": waiting.shown["toAllow"],
        }
        assert late.facts["toAllow"][0]["label"] and late.facts["toAllow"][0]["rule"]
        await service.approve(late.facts["request"])
        assert (await run).status == "done"
        assert (await anext(aiter(run))).facts == {}, "nothing is asked any more"

    serve(tmp_path, body)


def test_the_question_after_a_trial_tells_the_same(tmp_path):
    async def body(service):
        run = service.call("write_file", {"path": "a", "content": ""}, trial=True)
        told = [event.facts async for event in run if event.status == "blocked-on-user" and event.type == "status"]
        assert told and told[0]["request"] and "trial run" in told[0]["reason"] and told[0]["toAllow"] == []

    async def no(_request):
        return False

    serve(tmp_path, body, approver=no)
