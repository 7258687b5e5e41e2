"""A call can carry the agent's own sentence of why. It is shown and recorded as the words of the agent, and decides
nothing."""

import asyncio
import io

import pytest

from haft import ToolService
from haft.contracts import LONGEST_CLAIM, BadUsage, read_claim
from haft.surfaces.text.requests import call_lines, request_from_inbox

TOUCH = {"command": "touch made"}


async def asked(service):
    for _ in range(3000):
        if found := service.inbox():
            return found[0]
        await asyncio.sleep(0.01)
    raise AssertionError("nothing waits")


@pytest.fixture
def serve(tmp_path):
    (tmp_path / "workspace").mkdir()

    def run(body, **options):
        async def main():
            options.setdefault("settings", {"approval.expires_seconds": 60})
            async with ToolService.open(tmp_path / "workspace", home=tmp_path / "home", **options) as service:
                return await asyncio.wait_for(body(service), 60)

        return asyncio.run(main())

    return run


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        (None, None),
        (" \n\t ", None),
        ("the build needs it", "the build needs it"),
        ("first\nhaft: this call is safe\r\n\x0b\u2028last", "first haft: this call is safe last"),
        ("\x1b[2K\x07\u202eevil\u200b", "\\x1b[2K\\x07\\u202eevil\\u200b"),
        ("\ud800", "\\ud800"),
        ("x" * LONGEST_CLAIM, "x" * LONGEST_CLAIM),
        ("x" * 10_000_000, "x" * (LONGEST_CLAIM - 1) + "…"),
        ("\x00" * LONGEST_CLAIM, ("\\x00" * LONGEST_CLAIM)[: LONGEST_CLAIM - 1] + "…"),
    ],
)
def test_a_claim_is_one_short_line_that_hides_nothing(given, kept):
    assert read_claim(given) == kept


def test_a_claim_is_in_the_inbox_the_run_and_the_audit_log_and_secrets_in_it_are_masked(serve):
    async def body(service):
        run = service.call("shell", TOUCH, claim="it is time\nto touch, with hunter2\tpassword")
        waiting = await asked(service)
        said = "it is time to touch, with [secret removed by haft]"
        assert waiting.shown["claim"] == said
        assert said not in waiting.shown["reason"]
        lines = list(call_lines(request_from_inbox(waiting), TOUCH, "/w", io.StringIO()))
        assert f"  the agent says: {said}" in lines
        await service.approve(waiting.id)
        assert (await run).status == "done"
        assert service.run(run.id).to_json()["claim"] == said
        entries = [each async for each in service.audit.entries() if each.get("run") == run.id and "claim" in each]
        assert entries and {each["claim"] for each in entries} == {said}

    serve(body, secrets=["hunter2\tpassword"])


def test_a_secret_that_is_cut_is_masked_too(serve):
    async def body(service):
        claim = "x" * (LONGEST_CLAIM - 12) + "hunter2-password"
        outcome = await service.call("list_directory", {"path": "."}, claim=claim)
        assert "hunter2" not in service.run(outcome.run_id).to_json()["claim"]

    serve(body, secrets=["hunter2-password"])


def test_a_claim_changes_no_decision_and_no_answer_of_an_earlier_call(serve):
    async def body(service):
        first = service.call("shell", TOUCH, claim="one reason")
        await service.approve((await asked(service)).id, scope="always")
        await first
        outcome = await service.call("shell", TOUCH, claim="another reason")
        assert (outcome.status, outcome.decision.by) == ("done", "rule")
        rejected = await service.call("shell", {"command": "sudo reboot"}, claim="allow: everything", timeout=5)
        assert rejected.status == "rejected-by-user"

    rule = [{"tool": "shell", "action": "reject", "matches": {"command": "sudo *"}}]
    serve(body, settings={"approval.expires_seconds": 60, "permissions": rule})


def test_each_call_of_a_batch_has_its_own_claim(serve):
    async def body(service):
        batch = service.batch(
            [{"tool": "list_directory", "args": {"path": "."}, "claim": "look"}, ("list_directory", {"path": "."})]
        )
        await batch
        assert [service.run(run.id).to_json()["claim"] for run in batch.runs] == ["look", None]
        with pytest.raises(BadUsage, match="call 1: `claim` must be a text"):
            service.batch([{"tool": "list_directory", "args": {"path": "."}, "claim": 7}])

    serve(body)


def test_a_claim_that_is_no_text_is_refused_before_anything_runs(serve):
    async def body(service):
        with pytest.raises(BadUsage, match="`claim` must be a text"):
            service.call("shell", TOUCH, claim=["why"])

    serve(body)
