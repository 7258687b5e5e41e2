"""The approval passphrase: answers that other processes write count only with its proof."""

import asyncio
import contextlib
import functools
import json
import os
import sqlite3
import time

import pytest

from haft.contracts import ApprovalAnswer, BadConfig, BadUsage, Rejected
from haft.policy import Answered, Verifier
from haft.service import ApprovalSecret, InboxFacade, StateHome, ToolService, this_user
from haft.storage import encode


def run_async(test):
    """A test that is a coroutine, as pytest runs it."""

    @functools.wraps(test)
    def run(*words, **named):
        async def limited():
            async with asyncio.timeout(60):
                await test(*words, **named)

        asyncio.run(limited())

    return run


PASSPHRASE = "correct horse"
WRITES = {"path": "made.txt", "content": "x"}


@pytest.fixture
def home(tmp_path):
    made = StateHome(str(tmp_path / "home"))
    made.prepare()
    return made


@pytest.fixture
def secret(home):
    made = ApprovalSecret(home)
    made.set(PASSPHRASE)
    return made


@pytest.fixture
def workspace(tmp_path):
    made = tmp_path / "workspace"
    made.mkdir()
    return made


def service_of(workspace, home, **options):
    return ToolService.open(workspace, home=home, settings={"approval.expires_seconds": 60.0}, **options)


async def request_of(home, run):
    """The request of a run, as soon as it waits."""
    while True:
        with contextlib.closing(InboxFacade(home)) as inbox:
            for waiting in inbox.waiting():
                if waiting.run == run.id:
                    return waiting
        await asyncio.sleep(0.02)


def written(home, request, answered):
    """Write an answer into the database, as a program of the same user could."""
    with contextlib.closing(sqlite3.connect(home.database, timeout=30)) as database:
        database.execute(
            "UPDATE approvals SET state = 'answered', answer = ? WHERE id = ?",
            [encode(answered.to_json()).decode(), request],
        )
        database.commit()


def refusals(service):
    return [entry for entry in service.record.entries() if entry["type"] == "refuse"]


async def until(look):
    while not (found := look()):
        await asyncio.sleep(0.02)
    return found


def test_setting_changing_and_removing_need_the_old_passphrase(secret):
    for wrong in (None, "", "wrong horse"):
        with pytest.raises(Rejected, match="wrong"):
            secret.set("another horse", wrong)
        with pytest.raises(Rejected, match="wrong"):
            secret.remove(wrong)
    secret.set("another horse", PASSPHRASE)
    with pytest.raises(Rejected):
        secret.signer(PASSPHRASE)
    secret.remove("another horse")
    assert secret.verifier() is None
    with pytest.raises(BadUsage):
        secret.signer("another horse")


def test_a_short_passphrase_is_refused(home):
    with pytest.raises(BadUsage, match="at least 8"):
        ApprovalSecret(home).set("short")


@run_async
async def test_a_damaged_verifier_stops_the_host_instead_of_counting_as_none(secret, home, workspace):
    with open(secret.path, "w") as file:
        file.write("{}")
    with pytest.raises(BadConfig, match="damaged"):
        async with service_of(workspace, home):
            pass


@run_async
async def test_an_answer_with_the_passphrase_counts(secret, home, workspace):
    async with service_of(workspace, home) as service:
        run = service.call("write_file", WRITES)
        request = await request_of(home, run)
        with pytest.raises(Rejected, match="needs the approval passphrase"):
            await service.approve(request.id)
        with pytest.raises(Rejected, match="passphrase is wrong"):
            await service.approve(request.id, passphrase="wrong horse")
        await service.approve(request.id, passphrase=PASSPHRASE)
        assert (await run).status == "done"
        assert refusals(service) == []


@pytest.mark.every_user
@run_async
async def test_an_approval_written_into_the_database_does_not_count_and_is_audited(secret, home, workspace):
    async with service_of(workspace, home) as service:
        run = service.call("write_file", WRITES)
        request = await request_of(home, run)
        forged = Answered(approved=True, who="ann", seen=request.digest, at=time.time())
        written(home, request.id, forged)
        (entry,) = await until(lambda: refusals(service))
        assert entry["reason"] == "the answer has no proof of the approval passphrase"
        assert (entry["run"], entry["request"]) == (run.id, request.id)
        again = await request_of(home, run)
        assert again.id == request.id, "it can still be answered"
        assert not (workspace / "made.txt").exists()
        await service.approve(request.id, passphrase=PASSPHRASE)
        assert (await run).status == "done"


@run_async
async def test_a_signed_answer_that_somebody_changed_does_not_count(secret, home, workspace):
    async with service_of(workspace, home) as service:
        run = service.call("write_file", WRITES)
        request = await request_of(home, run)
        said = Answered(approved=False, who="ann", seen=request.digest, at=time.time())
        signed = secret.signer(PASSPHRASE).answer(request.id, said)
        forged = Answered(approved=True, who="ann", seen=request.digest, at=signed.at, proof=signed.proof)
        written(home, request.id, forged)
        (entry,) = await until(lambda: refusals(service))
        assert entry["reason"] == "the answer's proof of the approval passphrase is wrong"
        run.cancel()
        assert (await run).status == "cancelled"


