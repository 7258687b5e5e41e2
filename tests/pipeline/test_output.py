"""Output: streamed as it comes, shown bounded, kept whole."""

import asyncio
import json
import resource

import pytest

from haft import Context, ToolService, tool
from haft.pipeline.output_buffer import HeadAndTail


def with_service(tmp_path, body, tools=(), **options):
    async def yes(request):
        return True

    async def main():
        workspace = tmp_path / "workspace"
        workspace.mkdir(exist_ok=True)
        async with ToolService.open(workspace, tools=tools, home=tmp_path / "home", approver=yes, **options) as service:
            return await body(service)

    return asyncio.run(main())


def kept(service, run):
    record = service.run(run)
    return list(service._host.history().output(record))


@pytest.mark.parametrize("length", [0, 1, 9, 10, 11, 15, 100])
@pytest.mark.parametrize("piece", [1, 3, 7, 100])
def test_head_and_tail_keep_the_first_and_last_bytes_whatever_the_pieces(length, piece):
    data = bytes(ord("a") + number % 26 for number in range(length))
    shown = HeadAndTail(10)
    for start in range(0, length, piece):
        shown.add(data[start : start + piece])
    text = shown.text("r_1")
    assert shown.total == length
    if length <= 10:
        assert text == data.decode() and shown.cut == 0
    else:
        assert text.startswith(data[:5].decode()) and text.endswith(data[-5:].decode())
        assert shown.cut == length - 10 and "haft output r_1" in text


def test_characters_cut_by_the_edge_are_not_shown_as_damaged():
    shown = HeadAndTail(8)
    shown.add("äöü€äöü€äöü".encode())
    assert "\ufffd" not in shown.text("r_1")


def test_stdout_and_stderr_are_streamed_apart_and_together_in_the_output(tmp_path):
    async def body(service):
        run = service.call("shell", {"command": "echo one; sleep 0.1; echo two >&2; sleep 0.1; echo three"})
        events = [(event.type, event.text) async for event in run if event.type in ("stdout", "stderr")]
        assert events == [("stdout", "one\n"), ("stderr", "two\n"), ("stdout", "three\n")]
        outcome = await run
        assert (outcome.output, outcome.stderr, outcome.exit_code) == ("one\ntwo\nthree\n", "two\n", 0)

    with_service(tmp_path, body)


def test_long_output_is_shown_as_head_and_tail_and_kept_whole(tmp_path):
    async def body(service):
        outcome = await service.call("shell", {"command": "seq 1 100000"})
        assert outcome.truncated and len(outcome.output) < 2000
        assert outcome.output.startswith("1\n2\n") and outcome.output.endswith("99999\n100000\n")
        whole = b"".join(frame.data for frame in kept(service, outcome.run_id))
        assert whole == b"".join(b"%d\n" % number for number in range(1, 100001))
        assert outcome.output_bytes == len(whole)

    with_service(tmp_path, body, settings={"limits.max_output_bytes": 1000})


def test_the_text_a_tool_returns_is_bounded_and_kept_whole_too(tmp_path):
    @tool(readonly=True)
    async def long() -> str:
        return "ab" * 5000

    async def body(service):
        outcome = await service.call("long")
        assert outcome.truncated and outcome.output_bytes == 10000
        assert b"".join(frame.data for frame in kept(service, outcome.run_id)) == b"ab" * 5000

    with_service(tmp_path, body, [long], settings={"limits.max_output_bytes": 100})


def test_bytes_that_are_not_utf8_are_shown_with_replacement_and_kept_as_they_came(tmp_path):
    async def body(service):
        outcome = await service.call("shell", {"command": r"printf 'a\xff\xfeb'"})
        assert outcome.output == "a\ufffd\ufffdb"
        json.dumps(outcome.to_json()).encode()
        assert b"".join(frame.data for frame in kept(service, outcome.run_id)) == b"a\xff\xfeb"

    with_service(tmp_path, body)


def test_a_character_that_comes_in_two_pieces_is_streamed_whole(tmp_path):
    async def body(service):
        run = service.call("shell", {"command": r"printf '\xe2\x82'; sleep 0.2; printf '\xac'"})
        texts = [event.text async for event in run if event.type == "stdout"]
        assert "".join(texts) == "€"

    with_service(tmp_path, body)


def test_generators_stream(tmp_path):
    @tool(readonly=True)
    def lines():
        yield "one\n"
        yield "two\n"

    async def body(service):
        run = service.call("lines")
        texts = [event.text async for event in run if event.type == "stdout"]
        assert "".join(texts) == "one\ntwo\n"
        assert (await run).output == "one\ntwo\n"

    with_service(tmp_path, body, [lines])


def test_two_gigabytes_on_one_line_leave_memory_flat_and_other_calls_answer_meanwhile(tmp_path):
    async def body(service):
        await service.call("shell", {"command": "true"})
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        flood = service.call("shell", {"command": "printf HEAD; head -c 2000000000 /dev/zero; printf TAIL"})
        while flood.status != "in-progress":
            await asyncio.sleep(0.001)
        answered = await service.call("list_directory", {"path": "."})
        assert answered.status == "done" and flood.outcome is None
        outcome = await flood
        grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024
        assert grown < 20_000_000
        assert outcome.output_bytes == 2_000_000_008
        frames = kept(service, outcome.run_id)
        assert frames[0].data.startswith(b"HEAD") and frames[-1].data.endswith(b"TAIL")
        assert sum(len(frame.data) + frame.skipped for frame in frames) == 2_000_000_008

    with_service(tmp_path, body)


def test_an_observer_that_does_not_read_is_told_what_it_missed(tmp_path):
    @tool(readonly=True)
    async def flood(context: Context) -> None:
        for _ in range(40):
            context.output("stdout", b"x" * 100_000)
            await asyncio.sleep(0)

    async def body(service):
        run = service.call("flood")
        slow = run.__aiter__()
        await run
        events = [event async for event in slow]
        text = sum(len(event.text) for event in events if event.type == "stdout")
        assert text <= 1 << 20
        assert events[-1].facts["outcome"]["outputBytes"] == 4_000_000

    with_service(tmp_path, body, [flood])


def test_children_ended_with_the_call_are_named_in_the_outcome(tmp_path):
    async def body(service):
        outcome = await service.call("shell", {"command": "sleep 987 & sleep 0.2; echo started"})
        assert (outcome.status, outcome.output) == ("done", "started\n")
        assert [child.command for child in outcome.ended_children] == ["sleep 987"]

    with_service(tmp_path, body)
