"""What the specification of the tool system says of the tool service, the observable run and streaming, line by line.

Each test names the sentence or the piece of the sketch it holds haft to.
"""

import asyncio

import pytest

from haft import Context, ToolService, tool

STATES = ("queued", "blocked-on-user", "in-progress", "done", "error", "rejected-by-user", "cancelled")


@pytest.fixture
def places(tmp_path):
    (tmp_path / "workspace").mkdir()
    return {"workspace": tmp_path / "workspace", "home": tmp_path / "home"}


async def yes(request):
    return True


async def statuses(run):
    return [event.status async for event in run if event.type == "status"]


def run_with(places, body, **options):
    async def main():
        async with ToolService.open(**places, **options) as service:
            await body(service)

    asyncio.run(main())


def test_observable_run_queued_then_blocked_then_in_progress_then_done(places):
    """ToolRun: queued | blocked-on-user | in-progress | done | error."""

    async def body(service):
        run = service.call("shell", {"command": "touch x"})
        assert await statuses(run) == ["queued", "blocked-on-user", "in-progress", "done"]

    run_with(places, body, approver=yes)


def test_observable_run_in_progress_carries_progress(places):
    """ToolRun: { status: 'in-progress'; progress? }, and onProgress of the environment."""

    @tool(readonly=True)
    async def work(context: Context) -> str:
        context.progress("half", fraction=0.5)
        return "whole"

    async def body(service):
        events = [event async for event in service.call("work")]
        (progress,) = [event for event in events if event.type == "progress"]
        assert (progress.status, progress.facts["fraction"]) == ("in-progress", 0.5)

    run_with(places, body, tools=[work])


def test_observable_run_done_carries_the_result(places):
    """ToolRun: { status: 'done'; result }."""

    @tool(readonly=True)
    async def answer() -> dict[str, int]:
        return {"value": 42}

    async def body(service):
        outcome = await service.call("answer")
        assert (outcome.status, outcome.result) == ("done", {"value": 42})

    run_with(places, body, tools=[answer])


def test_observable_run_error_carries_the_error(places):
    """ToolRun: { status: 'error'; error }."""

    @tool(readonly=True)
    async def fail() -> None:
        raise ValueError("no good")

    async def body(service):
        outcome = await service.call("fail")
        assert (outcome.status, outcome.error.code) == ("error", "tool-failed")
        assert "no good" in outcome.error.message

    run_with(places, body, tools=[fail])


def test_observable_tool_cancel_by_run_id(places):
    """ObservableTool: cancel?(runId)."""

    @tool(readonly=True)
    async def endless() -> None:
        await asyncio.Event().wait()

    async def body(service):
        run = service.call("endless")
        await asyncio.sleep(0.01)
        service.cancel(run.id)
        assert (await run).status == "cancelled"

    run_with(places, body, tools=[endless])


def test_call_tool_unknown_or_removed_is_said(places):
    """callTool: `Tool ${name} not found or disabled`."""

    async def body(service):
        assert (await service.call("nothing")).error.code == "unknown-tool"

    run_with(places, body)


def test_call_tool_executes_asynchronously_and_returns_the_observable_at_once(places):
    """callTool: "Execute asynchronously"."""

    async def body(service):
        run = service.call("list_directory", {"path": "."})
        assert run.status == "queued"
        assert (await run).status == "done"

    run_with(places, body)


def test_check_permission_blocks_and_a_refusal_is_terminal(places):
    """executeTool: blocked-on-user, waitForApproval, then 'rejected-by-user'; here it is a terminal status."""

    async def no(request):
        return False

    async def body(service):
        run = service.call("shell", {"command": "touch made"})
        assert await statuses(run) == ["queued", "blocked-on-user", "rejected-by-user"]
        assert not (places["workspace"] / "made").exists()

    run_with(places, body, approver=no)


def test_preprocess_args_comes_before_execution_and_here_before_the_decision(places):
    """executeTool: preprocessArgs; settled: what is judged and shown is its result."""
    shown = []

    async def ask(request):
        shown.append(request.arguments)
        return True

    @tool(preprocess=lambda arguments: {"path": arguments["path"].strip()})
    async def open_path(path: str) -> str:
        return path

    async def body(service):
        assert (await service.call("open_path", {"path": " a "})).output == "a"
        assert shown == [{"path": "a"}]

    run_with(places, body, tools=[open_path], approver=ask)


