"""Commands of an agent's shell, from the hook's question to the end of the rewritten line."""

import asyncio
import json
import os
import signal

import pytest
from agent_shell import run, with_service

from haft.service import Tickets

AGENT = {"agent": "claude-code", "session": "s1"}


@pytest.mark.every_user
def test_a_command_runs_with_the_streams_of_the_agents_shell_and_is_undone(tmp_path):
    async def body(service, workspace):
        (workspace / "ignored").write_text("kept")
        command = "rm ignored; read line; echo out $line; echo err >&2; exit 3"
        decision = await service.hooked.ticket(command, **AGENT, cwd=str(workspace))
        assert (decision.action, decision.may_move) == ("run", False)
        assert (workspace / "ignored").exists(), "it ran before its ticket was redeemed"
        end, texts = await run(service, decision, command, workspace, b"hello\n")
        assert (end.status, end.directory, end.text) == (3, None, "")
        assert texts == {"stdout": "out hello\n", "stderr": "err\n"}
        assert not (workspace / "ignored").exists()
        record = await service.runs.get(end.run)
        assert (record.tool, record.who, record.thread) == ("shell", "claude-code", "s1")
        assert decision.run == end.run
        await service.undo(end.run)
        assert (workspace / "ignored").read_text() == "kept"

    with_service(tmp_path, body)


def test_a_ticket_is_good_once_for_its_command_in_its_directory(tmp_path):
    async def body(service, workspace):
        (workspace / "sub").mkdir()
        decision = await service.hooked.ticket("echo a", **AGENT, cwd=str(workspace))
        for command, cwd, why in (("echo b", workspace, "another command"), ("echo a", workspace / "sub", "directory")):
            end, _ = await run(service, decision, command, cwd)
            assert end.status == 126 and why in end.text
        end, texts = await run(service, decision, "echo a", workspace)
        assert (end.status, texts["stdout"]) == (0, "a\n")
        end, texts = await run(service, decision, "echo a", workspace)
        assert (end.status, texts["stdout"]) == (126, "") and "used before" in end.text

    with_service(tmp_path, body)


def test_a_ticket_is_good_after_a_restart(tmp_path):
    async def ask(service, workspace):
        decision = await service.hooked.ticket("echo a", **AGENT, cwd=str(workspace))
        service.hooked.close()
        outcome = await service.runs.live(decision.run)
        assert outcome.error.code == "not-covered"
        return decision

    decision = with_service(tmp_path, ask)

    async def redeem(service, workspace):
        end, texts = await run(service, decision, "echo a", workspace)
        assert (end.status, texts["stdout"]) == (0, "a\n")
        assert end.run != decision.run

    with_service(tmp_path, redeem)


def test_a_rejected_command_is_denied_with_the_reason_and_recorded(tmp_path, rules):
    rules('action = "reject"\nmatches = {command = "curl*"}\nmessage = "ask the team first"')

    async def body(service, workspace):
        decision = await service.hooked.ticket("curl x", **AGENT, cwd=str(workspace))
        assert (decision.action, decision.ticket) == ("deny", None)
        assert "ask the team first" in decision.reason
        record = await service.runs.get(decision.run)
        assert record.status == "rejected-by-user"

    with_service(tmp_path, body)


def test_what_needs_approval_is_asked_in_the_agents_prompt_and_not_again(tmp_path, rules):
    rules('action = "ask"')

    async def body(service, workspace):
        command = "touch made"
        decision = await service.hooked.ticket(command, **AGENT, cwd=str(workspace))
        assert decision.action == "ask" and decision.reason
        end, _ = await run(service, decision, command, workspace)
        assert end.status == 0 and (workspace / "made").exists()
        record = await service.runs.get(end.run)
        assert record.outcome["decision"]["by"] == "client claude-code"

    with_service(tmp_path, body)


def test_a_prompt_answered_after_a_restart_counts(tmp_path, rules):
    rules('action = "ask"')

    async def ask(service, workspace):
        decision = await service.hooked.ticket("touch made", **AGENT, cwd=str(workspace))
        service.hooked.close()
        return decision

    decision = with_service(tmp_path, ask)

    async def redeem(service, workspace):
        end, texts = await run(service, decision, "touch made", workspace)
        assert end.status == 0, texts
        assert (workspace / "made").exists()
        assert (await service.runs.get(end.run)).outcome["decision"]["by"] == "client claude-code"

    with_service(tmp_path, redeem)


