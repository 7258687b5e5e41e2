"""Secrets stay with the tool: nothing that is said of a call holds one, to whomever, and wherever it is kept."""

import asyncio
import json
import os

import pytest

from haft.contracts import MARK, Answer, ApprovalAnswer, Effects, Failure, ToolName, ToolSpec
from haft.runs.kept_output import kept_frames
from haft.service import ToolService

SECRET = "sk-live-0123456789abcdef"
HALF = len(SECRET) // 2


class Leaky:
    """Tells its argument in every way there is, and fails."""

    spec = ToolSpec(
        ToolName("leaky"), "python", "Tells.", {"type": "object"}, effects=Effects(readonly=True), previews=True
    )

    def __init__(self, failure=True):
        self.given = None
        self._failure = failure

    async def preprocess(self, arguments, context):
        return arguments

    async def preview(self, arguments, context):
        return "x" * 490 + SECRET

    async def invoke(self, arguments, context):
        self.given = arguments
        first, second = SECRET[:HALF].encode(), SECRET[HALF:].encode()
        context.output("stdout", b"out " + first)
        context.output("stderr", b"err " + first)
        context.output("stdout", second + b"\n")
        context.stderr_only(first)
        context.output("stderr", second + b"\n")
        context.stderr_only(second + b"\n")
        context.progress(f"working with {SECRET}", detail={SECRET: [SECRET]})
        context.output("stdout", b"the end begins one: " + first)
        if not self._failure:
            return Answer(result={"key": SECRET, "list": [f"<{SECRET}>"]}, exit_code=3)
        return Answer(exit_code=3, failure=Failure("tool-failed", f"failed with {SECRET}", hint=f"not {SECRET}"))


def on_disk(home) -> bytes:
    found = b""
    for where, _, names in os.walk(home):
        for name in names:
            with open(os.path.join(where, name), "rb") as file:
                found += file.read()
    return found


def opened(tmp_path, *tools, approver=None, secrets=(SECRET,), **options):
    (tmp_path / "workspace").mkdir(exist_ok=True)
    return ToolService.open(
        tmp_path / "workspace", tools=tools, home=tmp_path / "home", approver=approver, installed=False,
        secrets=secrets, **options,
    )  # fmt: skip


def told(outcome, events=()) -> str:
    """All that an outcome and events say, the way in which surfaces do."""
    return json.dumps([outcome.to_json(), *(event.to_json() for event in events)], ensure_ascii=False)


@pytest.mark.parametrize("fails", [True, False])
def test_nothing_that_leaves_a_tool_holds_a_secret_and_the_tool_gets_it(tmp_path, fails):
    tool = Leaky(failure=fails)

    async def play():
        async with opened(tmp_path, tool) as service:
            run = service.call("leaky", {"word": SECRET})
            events = [event async for event in run]
            frames = list(kept_frames(service.home.outputs, run.id))
            return await run, events, frames, service.run(run.id)

    outcome, events, frames, kept = asyncio.run(play())
    assert tool.given == {"word": SECRET}
    assert outcome.exit_code == 3
    shown = f"out err {MARK}\n{MARK}\nthe end begins one: {SECRET[:HALF]}"  # Both wait for their second half.
    assert outcome.output == shown and outcome.output_bytes == len(shown)
    assert outcome.stderr == f"err {MARK}\n{MARK}\n"
    assert {event.facts["message"] for event in events if event.type == "progress"} >= {f"working with {MARK}"}
    live = "".join(event.facts["text"] for event in events if event.type == "stdout")
    assert live == f"out {MARK}\nthe end begins one: {SECRET[:HALF]}"
    assert b"".join(frame.data for frame in frames if frame.stream == "stdout").decode() == live
    if fails:
        assert (outcome.error.message, outcome.error.hint) == (f"failed with {MARK}", f"not {MARK}")
    else:
        assert outcome.result == {"key": MARK, "list": [f"<{MARK}>"]}
    assert kept.to_json()["arguments"] == {"word": MARK}
    assert SECRET not in told(outcome, events)
    assert SECRET[:30] not in told(outcome, events), "not even the part of it that a preview is cut to"
    assert SECRET.encode() not in on_disk(tmp_path / "home")


def test_what_is_cut_leaves_no_half_of_a_secret(tmp_path):
    class Long(Leaky):
        async def invoke(self, arguments, context):
            for _ in range(40):
                context.output("stdout", (SECRET + " ").encode() * 5)
            return Answer(text=f"{'y' * 90}{SECRET}" * 9)

    async def play():
        async with opened(tmp_path, Long(), settings={"limits.max_output_bytes": 333}) as service:
            return await service.call("leaky")

    outcome = asyncio.run(play())
    assert outcome.truncated and "sk-" not in outcome.output and "cdef" not in outcome.output