def test_with_timeout_two_minutes_by_default(places):
    """executeTool: `env.timeout || 120000`."""

    async def body(service):
        assert (await service.call("list_directory", {"path": "."})).limits.applied["max_seconds"] == 120
        timed = await service.call("shell", {"command": "sleep 30"}, timeout=0.1)
        assert timed.error.code == "timed-out"

    run_with(places, body, approver=yes)


def test_modified_files_are_in_the_outcome(places):
    """executeTool: done with `files`, for tools that declare what they change."""

    async def body(service):
        outcome = await service.call("write_file", {"path": "a.txt", "content": "x"})
        assert [(change.path, change.type) for change in outcome.changes.files] == [("a.txt", "create")]

    run_with(places, body, approver=yes)


def test_an_observer_completes_when_the_run_has_ended(places):
    """executeTool: `finally { run$.complete() }`."""

    async def body(service):
        run = service.call("list_directory", {"path": "missing"})
        events = [event async for event in run]
        assert events[-1].type == "outcome"
        assert [event.type async for event in run] == ["status", "outcome"]

    run_with(places, body)


def test_resource_limits_output_of_fifty_kilobytes_and_the_rest_is_not_lost(places):
    """ResourceLimiter: maxOutputSize 50_000; settled: head and tail are shown, the whole is kept."""

    async def body(service):
        outcome = await service.call("shell", {"command": "yes | head -c 200000"})
        assert outcome.truncated and outcome.output_bytes == 200_000
        assert len(outcome.output) < 51_000

    run_with(places, body, approver=yes)


def test_resource_limits_ten_tools_at_once(places):
    """ResourceLimiter: maxConcurrentTools 10."""
    most = running = 0

    @tool(readonly=True)
    async def busy() -> None:
        nonlocal most, running
        running += 1
        most = max(most, running)
        await asyncio.sleep(0.01)
        running -= 1

    async def body(service):
        await asyncio.gather(*[_outcome(service.call("busy")) for _ in range(40)])
        assert most == 10

    run_with(places, body, tools=[busy])


async def _outcome(run):
    return await run


def test_streaming_stdout_stderr_and_completion_with_the_exit_code(places):
    """StreamingCommandTool: stdout and stderr as they come, completion with the exit code, then complete."""

    async def body(service):
        run = service.call("shell", {"command": "echo out; sleep 0.1; echo err >&2; exit 3"})
        events = [event async for event in run]
        assert [(event.type, event.text) for event in events if event.type in ("stdout", "stderr")] == [
            ("stdout", "out\n"),
            ("stderr", "err\n"),
        ]
        assert (await run).exit_code == 3

    run_with(places, body, approver=yes)


def test_streaming_runs_in_the_working_directory_with_the_variables_given(places):
    """StreamingCommandTool: cwd and env."""
    (places["workspace"] / "here").mkdir()

    async def body(service):
        arguments = {"command": "basename $PWD; echo $NAME", "cwd": "here", "env": {"NAME": "value"}}
        assert (await service.call("shell", arguments)).output == "here\nvalue\n"

    run_with(places, body, approver=yes)


def test_streaming_a_process_that_cannot_start_is_an_error(places, monkeypatch):
    """StreamingCommandTool: on 'error'."""
    monkeypatch.setenv("PATH", "/nonexistent")

    async def body(service):
        outcome = await service.call("shell", {"command": "touch x"})
        assert (outcome.status, outcome.error.code) == ("error", "tool-failed")
        assert "bash" in outcome.error.message

    run_with(places, body, approver=yes)


def test_tools_register_and_leave_while_the_service_runs(places):
    """ToolService: register, and unregister what is gone."""

    @tool(readonly=True)
    async def guest() -> str:
        return "hi"

    async def body(service):
        service.add(guest)
        assert (await service.call("guest")).output == "hi"
        service.remove("guest")
        assert (await service.call("guest")).error.code == "unknown-tool"

    run_with(places, body)
