"""Batches: what calls that are made at once do, in which order, and what their caller gets."""

import asyncio
import os

import pytest

from haft import ApprovalAnswer, Context, ToolService, tool
from haft.contracts import BadUsage

TOOL = (
    "#!/bin/sh\nif [ \"$TOOLBOX_ACTION\" = describe ]; then echo 'name: greet'; echo 'description: greets'; exit; fi\n"
)


@pytest.fixture
def places(tmp_path):
    (tmp_path / "workspace").mkdir()
    return {"workspace": tmp_path / "workspace", "home": tmp_path / "home"}


async def yes(_request):
    return True


def run_with(places, body, **options):
    async def main():
        async with ToolService.open(**places, **{"approver": yes, **options}) as service:
            return await body(service)

    return asyncio.run(main())


def write(path, content):
    return "write_file", {"path": path, "content": content}


def read(path):
    return "read_file", {"path": path}


def edit(path, old, new):
    return "edit_file", {"path": path, "old_string": old, "new_string": new}


class Gate:
    """A tool that waits until the test lets it go on."""

    def __init__(self):
        self.entered = asyncio.Event()
        self.open = asyncio.Event()

        @tool(readonly=True)
        async def gate() -> str:
            """Wait."""
            self.entered.set()
            await self.open.wait()
            return "open"

        self.tool = gate


def test_a_call_sees_what_the_calls_before_it_in_the_list_did(places):
    async def body(service):
        batch = service.batch(
            [
                write("a", "1\n"),
                read("a"),
                edit("a", "1", "2"),
                read("a"),
                ("shell", {"command": "cat a"}),
                write("a", "3"),
            ]
        )
        outcomes = await batch
        assert [outcome.status for outcome in outcomes] == ["done"] * 6
        assert [outcomes[at].output for at in (1, 3, 4)] == ["1\n", "2\n", "2\n"]
        assert {record.batch for record in service.runs(batch=batch.id)} == {batch.id}
        assert [record.id for record in service.runs(batch=batch.id)][::-1] == [run.id for run in batch.runs]

    run_with(places, body)
    assert (places["workspace"] / "a").read_text() == "3"


def test_a_read_and_a_write_that_comes_after_it_keep_their_order(places):
    (places["workspace"] / "a").write_text("old")

    async def body(service):
        first, _second = await service.batch([read("a"), write("a", "new")])
        assert first.output == "old"

    run_with(places, body)


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ("mkdir -p new/deep", "echo hi > new/file; cat new/file", ("done", "hi\n")),
        ("rm -r links", "cat links/one", ("error", "cat: links/one: No such file or directory\n")),
        ("echo changed > file", "cp -r links copied; cat copied/one", ("done", "changed\n")),
    ],
)
def test_a_call_waits_for_the_directories_and_links_on_the_way_to_its_files(places, first, second, expected):
    work = places["workspace"]
    (work / "file").write_text("old\n")
    (work / "links").mkdir()
    (work / "links" / "one").symlink_to("../file")

    async def body(service):
        # The first call lasts long enough for the second one to end before it, if that does not wait.
        calls = [("shell", {"command": f"sleep 0.5; {first}"}), ("shell", {"command": second})]
        before, after = await service.batch(calls)
        assert before.status == "done", before.error
        assert (after.status, after.output) == expected

    run_with(places, body)


def test_calls_that_do_not_depend_on_each_other_run_at_once(places):
    async def body(service):
        gate = Gate()
        service.add(gate.tool)
        batch = service.batch([("gate", {}), write("a", "x"), read("b")])
        await gate.entered.wait()
        assert (await batch.runs[2]).error.code == "tool-failed", "there is no such file"
        gate.open.set()
        assert [outcome.status for outcome in await batch] == ["done", "done", "error"]

    run_with(places, body)