def test_without_a_prompt_it_waits_in_the_inbox_and_is_then_denied(tmp_path, rules):
    rules('action = "ask"')

    async def body(service, workspace):
        decision = await service.hooked.ticket(
            "touch x", **AGENT, cwd=str(workspace), asks_agent=False, wait_seconds=0.3
        )
        assert (decision.action, decision.ticket) == ("deny", None)
        assert "nobody answered within 0.3 seconds" in decision.reason
        record = await service.runs.get(decision.run)
        assert (record.status, record.outcome["decision"]["by"]) == ("rejected-by-user", "expiry")

    with_service(tmp_path, body)


def test_a_person_answers_in_the_inbox_while_the_hook_waits(tmp_path, rules):
    rules('action = "ask"')

    async def body(service, workspace):
        asking = asyncio.ensure_future(
            service.hooked.ticket("touch x", **AGENT, cwd=str(workspace), asks_agent=False, wait_seconds=60)
        )
        while not (waiting := service.inbox()):
            await asyncio.sleep(0.01)
        await service.approve(waiting[0].id)
        decision = await asking
        assert decision.action == "run"
        end, _ = await run(service, decision, "touch x", workspace)
        assert end.status == 0
        assert (await service.runs.get(end.run)).outcome["decision"]["by"] == "person"

    with_service(tmp_path, body)


def test_a_ticket_never_redeemed_is_recorded_as_not_covered(tmp_path):
    async def body(service, workspace):
        decision = await service.hooked.ticket("echo a", **AGENT, cwd=str(workspace))
        assert service.hooked.give_up(decision.ticket)
        while (live := service.runs.live(decision.run)) is not None and live.outcome is None:
            await live
        record = await service.runs.get(decision.run)
        assert (record.status, record.outcome["error"]["code"]) == ("error", "not-covered")
        end, _ = await run(service, decision, "echo a", workspace)
        assert end.status == 126
        assert Tickets(service.home).find(decision.ticket) is None

    with_service(tmp_path, body)


def test_the_agents_shell_learns_where_a_command_ended(tmp_path):
    async def body(service, workspace):
        (workspace / "sub dir").mkdir()
        command = "echo before; cd 'sub dir' && echo after; (exit 7)"
        decision = await service.hooked.ticket(command, **AGENT, cwd=str(workspace))
        assert decision.may_move
        end, texts = await run(service, decision, command, workspace)
        assert (end.status, end.directory) == (7, str(workspace / "sub dir"))
        assert texts == {"stdout": "before\nafter\n", "stderr": ""}
        assert b"\0" not in json.dumps((await service.runs.get(end.run)).outcome).encode()

    with_service(tmp_path, body)


def test_stdout_and_stderr_keep_their_order_where_they_are_one_stream(tmp_path):
    async def body(service, workspace):
        command = "for i in 1 2 3 4 5; do echo out $i; echo err $i >&2; done"
        decision = await service.hooked.ticket(command, **AGENT, cwd=str(workspace))
        end, texts = await run(service, decision, command, workspace, merged=True)
        assert end.status == 0
        assert texts["stdout"] == "".join(f"out {i}\nerr {i}\n" for i in range(1, 6))

    with_service(tmp_path, body)


def test_a_command_ends_when_the_process_that_runs_its_line_dies(tmp_path):
    async def body(service, workspace):
        command = "trap '' TERM; echo begun; sleep 1000"
        decision = await service.hooked.ticket(command, **AGENT, cwd=str(workspace))
        read, write = os.pipe()
        with open(os.devnull) as nothing, open(os.devnull, "w") as rest:
            running = asyncio.ensure_future(
                service.hooked.run(
                    decision.ticket,
                    command,
                    cwd=str(workspace),
                    stdin=nothing.fileno(),
                    stdout=write,
                    stderr=rest.fileno(),
                )
            )
            os.close(await asyncio.to_thread(lambda: (os.read(read, 6), read)[1]))
            assert service.hooked.is_busy
            running.cancel()
            with pytest.raises(asyncio.CancelledError):
                await running
        os.close(write)
        assert not service.hooked.is_busy
        assert (await service.runs.get(decision.run)).status == "cancelled"

    with_service(tmp_path, body)


