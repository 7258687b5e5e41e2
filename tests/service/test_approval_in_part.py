"""One answer to a request carries the digest of what was shown, and for a trial run the chosen paths."""

import asyncio
import os
import subprocess
import sys
import textwrap

import pytest

from haft import ApprovalAnswer, Context, ToolService, tool
from haft.contracts import AnsweredBefore, BadUsage, ShownHasChanged

WAITING = {"approval.expires_seconds": 60}
WRITES = {"command": "echo a > a; echo b > b; mkdir new; echo c > new/c; echo d > new/d; echo said"}


async def eventually(condition):
    for _ in range(3000):
        if found := condition():
            return found
        await asyncio.sleep(0.01)
    raise AssertionError(f"did not happen: {condition}")


def serve(tmp_path, body, **options):
    (tmp_path / "workspace").mkdir(exist_ok=True)

    async def main():
        options.setdefault("settings", WAITING)
        async with ToolService.open(tmp_path / "workspace", home=tmp_path / "home", **options) as service:
            return await asyncio.wait_for(body(service), 60)

    return asyncio.run(main())


def files(tmp_path):
    root = tmp_path / "workspace"
    return sorted(os.path.relpath(each, root) for each in root.rglob("*") if each.is_file())


def test_an_answer_applies_the_chosen_paths_and_the_rest_stays_held(tmp_path):
    async def body(service):
        run = service.call("shell", WRITES, trial=True)
        (waiting,) = await eventually(service.inbox)
        reply = await service.approve(waiting.id, paths=["a", "new/c"], digest=waiting.digest)
        assert reply.paths == ("a", "new/c")
        outcome = await run
        assert (outcome.status, outcome.output, outcome.changes.state) == ("done", "said\n", "held")
        assert {each.path for each in outcome.changes.files} == {"b", "new/d"}
        assert files(tmp_path) == ["a", "new/c"]
        (note,) = outcome.notes
        applied = next(word for word in note.split() if word.startswith("r_"))
        record = service.run(applied)
        assert (record.tool, record.who) == ("apply", outcome.who)
        await service.undo(applied)
        assert files(tmp_path) == []
        await service.apply(run.id)
        assert files(tmp_path) == ["b", "new/d"]

    serve(tmp_path, body)


def test_all_paths_are_the_whole(tmp_path):
    async def body(service):
        run = service.call("shell", WRITES, trial=True)
        (waiting,) = await eventually(service.inbox)
        await service.approve(waiting.id, paths=["."])
        outcome = await run
        assert (outcome.status, outcome.changes.state, outcome.notes) == ("done", "committed", ())
        assert files(tmp_path) == ["a", "b", "new/c", "new/d"]

    serve(tmp_path, body)


def test_an_approver_of_the_program_can_choose_paths_too(tmp_path):
    outcome = serve(
        tmp_path,
        lambda service: _outcome(service.call("shell", WRITES, trial=True)),
        approver=lambda request: ApprovalAnswer(approved=True, paths=("b",)),
    )
    assert outcome.changes.state == "held" and files(tmp_path) == ["b"]


async def _outcome(run):
    return await run


def test_a_part_of_a_nested_trial_run_is_applied_while_its_caller_holds_the_only_place(tmp_path):
    @tool
    async def outer(context: Context) -> str:
        """Try a command."""
        outcome = await context.call("shell", WRITES)
        return outcome.changes.state

    rules = [{"tool": "shell", "action": "try"}, {"tool": "outer", "action": "allow"}]

    async def body(service):
        run = service.call("outer", {})
        (waiting,) = await eventually(service.inbox)
        await service.approve(waiting.id, paths=["a"])
        outcome = await run
        assert (outcome.status, outcome.output) == ("done", "held")
        assert files(tmp_path) == ["a"]

    serve(tmp_path, body, tools=[outer], settings={**WAITING, "permissions": rules, "limits.max_concurrent": 1})


def test_a_protected_path_is_applied_no_more_easily_than_with_the_whole(tmp_path):
    async def body(service):
        run = service.call("shell", {"command": "echo a > a; echo {} > x.code-workspace"}, trial=True)
        (waiting,) = await eventually(service.inbox)
        await service.approve(waiting.id, paths=["x.code-workspace"])
        outcome = await run
        assert (outcome.status, outcome.error.code, outcome.changes.state) == ("error", "sandbox-denied", "held")
        assert files(tmp_path) == []

    serve(tmp_path, body)


@pytest.mark.parametrize(
    ("paths", "why"),
    [(["neww/c"], "did you mean `new/c`"), (["a", "/etc/passwd"], "holds no change of `/etc/passwd`")],
)
def test_a_path_that_did_not_change_is_refused_and_nothing_happens(tmp_path, paths, why):
    async def body(service):
        service.call("shell", WRITES, trial=True)
        (waiting,) = await eventually(service.inbox)
        with pytest.raises(BadUsage) as refused:
            await service.approve(waiting.id, paths=paths)
        assert why in f"{refused.value.message} {refused.value.hint}"
        assert [each.id for each in service.inbox()] == [waiting.id] and files(tmp_path) == []

    serve(tmp_path, body)