def test_a_failing_test_run_stops_neither_the_reads_nor_the_edit_after_it(places):
    for number in range(5):
        (places["workspace"] / f"f{number}").write_text(str(number))

    async def body(service):
        calls = [("shell", {"command": "false"}), *(read(f"f{number}") for number in range(5)), edit("f0", "0", "zero")]
        outcomes = await service.batch(calls)
        assert [outcome.status for outcome in outcomes] == ["error", *["done"] * 6]
        assert [outcome.output for outcome in outcomes[1:6]] == list("01234")

    run_with(places, body)
    assert (places["workspace"] / "f0").read_text() == "zero"


def test_after_cancels_a_call_if_the_named_one_did_not_succeed(places):
    async def body(service):
        batch = service.batch(
            [
                {"id": "tests", "tool": "shell", "args": {"command": "exit 3"}},
                {"id": "ship", "tool": "write_file", "args": {"path": "shipped", "content": ""}, "after": ["tests"]},
                {"id": "tell", "tool": "write_file", "args": {"path": "told", "content": ""}, "after": ["ship"]},
                {"id": "tidy", "tool": "write_file", "args": {"path": "tidied", "content": ""}},
            ]
        )
        outcomes = dict(zip(batch.ids, await batch, strict=True))
        assert [outcome.status for outcome in outcomes.values()] == ["error", "cancelled", "cancelled", "done"]
        assert (outcomes["ship"].error.code, outcomes["ship"].process_exit_code) == ("dependency-failed", 130)
        assert "`after` names tests" in outcomes["ship"].error.message
        assert "`after` names ship" in outcomes["tell"].error.message

    run_with(places, body)
    assert sorted(os.listdir(places["workspace"])) == ["tidied"]


def test_a_call_waits_for_the_call_that_its_after_names(places):
    async def body(service):
        gate = Gate()
        service.add(gate.tool)
        batch = service.batch(
            [{"id": "gate", "tool": "gate"}, {"tool": "list_directory", "args": {"path": "."}, "after": "gate"}]
        )
        events = aiter(batch.runs[1])
        await gate.entered.wait()
        async for event in events:
            if "waitsFor" in event.facts:
                break
        assert (event.status, event.facts["waitsFor"]) == ("queued", batch.runs[0].id)
        gate.open.set()
        assert [outcome.status for outcome in await batch] == ["done", "done"]

    run_with(places, body)


@pytest.mark.parametrize(
    ("calls", "words"),
    [
        ([{"id": "a", "tool": "x"}, {"id": "a", "tool": "y"}], "the calls 1 and 2 have the same id `a`"),
        ([{"tool": "x"}, {"id": 1, "tool": "y"}], "the calls 1 and 2 have the same id `1`"),
        ([{"id": "a", "tool": "x", "after": ["b"]}, {"id": "b", "tool": "y"}], "which comes later"),
        ([{"id": "lint", "tool": "x"}, {"tool": "y", "after": ["lnt"]}], "no call has this id"),
        ([{"id": "a", "tool": "x", "after": "a"}], "names the call itself"),
        ([{"tool": "x", "arg": {}}], "unknown key `arg`"),
        ([{"args": {}}], "call 1 has no `tool`"),
        ([{"tool": "x", "args": []}], "`args` must be a table"),
        ([{"tool": "x", "after": [None]}], "`after` must be a list of ids"),
        ([{"tool": "x", "timeout": 0}], "`timeout` must be a number of seconds above 0"),
        (["read_file"], "must be a table"),
        ({"tool": "x"}, "a list of calls"),
    ],
)
def test_a_wrong_list_is_an_error_before_anything_runs(places, calls, words):
    async def body(service):
        with pytest.raises(BadUsage) as raised:
            service.batch(calls)
        assert words in raised.value.message
        assert service.runs() == []

    run_with(places, body)


def test_an_unknown_tool_and_wrong_arguments_fail_their_call_alone(places):
    async def body(service):
        outcomes = await service.batch(
            [("read_fil", {"path": "a"}), ("read_file", {"pat": "a"}), write("a", "x"), read("a")]
        )
        assert [outcome.status for outcome in outcomes] == ["error", "error", "done", "done"]
        assert [outcome.error and outcome.error.code for outcome in outcomes[:2]] == [
            "unknown-tool",
            "invalid-arguments",
        ]

    run_with(places, body)