def test_the_agents_time_limit_is_the_deadline(tmp_path):
    async def body(service, workspace):
        command = "echo begun; sleep 1000"
        decision = await service.hooked.ticket(command, **AGENT, cwd=str(workspace), limit_seconds=1)
        end, texts = await run(service, decision, command, workspace)
        assert end.status == 124
        assert texts["stdout"] == "begun\n"
        assert "did not end within" in texts["stderr"] and end.run in texts["stderr"]

    with_service(tmp_path, body)


def test_a_directory_outside_the_workspace_is_refused(tmp_path):
    async def body(service, workspace):
        from haft.contracts import BadUsage

        with pytest.raises(BadUsage, match="not in the workspace"):
            await service.hooked.ticket("ls", **AGENT, cwd=str(tmp_path))

    with_service(tmp_path, body)


class Background:
    """A background command, whose stdout tells how far it is."""

    def __init__(self, service, decision, command, cwd):
        self._read, write = os.pipe()
        self._nothing = os.open(os.devnull, os.O_RDWR)
        streams = {"stdin": self._nothing, "stdout": write, "stderr": self._nothing}
        self.running = asyncio.ensure_future(service.hooked.run(decision.ticket, command, cwd=str(cwd), **streams))
        self.running.add_done_callback(lambda _: os.close(write))

    async def line(self):
        return await asyncio.to_thread(os.read, self._read, 100)

    def close(self):
        os.close(self._read)
        os.close(self._nothing)


async def begin(service, workspace, command):
    decision = await service.hooked.ticket(command, **AGENT, cwd=str(workspace), is_background=True)
    return decision, Background(service, decision, command, workspace)


def test_a_background_command_works_on_the_workspace_and_a_scan_finds_its_changes(tmp_path):
    async def body(service, workspace):
        (workspace / "old").write_text("old")
        (workspace / "go").write_text("")
        command = "echo new > made; echo changed > old; echo ready; while [ -e go ]; do sleep 0.05; done"
        _decision, background = await begin(service, workspace, command)
        assert await background.line() == b"ready\n"
        assert (workspace / "made").read_text() == "new\n", "its writes are not seen at once"
        outcome = await service.call("write_file", {"path": "beside", "content": "x"})
        assert outcome.status == "done", "it holds the lock"
        edited = await service.call("shell", {"command": "rm go"})
        assert edited.status == "done"
        end = await background.running
        background.close()
        assert end.status == 0
        changes = (await service.runs.get(end.run)).outcome["changes"]
        assert (changes["state"], changes["complete"]) == ("committed", False)
        assert "background" in changes["reason"]
        assert [each["path"] for each in changes["files"]] == ["made", "old"], (
            "the changes of other runs are not its own"
        )
        await service.undo(end.run)
        assert ((workspace / "old").read_text(), (workspace / "made").exists()) == ("old", False)
        assert (workspace / "beside").exists()

    with_service(tmp_path, body, approver=lambda _request: True)


def test_the_changes_of_a_background_command_stay_when_the_agent_ends_it(tmp_path):
    async def body(service, workspace):
        decision, background = await begin(service, workspace, "echo new > made; echo ready; sleep 1000")
        await background.line()
        background.running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await background.running
        background.close()
        record = await service.runs.get(decision.run)
        assert (record.status, record.outcome["changes"]["state"]) == ("cancelled", "committed")
        assert (workspace / "made").exists()
        await service.undo(decision.run)
        assert not (workspace / "made").exists()

    with_service(tmp_path, body)


def test_a_background_command_has_no_deadline_and_notes_say_that_nobody_reaches_its_ports(tmp_path):
    async def body(service, workspace):
        command = "touch made; echo ready"
        _decision, background = await begin(service, workspace, command)
        end = await background.running
        background.close()
        outcome = (await service.runs.get(end.run)).outcome
        assert "max_seconds" not in outcome["limits"]["applied"]
        assert any("cannot reach its ports" in note for note in outcome["notes"])

    with_service(tmp_path, body, settings={"limits.max_seconds": 5})