def test_a_granted_variable_is_masked_by_its_name_and_reaches_the_tool(tmp_path, monkeypatch):
    monkeypatch.setenv("SHOP_TOKEN", SECRET)
    monkeypatch.setenv("SHOP_NAME", "corner-shop-of-ours")
    line = 'printf %s "$SHOP_TOKEN" | wc -c; echo "$SHOP_TOKEN $SHOP_NAME"; echo "$SHOP_TOKEN" >&2; exit 4'

    async def play(**grants):
        async with opened(tmp_path, approver=lambda _request: True, secrets=()) as service:
            return await service.call("shell", {"command": line}, grants=grants)

    outcome = asyncio.run(play(env=["SHOP_TOKEN", "SHOP_NAME"]))
    assert outcome.output.split("\n")[0].strip() == str(len(SECRET)), "the tool has the real one"
    assert f"{MARK} corner-shop-of-ours\n" in outcome.output and outcome.exit_code == 4
    assert SECRET not in told(outcome) and SECRET.encode() not in on_disk(tmp_path / "home")


def test_what_a_call_is_given_under_a_secret_name_is_masked_too(tmp_path):
    class Asks(Leaky):
        async def invoke(self, arguments, context):
            return Answer(text=f"{context.env['MY_TOKEN']} {context.config['apiKey']} {context.config['host']}")

    async def play():
        async with opened(tmp_path, Asks(), secrets=()) as service:
            config = {"apiKey": "other-secret-value", "host": "mail.example.org"}
            return await service.call("leaky", env={"MY_TOKEN": SECRET}, config=config)

    assert asyncio.run(play()).output == f"{MARK} {MARK} mail.example.org"


def test_a_python_functions_exception_and_a_read_file_are_masked(tmp_path):
    from haft.sources.python import tool

    @tool(readonly=True)
    def broken(word: str) -> str:
        """Fails."""
        raise ValueError("x" * 1980 + f"bad {word}")

    async def play():
        async with opened(tmp_path, broken) as service:
            (tmp_path / "workspace/.env").write_text(f"TOKEN={SECRET}\n")
            return await service.call("broken", {"word": SECRET}), await service.call("read_file", {"path": ".env"})

    failed, read = asyncio.run(play())
    assert failed.error.code == "tool-failed" and SECRET[:12] not in failed.error.message
    assert read.output == f"TOKEN={MARK}\n"


class Writes:
    """Takes a word and a secret, and asks."""

    spec = ToolSpec(ToolName("writes"), "python", "Writes.", {"type": "object"})

    def __init__(self):
        self.given = []

    async def preprocess(self, arguments, context):
        return arguments

    async def invoke(self, arguments, context):
        self.given.append(arguments)
        return Answer(text="done")


def test_a_question_shows_marks_and_a_yes_means_the_real_arguments(tmp_path):
    asked = []
    tool = Writes()
    real = {"url": f"https://example.org/?k={SECRET}", "deep": [{"token": SECRET}], "n": 1}

    async def play(edit):
        async def approver(request):
            asked.append(request)
            assert request.revise is not None
            edited = edit(dict(request.arguments))
            if edited["url"] == request.arguments["url"]:
                asked.append(await request.revise(edited))
            return ApprovalAnswer(approved=True, arguments=edited)

        async with opened(tmp_path, tool, approver=approver) as service:
            return await service.call("writes", real, env={"A_KEY": SECRET})

    assert asyncio.run(play(lambda shown: shown)).ok
    assert asyncio.run(play(lambda shown: {**shown, "n": 2})).ok
    assert tool.given == [real, {**real, "n": 2}]
    refused = asyncio.run(play(lambda shown: {**shown, "url": "other " + MARK}))
    assert refused.error.code == "invalid-arguments" and len(tool.given) == 2
    for request in asked:
        assert SECRET not in repr(request)
        assert request.arguments["deep"] == [{"token": MARK}] and request.env == {"A_KEY": MARK}


def test_the_inbox_holds_marks_and_what_is_approved_there_is_the_real_call(tmp_path):
    tool = Writes()
    waits = {"approval.without_sandbox": True, "approval.expires_seconds": 600}

    async def play():
        async with opened(tmp_path, tool, settings=waits) as service:
            run = service.call("writes", {"word": SECRET})
            while not service.inbox():
                assert run.outcome is None
                await asyncio.sleep(0.01)
            (waiting,) = service.inbox()
            held = on_disk(tmp_path / "home")
            await service.approve(waiting.id)
            return waiting, held, await run

    waiting, held, outcome = asyncio.run(play())
    assert outcome.ok and tool.given == [{"word": SECRET}]
    assert waiting.shown["arguments"] == {"word": MARK}
    assert SECRET.encode() not in held + on_disk(tmp_path / "home")


def test_what_holds_a_secret_is_not_offered_to_be_allowed_for_good(tmp_path):
    offered = {}

    async def play():
        async def approver(request):
            offered[request.arguments["command"]] = [one.label for one in request.to_allow]
            return False

        async with opened(tmp_path, approver=approver) as service:
            for line in ("touch plain", f"touch {SECRET}"):
                outcome = await service.call("shell", {"command": line})
                assert SECRET not in told(outcome)

    asyncio.run(play())
    assert offered["touch plain"] and offered[f"touch {MARK}"] == []


def test_files_and_diffs_are_not_masked(tmp_path):
    async def play():
        async with opened(tmp_path, approver=lambda _request: True) as service:
            outcome = await service.call("write_file", {"path": "a.txt", "content": SECRET})
            return outcome, service.diff(outcome.run_id)

    outcome, diff = asyncio.run(play())
    assert outcome.ok and f"+{SECRET}" in diff
    assert (tmp_path / "workspace/a.txt").read_text() == SECRET