@run_async
async def test_a_verifier_that_was_replaced_is_refused_and_audited(secret, home, workspace):
    async with service_of(workspace, home) as service:
        run = service.call("write_file", WRITES)
        request = await request_of(home, run)
        evil = Verifier.made_from("my own horse")
        secret._write(json.dumps(evil.to_json()).encode())
        await service.approve(request.id, passphrase="my own horse")
        (entry,) = await until(lambda: refusals(service))
        assert "set anew after this host had started" in entry["reason"]
        assert not (workspace / "made.txt").exists()
        run.cancel()
        await run


@run_async
async def test_a_removed_verifier_changes_nothing_for_a_host_that_runs(secret, home, workspace):
    async with service_of(workspace, home) as service:
        run = service.call("write_file", WRITES)
        request = await request_of(home, run)
        os.unlink(secret.path)
        await service.approve(request.id)
        await until(lambda: refusals(service))
        run.cancel()
        assert (await run).status == "cancelled"


@run_async
async def test_an_answer_through_a_client_does_not_count(secret, home, workspace):
    asked = asyncio.Event()

    async def client(request):
        asked.set()
        assert not request.client_may_approve
        return ApprovalAnswer(approved=True, via="agent")

    trusted = {"approval.expires_seconds": 60.0, "approval.trusted_clients": ["agent"]}
    async with ToolService.open(workspace, home=home, approver=client, settings=trusted) as service:
        run = service.call("write_file", WRITES)
        await asked.wait()
        request = await request_of(home, run)
        await service.approve(request.id, passphrase=PASSPHRASE)
        outcome = await run
        assert outcome.status == "done"
        assert outcome.decision.by == "person"


@run_async
async def test_the_asking_terminal_needs_no_passphrase_but_its_answer_holds_once(secret, home, workspace):
    asked = []

    async def terminal(request):
        asked.append(request)
        return ApprovalAnswer(approved=True, scope="always")

    async with service_of(workspace, home, approver=terminal) as service:
        for _ in range(2):
            assert (await service.call("write_file", WRITES)).status == "done"
    assert len(asked) == 2
    assert asked[0].to_allow == ()


@run_async
async def test_a_remembered_answer_counts_only_with_its_proof(secret, home, workspace):
    async with service_of(workspace, home) as service:
        run = service.call("shell", {"command": "touch a"})
        request = await request_of(home, run)
        await service.approve(request.id, scope="always", passphrase=PASSPHRASE)
        assert (await run).status == "done"
        assert (await service.call("shell", {"command": "touch a"})).status == "done", "it is remembered"
        with contextlib.closing(sqlite3.connect(home.database, timeout=30)) as database:
            (rule,) = database.execute("SELECT rule FROM remembered").fetchone()
            database.execute("UPDATE remembered SET rule = ?", [rule.replace("touch a", "touch b")])
            database.commit()
        run = service.call("shell", {"command": "touch b"})
        await request_of(home, run)
        run.cancel()
        await run


@run_async
async def test_an_approval_after_the_host_died_counts_only_with_its_proof(secret, home, workspace):
    async with service_of(workspace, home) as service:
        run = service.call("write_file", WRITES)
        request = await request_of(home, run)
        forged = Answered(approved=True, who="ann", seen=request.digest, at=time.time())
        run.cancel()
        await run
    with contextlib.closing(sqlite3.connect(home.database, timeout=30)) as database:
        database.execute(
            "UPDATE approvals SET state = 'answered', shown = ?, answer = ?, expires_at = ? WHERE fingerprint = ?",
            [encode(request.shown).decode(), encode(forged.to_json()).decode(), time.time() + 600, request.fingerprint],
        )
        database.commit()
    async with service_of(workspace, home) as service:
        run = service.call("write_file", WRITES)
        await request_of(home, run)
        assert [entry["request"] for entry in refusals(service)] == [request.id]
        run.cancel()
        await run


@run_async
async def test_without_a_passphrase_answers_need_no_proof(home, workspace):
    async with service_of(workspace, home) as service:
        run = service.call("write_file", WRITES)
        request = await request_of(home, run)
        with contextlib.closing(InboxFacade(home)) as inbox:
            inbox.answer(inbox.find(request.id), approved=True, who=this_user())
        assert (await run).status == "done"


@run_async
async def test_an_agents_own_prompt_is_not_used_while_a_passphrase_is_set(home, workspace):
    settings = {"approval.expires_seconds": 60.0, "approval.trusted_clients": ["agent"]}

    async def decided():
        async with ToolService.open(workspace, home=home, settings=settings) as service:
            return await service.hooked.ticket(
                "touch made",
                agent="agent",
                session="s",
                cwd=str(workspace),
                limit_seconds=30.0,
                is_background=False,
                asks_agent=True,
                wait_seconds=0.1,
            )

    assert (await decided()).action == "ask"
    ApprovalSecret(home).set(PASSPHRASE)
    decision = await decided()
    assert decision.action == "deny"
    assert "nobody answered" in decision.reason