def test_an_empty_batch_is_done(places):
    async def body(service):
        assert await service.batch([]) == []
        assert (await service.plan_batch([])).groups == ()

    run_with(places, body)


def test_events_of_all_calls_come_as_one_stream(places):
    async def body(service):
        batch = service.batch([write("a", "x"), read("a")])
        events = [event async for event in batch]
        ended = [event.run for event in events if event.type == "outcome"]
        assert ended == [run.id for run in batch.runs]
        assert [batch.id_of(run) for run in ended] == ["1", "2"]
        assert {event.status for event in events} >= {"queued", "in-progress", "done"}

    run_with(places, body)


def test_a_batch_is_cancelled_as_one(places):
    async def body(service):
        gate = Gate()
        service.add(gate.tool)
        batch = service.batch([("gate", {}), ("shell", {"command": "touch made"}), write("b", "")])
        await gate.entered.wait()
        assert service.cancel(batch.id)
        outcomes = await batch
        assert outcomes[0].status == "cancelled" and outcomes[0].error.code == "cancelled"
        assert not service.cancel(batch.id)

    run_with(places, body)


def test_a_call_that_waits_for_a_cancelled_one_is_cancelled_with_the_batch(places):
    async def body(service):
        gate = Gate()
        service.add(gate.tool)
        batch = service.batch(
            [{"id": "g", "tool": "gate"}, {**dict(zip(("tool", "args"), write("b", ""), strict=True)), "after": "g"}]
        )
        await gate.entered.wait()
        batch.cancel()
        assert [outcome.error.code for outcome in await batch] == ["cancelled", "cancelled"]

    run_with(places, body)
    assert os.listdir(places["workspace"]) == []


def test_a_batch_is_undone_as_one_later_and_redone(places):
    (places["workspace"] / "kept").write_text("1")

    async def make(service):
        batch = service.batch(
            [
                write("a", "x"),
                edit("kept", "1", "2"),
                read("a"),
                ("shell", {"command": "cp a b; false"}),
                edit("a", "x", "y"),
            ]
        )
        await batch
        return batch.id

    name = run_with(places, make)
    assert {path.name: path.read_text() for path in places["workspace"].iterdir()} == {"a": "y", "b": "x", "kept": "2"}

    async def undo(service):
        assert {step["path"] for step in service.look_ahead("undo", name).plan} == {"a", "b", "kept"}
        assert (await service.undo(name)).status == "done"
        with pytest.raises(BadUsage, match="nothing to undo"):
            service.undo(name)

    run_with(places, undo)
    assert {path.name: path.read_text() for path in places["workspace"].iterdir()} == {"kept": "1"}

    async def redo(service):
        assert (await service.redo(name)).status == "done"

    run_with(places, redo)
    assert {path.name: path.read_text() for path in places["workspace"].iterdir()} == {"a": "y", "b": "x", "kept": "2"}


def test_a_batch_inside_a_tool_makes_calls_of_that_tool(places):
    opened = []

    @tool
    async def both(context: Context) -> str:
        """Write twice, and read."""
        batch = opened[0].batch([write("a", "1"), write("b", "2"), read("a"), ("inner", {})])
        outcomes = await batch
        assert {outcome.parent for outcome in outcomes} == {context.run}
        return " ".join(outcome.status for outcome in outcomes)

    @tool
    async def inner(context: Context) -> str:
        """Write once more."""
        (outcome,) = await opened[0].batch([edit("a", "1", "one")])
        return outcome.status

    async def body(service):
        opened.append(service)
        first, second = await service.batch([("both", {}), read("a")])
        assert (first.output, second.output) == ("done done done done", "one")

    run_with(places, body, tools=[both, inner])