def test_a_background_command_does_not_keep_a_protected_path_that_it_made(tmp_path):
    async def body(service, workspace):
        command = "mkdir -p .vscode; echo '{}' > .vscode/tasks.json; echo fine > made"
        _decision, background = await begin(service, workspace, command)
        end = await background.running
        background.close()
        outcome = (await service.runs.get(end.run)).outcome
        assert end.status == 1 and outcome["error"]["code"] == "sandbox-denied"
        assert not (workspace / ".vscode" / "tasks.json").exists()
        assert (workspace / "made").exists(), "only what is protected is taken back"
        assert outcome["changes"]["state"] == "held"

    with_service(tmp_path, body)


def test_a_signal_to_the_process_of_the_line_ends_the_command(tmp_path):
    async def body(service, workspace):
        command = "echo begun > made; echo ready; sleep 1000"
        decision = await service.hooked.ticket(command, **AGENT, cwd=str(workspace))
        line = Background(service, decision, command, workspace)
        await line.line()
        service.hooked.signal(decision.ticket, signal.SIGWINCH)
        service.hooked.signal(decision.ticket, signal.SIGTERM)
        end = await line.running
        line.close()
        assert end.status == 128 + signal.SIGTERM
        assert (await service.runs.get(decision.run)).status == "cancelled"
        assert not (workspace / "made").exists()

    with_service(tmp_path, body)


@pytest.mark.parametrize("size", [10, 100_000])
def test_undo_of_a_background_command_does_not_take_back_what_another_run_did_meanwhile(tmp_path, size):
    async def body(service, workspace):
        (workspace / "both").write_text("first")
        (workspace / "go").write_text("")
        command = "echo ready; while [ -e go ]; do sleep 0.05; done; echo third > both"
        _decision, background = await begin(service, workspace, command)
        await background.line()
        second = f"printf '%{size}s' second > both; echo x > theirs"
        assert (await service.call("shell", {"command": second})).status == "done"
        await asyncio.to_thread(lambda: service._transactions._background.submit(lambda: None).result())
        os.unlink(workspace / "go")  # This change is nobody's, so it counts as the command's.
        end = await background.running
        background.close()
        changes = (await service.runs.get(end.run)).outcome["changes"]
        is_kept = size < 64_000  # haft keeps the new content of small files only.
        assert [each["path"] for each in changes["files"]] == (["both", "go"] if is_kept else ["go"])
        assert ("both changed again after another run, and cannot be undone" in changes["reason"]) != is_kept
        await service.undo(end.run)
        assert (workspace / "both").read_text().strip() == ("second" if is_kept else "third")
        assert (workspace / "theirs").exists() and (workspace / "go").exists()

    with_service(tmp_path, body, approver=lambda _request: True)


def test_commands_past_their_limit_keep_their_changes_for_a_person(tmp_path):
    async def body(service, workspace):
        command = "touch made; sleep 1000"
        decision = await service.hooked.ticket(command, **AGENT, cwd=str(workspace), limit_seconds=1)
        end, _texts = await run(service, decision, command, workspace)
        assert (await service.runs.get(end.run)).outcome["changes"]["state"] == "held"
        assert not (workspace / "made").exists()

    with_service(tmp_path, body)


def test_processes_that_outlive_a_command_are_ended_and_the_agent_reads_it(tmp_path):
    async def body(service, workspace):
        command = (
            "sleep 1000 & sleep 1; echo done"  # Then it is `sleep`, and no longer the shell that was forked for it.
        )
        decision = await service.hooked.ticket(command, **AGENT, cwd=str(workspace))
        end, texts = await run(service, decision, command, workspace)
        assert (end.status, texts["stdout"]) == (0, "done\n")
        assert "sleep 1000" in texts["stderr"] and "ended with it" in texts["stderr"]

    with_service(tmp_path, body)


def test_after_a_restart_stricter_rules_count(tmp_path, rules):
    async def ask(service, workspace):
        decision = await service.hooked.ticket("touch made", **AGENT, cwd=str(workspace))
        service.hooked.close()
        return decision

    decision = with_service(tmp_path, ask)
    rules('action = "ask"')

    async def redeem(service, workspace):
        end, texts = await run(service, decision, "touch made", workspace)
        assert end.status == 126 and not (workspace / "made").exists()
        assert "run the command again" in texts["stderr"]

    with_service(tmp_path, redeem)
