"""Several people at one service: whose "always" counts for whom, and calls that somebody else must approve."""

import asyncio

import pytest

from haft import ApprovalAnswer, Principal, ToolService
from haft.contracts import OwnCall
from haft.service import user_name

TOUCH = {"command": "touch made"}
ANN, BOB = Principal("ann"), Principal("bob")
AGENT = Principal("claude-code", kind="agent")


async def asked(service):
    for _ in range(3000):
        if found := service.inbox():
            return found[0]
        await asyncio.sleep(0.01)
    raise AssertionError("nothing waits")


@pytest.fixture
def serve(tmp_path):
    (tmp_path / "workspace").mkdir()

    def run(body, *, four_eyes=False, seconds=60, **options):
        async def main():
            settings = {"approval.expires_seconds": seconds, "approval.four_eyes": four_eyes}
            options.setdefault("home", tmp_path / "home")
            async with ToolService.open(tmp_path / "workspace", settings=settings, **options) as service:
                return await asyncio.wait_for(body(service), 60)

        return asyncio.run(main())

    return run


async def approved_always(service, caller, by):
    run = service.call("shell", TOUCH, who=caller)
    await service.approve((await asked(service)).id, scope="always", who=by)
    assert (await run).status == "done"


async def is_covered(service, caller):
    """Whether a call of this caller runs without a question."""
    run = service.call("shell", TOUCH, who=caller)
    while run.outcome is None and run.status != "blocked-on-user":
        await asyncio.sleep(0.01)
    covered = run.outcome is not None
    run.cancel()
    await run
    return covered


def test_always_of_one_person_counts_for_nobody_else(serve):
    async def body(service):
        await approved_always(service, ANN, ANN)
        assert await is_covered(service, ANN)
        assert not await is_covered(service, BOB)
        await approved_always(service, BOB, ANN)
        assert await is_covered(service, BOB), "it is the call that was approved"
        assert not await is_covered(service, Principal("carla"))

    serve(body)


def test_on_a_machine_of_one_person_agents_are_covered_by_this_persons_always(serve):
    me = Principal(user_name())

    async def body(service):
        await approved_always(service, me, me)
        assert await is_covered(service, me)
        assert await is_covered(service, AGENT)
        assert not await is_covered(service, BOB)

    serve(body)


def test_in_a_shared_workspace_an_agent_is_covered_by_nobody_unless_it_acts_for_them(serve):
    me = Principal(user_name())

    async def body(service):
        await approved_always(service, me, me)
        assert not await is_covered(service, AGENT)
        assert await is_covered(service, Principal("claude-code", kind="agent", on_behalf=me.who))
        await approved_always(service, AGENT, ANN)
        assert await is_covered(service, AGENT)
        assert not await is_covered(service, Principal("codex", kind="agent"))

    serve(body, is_shared=True)


def test_a_persons_own_call_must_be_approved_by_somebody_else(serve):
    async def body(service):
        run = service.call("shell", TOUCH, who=ANN)
        waiting = await asked(service)
        assert waiting.shown["notBy"] == ["ann"]
        with pytest.raises(OwnCall, match="somebody else"):
            await service.approve(waiting.id, who=ANN)
        with pytest.raises(OwnCall):
            await service.approve(waiting.id, who=Principal("ann-at-work", on_behalf="ann"))
        assert run.status == "blocked-on-user"
        await service.approve(waiting.id, who=BOB)
        assert (await run).status == "done"

    serve(body, four_eyes=True)


def test_a_person_can_reject_a_call_of_their_own(serve):
    async def body(service):
        run = service.call("shell", TOUCH, who=ANN)
        await service.reject((await asked(service)).id, who=ANN)
        assert (await run).status == "rejected-by-user"

    serve(body, four_eyes=True)


def test_an_answer_in_the_inbox_that_got_there_by_another_way_does_not_count(serve):
    from haft.policy import Answered, Inbox
    from haft.storage import open_stores

    async def body(service):
        run = service.call("shell", TOUCH, who=ANN)
        waiting = await asked(service)
        connection = open_stores(service._host.home).connect()
        Inbox(connection).answer(waiting, Answered(approved=True, who="ann", seen=waiting.digest, at=0.0))
        await service.approve((await asked(service)).id, who=BOB)
        outcome = await run
        assert (outcome.status, outcome.decision.reason) == ("done", "bob approved it in the inbox")
        refusals = [each["reason"] async for each in service.audit.entries() if each["type"] == "refuse"]
        assert len(refusals) == 1 and "four_eyes" in refusals[0]

    serve(body, four_eyes=True)


def test_the_approver_of_the_caller_is_not_asked_and_its_answer_does_not_count(serve):
    requests = []

    def approver(request):
        requests.append(request)
        return ApprovalAnswer(approved=True, who="bob")

    async def body(service):
        outcome = await service.call("shell", TOUCH, who=ANN)
        assert (outcome.status, len(requests)) == ("rejected-by-user", 0)
        outcome = await service.call("shell", TOUCH, who=BOB)
        assert (outcome.status, len(requests)) == ("rejected-by-user", 1), "bob is asked about a call of bob"
        assert (await service.call("shell", TOUCH, who="carla")).status == "done"

    serve(body, four_eyes=True, seconds=0, approver=approver, who="ann")


def test_nobody_is_covered_by_an_always_of_their_own(serve):
    async def body(service):
        await approved_always(service, ANN, BOB)
        assert await is_covered(service, ANN)
        assert not await is_covered(service, BOB)

    serve(body, four_eyes=True)


def test_agents_of_a_person_count_as_the_person(serve):
    async def body(service):
        run = service.call("shell", TOUCH, who=AGENT)
        waiting = await asked(service)
        assert waiting.shown["notBy"] == sorted(["claude-code", user_name()])
        with pytest.raises(OwnCall):
            await service.approve(waiting.id, who=user_name())
        await service.approve(waiting.id, who=BOB)
        assert (await run).status == "done"

    serve(body, four_eyes=True)


def test_held_changes_of_a_persons_own_trial_run_are_applied_by_somebody_else(serve):
    async def body(service):
        run = service.call("shell", TOUCH, who=ANN, trial=True)
        waiting = await asked(service)
        with pytest.raises(OwnCall):
            await service.approve(waiting.id, who=ANN)
        with pytest.raises(OwnCall):
            service.apply(run.id, who=ANN)
        await service.approve(waiting.id, who=BOB)
        assert (await run).changes.state == "committed"

    serve(body, four_eyes=True)