def test_the_plan_says_why_a_call_waits(places):
    async def body(service):
        plan = await service.plan_batch(
            [
                {"id": "w", "tool": "write_file", "args": {"path": "a", "content": "x"}},
                {"id": "r", "tool": "read_file", "args": {"path": "a"}},
                {"id": "other", "tool": "read_file", "args": {"path": "b"}},
                {"id": "last", "tool": "read_file", "args": {"path": "b"}, "after": ["r"]},
                {"id": "none", "tool": "nothing"},
            ]
        )
        assert plan.groups[0] == ("w", "other") and plan.calls[1].group == 2 and plan.calls[3].group == 3
        assert plan.calls[1].waits_for == (("w", "it may read what the earlier call may write: a"),)
        assert ("r", "its `after` names r") in plan.calls[3].waits_for
        assert plan.calls[4].problem == "there is no tool called `nothing`"
        assert service.runs() == []

    run_with(places, body)


def test_the_answers_to_one_question_hold_for_the_calls_that_they_name(places):
    class Person:
        def __init__(self):
            self.asked = []

        async def __call__(self, request):
            raise AssertionError("the calls are asked about together")

        async def approve_batch(self, requests):
            self.asked.append([(request.tool, request.batch[1]) for request in requests])
            return [True, False, ApprovalAnswer(approved=True, arguments={"path": "c", "content": "edited"})]

    person = Person()

    async def body(service):
        calls = [write("a", "x"), read("none"), write("b", "x"), write("c", "x"), read("c")]
        outcomes = await service.batch(calls)
        assert [outcome.status for outcome in outcomes] == ["done", "error", "rejected-by-user", "done", "done"]
        assert outcomes[4].output == "edited"

    run_with(places, body, approver=person)
    assert person.asked == [[("write_file", 3)] * 3]
    assert sorted(os.listdir(places["workspace"])) == ["a", "c"]


def test_a_plain_approver_is_asked_about_one_call_after_another(places):
    asked = []

    async def person(request):
        asked.append((request.arguments["path"], request.batch[1]))
        return request.arguments["path"] != "b"

    async def body(service):
        outcomes = await service.batch([write("a", "x"), write("b", "x"), write("c", "x")])
        assert [outcome.status for outcome in outcomes] == ["done", "rejected-by-user", "done"]

    run_with(places, body, approver=person)
    assert sorted(asked) == [("a", 3), ("b", 3), ("c", 3)]


@pytest.mark.parametrize(
    ("answer", "words"),
    [([True], "returned a list of 1 for 2 requests"), ({"a": True}, "returned dict {'a': True} for 2 requests")],
)
def test_a_wrong_answer_to_a_question_about_a_batch_approves_nothing(places, answer, words):
    class Person:
        async def __call__(self, request):
            raise AssertionError

        async def approve_batch(self, requests):
            return answer

    async def body(service):
        outcomes = await service.batch([write("a", "x"), write("b", "x")])
        assert {outcome.error.code for outcome in outcomes} == {"bad-approver"}
        assert all(words in outcome.error.message for outcome in outcomes)

    run_with(places, body, approver=Person())
    assert os.listdir(places["workspace"]) == []


def test_a_method_that_answers_for_a_batch_need_not_be_asynchronous(places):
    class Person:
        def __call__(self, request):
            raise AssertionError

        def approve_batch(self, requests):
            return [request.arguments["path"] == "a" for request in requests]

    async def body(service):
        outcomes = await service.batch([write("a", "x"), write("b", "x")])
        assert [outcome.status for outcome in outcomes] == ["done", "rejected-by-user"]

    run_with(places, body, approver=Person())


@pytest.mark.parametrize(("isolation", "code"), [("snapshot", None), ("serial", "conflict")])
def test_the_isolation_holds_for_each_call_of_a_batch(places, tmp_path, isolation, code):
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    (places["workspace"] / "a").write_text("old")

    async def body(service):
        calls = [("shell", {"command": f"cat a > copy; cat {gate}"})]
        batch = service.batch(calls, isolation=isolation, grants={"read": [str(gate)]})
        opened = await asyncio.to_thread(open, gate, "w")  # Opened as soon as the call has read the file.
        with opened:
            assert (await service.call(*write("a", "new"))).ok
        (outcome,) = await batch
        assert (outcome.error and outcome.error.code) == code

    run_with(places, body)