def test_paths_belong_to_the_changes_of_a_trial_run(tmp_path):
    async def body(service):
        service.call("shell", {"command": "touch made"})
        (waiting,) = await eventually(service.inbox)
        with pytest.raises(BadUsage, match="paths can be chosen only"):
            await service.approve(waiting.id, paths=["made"])
        assert service.inbox()

    serve(tmp_path, body)


def test_what_was_shown_has_changed_so_nothing_happens_and_the_new_digest_counts(tmp_path):
    async def body(service):
        run = service.call("shell", WRITES, trial=True)
        (seen,) = await eventually(service.inbox)
        await service.changes.apply(run.id, paths=["a"])  # Somebody else applies a part meanwhile.
        for answer in (service.approve, service.reject):
            with pytest.raises(ShownHasChanged) as refused:
                await answer(seen.id, digest=seen.digest)
            assert refused.value.code == "conflict" and refused.value.digest != seen.digest
            assert refused.value.digest in refused.value.message
        (now,) = service.inbox()
        assert now.digest == refused.value.digest and "+++ b/a\n" not in now.shown["diff"]
        assert run.status == "blocked-on-user" and files(tmp_path) == ["a"]
        await service.approve(now.id, digest=now.digest)
        outcome = await run
        assert (outcome.status, outcome.changes.state) == ("done", "committed")
        assert files(tmp_path) == ["a", "b", "new/c", "new/d"]

    serve(tmp_path, body)


def test_a_digest_of_something_else_answers_no_call(tmp_path):
    async def body(service):
        run = service.call("shell", {"command": "touch made"})
        (waiting,) = await eventually(service.inbox)
        with pytest.raises(ShownHasChanged) as refused:
            await service.approve(waiting.id, digest="0" * 64)
        assert refused.value.digest == waiting.digest
        await service.approve(waiting.id, digest=waiting.digest)
        assert (await run).status == "done"

    serve(tmp_path, body)


def test_who_comes_second_hears_who_was_first_and_how(tmp_path):
    async def body(service):
        run = service.call("shell", {"command": "touch made"})
        (waiting,) = await eventually(service.inbox)
        await service.approve(waiting.id, scope="thread", who="ann")
        with pytest.raises(AnsweredBefore) as late:
            await service.reject(waiting.id, who="bob")
        assert late.value.answered_by == "ann approved it, for its thread"
        assert (late.value.code, late.value.retryable) == ("conflict", False)
        await run
        with pytest.raises(AnsweredBefore, match="ann approved it"):
            await service.approve(waiting.id, who="bob")

    serve(tmp_path, body)


def test_who_comes_after_the_approver_of_the_program_hears_that_too(tmp_path):
    answer = None

    async def approver(request):
        return await answer

    async def body(service):
        nonlocal answer
        answer = asyncio.get_running_loop().create_future()
        run = service.call("shell", {"command": "touch made"})
        (waiting,) = await eventually(service.inbox)
        answer.set_result(ApprovalAnswer(approved=False, who="carla"))
        await run
        with pytest.raises(AnsweredBefore) as late:
            await service.approve(waiting.id)
        assert late.value.answered_by == "carla rejected it"

    serve(tmp_path, body, approver=approver)


def test_the_audit_log_has_the_chosen_paths(tmp_path):
    async def body(service):
        run = service.call("shell", WRITES, trial=True)
        (waiting,) = await eventually(service.inbox)
        await service.approve(waiting.id, paths=["b"])
        await run
        assert [each["paths"] async for each in service.audit.entries() if each["type"] == "approve"] == [["b"]]

    serve(tmp_path, body)


ASKS = textwrap.dedent("""
    import asyncio, sys
    from haft import ToolService

    async def main(workspace, home, command):
        async with ToolService.open(workspace, home=home, settings={"approval.expires_seconds": 60}) as service:
            service.call("shell", {"command": command}, trial=True)
            while not service.inbox():
                await asyncio.sleep(0.01)
            print("asked", flush=True)
            await asyncio.sleep(60)

    asyncio.run(main(*sys.argv[1:]))
""")


def test_a_part_is_applied_though_the_host_that_asked_is_dead(tmp_path):
    (tmp_path / "workspace").mkdir()
    words = [sys.executable, "-c", ASKS, tmp_path / "workspace", tmp_path / "home", WRITES["command"]]
    with subprocess.Popen(words, stdout=subprocess.PIPE) as host:
        assert host.stdout.readline() == b"asked\n"
        host.kill()

    async def body(service):
        (waiting,) = service.inbox()
        with pytest.raises(ShownHasChanged):
            await service.approve(waiting.id, paths=["a"], digest="0" * 64)
        reply = await service.approve(waiting.id, paths=["a"], digest=waiting.digest)
        assert not reply.host_lives
        assert files(tmp_path) == ["a"]
        await service.apply(waiting.run)
        assert files(tmp_path) == ["a", "b", "new/c", "new/d"]

    serve(tmp_path, body)
