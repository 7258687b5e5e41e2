"""Arguments on their way: preprocessed, validated, judged, run and recorded as one and the same."""

import asyncio
import json

from haft import ToolService, tool


def with_service(tmp_path, body, tools, **options):
    async def main():
        workspace = tmp_path / "workspace"
        workspace.mkdir(exist_ok=True)
        async with ToolService.open(workspace, tools=tools, home=tmp_path / "home", **options) as service:
            return await body(service)

    return asyncio.run(main())


def test_what_preprocess_returns_is_judged_shown_run_and_recorded(tmp_path):
    shown = []

    async def ask(request):
        shown.append(request.arguments)
        return True

    def shout(arguments):
        return {"text": arguments["text"].upper()}

    @tool(preprocess=shout)
    async def say(text: str) -> str:
        return text

    async def body(service):
        outcome = await service.call("say", {"text": "quiet"})
        assert outcome.output == "QUIET"
        assert shown == [{"text": "QUIET"}]
        assert service.run(outcome.run_id).record["arguments"] == {"text": "QUIET"}

    with_service(tmp_path, body, [say], approver=ask)


def test_what_preprocess_returns_is_validated(tmp_path):
    @tool(readonly=True, preprocess=lambda arguments: {"number": "not one"})
    async def take(number: int) -> int:
        return number

    async def body(service):
        outcome = await service.call("take", {"number": 1})
        assert (outcome.error.code, outcome.process_exit_code) == ("invalid-arguments", 2)
        assert "number" in outcome.error.message

    with_service(tmp_path, body, [take])


def test_every_wrong_argument_is_named_with_what_would_be_right_and_nothing_runs(tmp_path):
    ran = []

    @tool(readonly=True)
    async def take(number: int, color: str = "red") -> None:
        ran.append(number)

    async def body(service):
        outcome = await service.call("take", {"nubmer": 1, "color": 7})
        assert outcome.error.code == "invalid-arguments"
        for part in ("`number` is missing", "integer", "`nubmer`", "did you mean `number`", "`color` must be a string"):
            assert part in outcome.error.message
        assert ran == []

    with_service(tmp_path, body, [take])


def test_an_unknown_tool_is_an_outcome_with_the_near_miss_and_is_recorded(tmp_path):
    async def body(service):
        outcome = await service.call("raed_file", {"path": "x"})
        assert (outcome.status, outcome.error.code, outcome.process_exit_code) == ("error", "unknown-tool", 2)
        assert "read_file" in outcome.error.hint
        assert service.run(outcome.run_id).tool == "raed_file"
        assert [entry["run"] for entry in _ends(service)] == [outcome.run_id]

    with_service(tmp_path, body, [])


def _ends(service):
    import time

    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        found = [entry for entry in service.record.entries() if entry["type"] == "end"]
        if found:
            return found
        time.sleep(0.01)
    raise AssertionError("the audit log never got the end")


def test_a_caller_who_changes_its_dict_afterwards_changes_nothing(tmp_path):
    @tool(readonly=True)
    async def say(text: str) -> str:
        await asyncio.sleep(0.01)
        return text

    async def body(service):
        arguments = {"text": "as called"}
        run = service.call("say", arguments)
        arguments["text"] = "changed"
        assert (await run).output == "as called"

    with_service(tmp_path, body, [say])


def test_what_was_approved_is_what_runs_and_is_recorded_whoever_holds_the_values(tmp_path):
    held = {"items": ["agreed"]}

    async def ask(request):
        held["items"].append("slipped in by the caller")
        request.arguments["items"].append("slipped in by the approver")
        return True

    @tool
    async def take(items: list) -> str:
        text = json.dumps(items)
        items.append("slipped in by the tool")
        return text

    async def body(service):
        outcome = await service.call("take", held)
        assert outcome.output == '["agreed"]'
        assert service.run(outcome.run_id).record["arguments"] == {"items": ["agreed"]}

    with_service(tmp_path, body, [take], approver=ask)


def test_a_question_about_other_arguments_leaves_the_call_as_it_is(tmp_path):
    services, seen = [], []

    async def ask(request):
        asking = asyncio.create_task(request.revise({"text": "other"}))
        while not asking.done():
            seen.append(services[0].run(request.run).call.arguments["text"])
            await asyncio.sleep(0)
        assert asking.result().arguments == {"text": "OTHER"}
        return True

    @tool(preprocess=lambda arguments: {"text": arguments["text"].upper()})
    async def say(text: str) -> str:
        return text

    async def body(service):
        services.append(service)
        return await service.call("say", {"text": "quiet"})

    # The program that is asked again about the other arguments takes long enough for the run to be looked at.
    rules = [{"tool": "say", "action": "delegate", "to": "/bin/false"}]
    outcome = with_service(tmp_path, body, [say], approver=ask, settings={"permissions": rules})
    assert outcome.output == "QUIET"
    assert set(seen) == {"QUIET"}