def test_a_batch_can_be_kept_from_the_cache(places):
    (places["workspace"] / "a").write_text("two")

    async def body(service):
        search = ("search", {"pattern": "two"})
        async with asyncio.timeout(30):
            while not (await service.batch([search]))[0].cached:
                pass
        outcomes = await service.batch([search, search], uses_cache=False)
        assert [outcome.cached for outcome in outcomes] == [False, False]

    run_with(places, body)


class Counting:
    """Approves everything, and remembers what it was asked."""

    def __init__(self):
        self.asked = []

    async def __call__(self, request):
        self.asked.append([(request.tool, request.reason)])
        return True

    async def approve_batch(self, requests):
        self.asked.append([(request.tool, request.reason) for request in requests])
        return [True] * len(requests)


def toolbox(places):
    (places["workspace"] / "haft.toml").write_text('[toolbox]\npaths = ["./tools"]\n')
    folder = places["workspace"] / "tools"
    folder.mkdir()
    return folder


def test_a_batch_that_writes_a_tool_and_calls_it_asks_again_for_the_call(places):
    folder = toolbox(places)
    (folder / "greet").write_text(TOOL + "echo old\n")
    (folder / "greet").chmod(0o755)
    person = Counting()

    async def body(service):
        calls = [edit("tools/greet", "echo old", "echo new"), ("tb__greet", {})]
        first, second = await service.batch(calls)
        assert (first.status, second.status, second.output) == ("done", "done", "new\n"), (first.error, second.error)

    run_with(places, body, approver=person)
    assert [tool for tool, _ in person.asked[0]] == ["edit_file", "tb__greet"]
    assert [tool for tool, _ in person.asked[1]] == ["tb__greet"]
    assert "an earlier call of its batch has changed the definition or a file of its tool" in person.asked[1][0][1]
    assert len(person.asked) == 2


def test_a_tool_that_the_batch_itself_makes_is_found_when_its_turn_comes(places):
    toolbox(places)
    person = Counting()

    async def body(service):
        made = {"command": f"cat > tools/greet <<'END'\n{TOOL}echo made\nEND\nchmod +x tools/greet"}
        first, second = await service.batch([("shell", made), ("tb__greet", {})])
        assert (first.status, second.status, second.output) == ("done", "done", "made\n"), (first.error, second.error)

    run_with(places, body, approver=person)
    assert [[tool for tool, _ in each] for each in person.asked] == [["shell"], ["tb__greet"]]


@pytest.mark.parametrize(
    ("command", "file", "asks"),
    [
        ("sh run.sh", "run.sh", True),
        ("./run.sh > log", "run.sh", True),
        ("sh outer.sh", "run.sh", True),
        ("make -n all > log", "Makefile", True),
        ("cd sub && make -n all > log", "sub/Makefile", True),
        ("make --directory=sub -n all > log", "sub/Makefile", True),
        ("touch made", "run.sh", False),
        ("sh run.sh", "other", False),
    ],
)
def test_a_call_is_asked_about_again_if_an_earlier_one_changed_a_file_that_it_runs(places, command, file, asks):
    work = places["workspace"]
    (work / "run.sh").write_text("#!/bin/sh\necho 1\n")
    (work / "run.sh").chmod(0o755)
    (work / "outer.sh").write_text("sh ./run.sh\n")
    (work / "Makefile").write_text("all:\n\techo 1\n")
    (work / "other").write_text("echo 1\n")
    (work / "sub").mkdir()
    (work / "sub" / "Makefile").write_text("all:\n\techo 1\n")
    person = Counting()

    async def body(service):
        outcomes = await service.batch([edit(file, "echo 1", "echo 2"), ("shell", {"command": command})])
        assert outcomes[0].status == "done"

    run_with(places, body, approver=person)
    assert len(person.asked[0]) == 2
    again = [reason for each in person.asked[1:] for _, reason in each]
    assert len(again) == asks
    assert all(f"has changed {file}, which it runs" in reason for reason in again)


@pytest.mark.parametrize("arguments", [{"command": "sh now/run.sh"}, {"command": "sh run.sh", "cwd": "now"}])
def test_a_call_is_asked_about_again_if_an_earlier_one_changed_a_link_on_the_way_to_what_it_runs(places, arguments):
    work = places["workspace"]
    for name in ("one", "two"):
        (work / name).mkdir()
        (work / name / "run.sh").write_text(f"echo {name}\n")
    (work / "now").symlink_to("one")
    person = Counting()

    async def body(service):
        await service.batch([("shell", {"command": "ln -sfn two now"}), ("shell", arguments)])

    run_with(places, body, approver=person)
    assert "has changed now, which it runs" in person.asked[1][0][1]


def test_a_rejected_second_question_stops_the_call(places):
    (places["workspace"] / "run.sh").write_text("touch ran\n")

    class Person(Counting):
        async def __call__(self, request):
            return False

    async def body(service):
        outcomes = await service.batch([edit("run.sh", "ran", "run"), ("shell", {"command": "sh run.sh"})])
        assert [outcome.status for outcome in outcomes] == ["done", "rejected-by-user"]

    run_with(places, body, approver=Person())
    assert os.listdir(places["workspace"]) == ["run.sh"]


def test_the_synchronous_service_makes_batches_too(places):
    with ToolService.open_sync(**places, approver=yes) as service:
        assert [outcome.status for outcome in service.batch([write("a", "x"), read("a")])] == ["done", "done"]
        assert service.plan_batch([write("a", "x"), read("a")]).groups == (("1",), ("2",))


def test_a_running_batch_is_not_undone(places):
    async def body(service):
        batch = service.batch([write("a", "1"), ("shell", {"command": "sleep 60; echo b > b"})])
        while not any(run.status == "done" for run in batch.runs):
            await asyncio.sleep(0.01)
        with pytest.raises(BadUsage, match="has not ended") as refused:
            await service.undo(batch.id)
        assert f"haft cancel {batch.id}" in refused.value.hint
        assert (await service.call(*read("a"))).output == "1"
        batch.cancel()
        await batch
        assert (await service.undo(batch.id)).status == "done"
        assert not (places["workspace"] / "a").exists()

    run_with(places, body)


def test_when_a_batch_has_ended_its_changes_are_in_the_files(places):
    async def body(service):
        for number in range(5):
            await service.batch([write(f"f{number}", "1"), ("shell", {"command": "sleep 0.05"})])
            assert (places["workspace"] / f"f{number}").exists()

    run_with(places, body)


def test_what_lies_behind_a_link_that_is_only_published_is_unknown(places):
    workspace = places["workspace"]
    (workspace / "c").mkdir()
    (workspace / "c/d").write_text("old")

    async def body(service):
        begun, ended = asyncio.Event(), asyncio.Event()

        @tool
        async def hold(context: Context) -> str:
            """Keep its view."""
            begun.set()
            await ended.wait()
            return "held"

        service.add(hold)
        holding = service.call("hold")
        await begun.wait()
        # The first line writes files that haft does not know beforehand, so that its link is published, and no more.
        outcomes = await service.batch(
            [
                ("shell", {"command": "ln -s c l; touch q$((1))"}),
                ("shell", {"command": "sleep 0.3; echo new > c/d"}),
                ("shell", {"command": "cat l/d"}),
                read("l/d"),
            ]
        )
        assert not (workspace / "l").is_symlink()
        assert [outcome.output for outcome in outcomes[2:]] == ["new\n"] * 2
        ended.set()
        await holding

    run_with(places, body, settings={"changes.flush_seconds": 0})


def test_a_tool_in_another_thread_is_told_how_to_make_calls(places):
    async def body(service):
        @tool
        def other() -> str:
            """Call a tool from a thread."""
            with pytest.raises(BadUsage, match="can be called only in the thread") as refused:
                service.call("read_file", {"path": "a"})
            return refused.value.hint

        service.add(other)
        outcome = await service.call("other")
        assert "context.call" in outcome.output

    run_with(places, body)
