"""The order of a batch as commits see it: changes that footprints did not foretell, and what must end in a conflict."""

import asyncio

import pytest

from haft.contracts import Call, Change, Changes, Footprint, Outcome, Principal, ThreadId, ToolName, new_run_id
from haft.pipeline.batch import Batch
from haft.pipeline.batch_plan import plan
from haft.pipeline.batched_calls import BatchedCall, read_calls
from haft.pipeline.run import _NO_RECORDER, Run


def made(*footprints):
    """A batch whose calls have these footprints, and its runs."""
    runs = {}

    async def footprint_of(run):
        return runs[run]

    batch = Batch([BatchedCall(str(number), "t", {}) for number in range(1, len(footprints) + 1)], footprint_of)
    for member, footprint in zip(batch.members, footprints, strict=True):
        run = Run(Call(new_run_id(), ToolName("t"), {}, Principal("me")), _NO_RECORDER)
        batch.add(member, run)
        runs[run] = footprint

    async def learn():
        for run in runs:
            await batch.learn(run)

    asyncio.run(learn())
    return batch, *runs


def end(batch, run, *paths):
    changes = Changes(state="committed" if paths else "none", files=tuple(Change(path, "modify") for path in paths))
    batch.end(run, Outcome(run.id, ToolName("t"), "done", "me", ThreadId("T"), changes=changes))


READS_A = Footprint(("a",), ())
READS_B = Footprint(("b",), ())
WRITES_B = Footprint((), ("b",))


def test_a_commit_that_the_later_calls_do_not_use_is_in_order():
    batch, first, second = made(WRITES_B, READS_A)
    batch.started(first)
    batch.started(second)
    assert batch.check_commit(first, ["b"]) is None
    assert batch.check_end(second) is None


def test_a_later_reader_in_progress_ends_in_a_conflict_if_an_earlier_call_writes_more_than_it_said():
    batch, first, second = made(WRITES_B, READS_A)
    batch.started(first)
    batch.started(second)
    assert batch.check_commit(first, ["b", "a"]) is None
    assert "changed a after it had started" in batch.check_end(second)


def test_a_later_writer_in_progress_cannot_commit_then_either():
    batch, first, second = made(WRITES_B, Footprint(("a",), ("c",)))
    batch.started(first)
    batch.started(second)
    assert batch.check_commit(first, ["a"]) is None
    assert "changed a after it had started" in batch.check_commit(second, ["c"])


@pytest.mark.parametrize("ends", [lambda batch, run: end(batch, run), lambda batch, run: batch.check_end(run)])
def test_an_earlier_call_cannot_change_what_a_later_one_that_has_ended_had_read(ends):
    batch, first, second = made(WRITES_B, READS_A)
    batch.started(first)
    batch.started(second)
    ends(batch, second)
    assert "comes later in the batch, had used the older version" in batch.check_commit(first, ["a"])


def test_an_earlier_call_cannot_change_what_a_later_one_has_written_although_neither_said_so():
    batch, first, second = made(WRITES_B, Footprint((), ("c",)))
    batch.started(first)
    batch.started(second)
    assert batch.check_commit(second, ["c", "z"]) is None
    assert "which comes later in the batch, had used the older version" in batch.check_commit(first, ["z"])


def test_a_later_call_cannot_change_what_an_earlier_one_in_progress_may_use():
    batch, first, second = made(READS_A, WRITES_B)
    batch.started(first)
    batch.started(second)
    assert "comes earlier and may use it, has not ended" in batch.check_commit(second, ["a"])
    assert batch.check_commit(second, ["b"]) is None


def test_a_later_call_cannot_change_what_an_earlier_one_that_has_not_started_may_use():
    batch, _first, second = made(READS_A, WRITES_B)
    batch.started(second)
    assert batch.check_commit(second, ["a"]) is not None


def test_once_the_earlier_one_has_ended_the_later_one_may_change_what_it_used():
    batch, first, second = made(READS_A, WRITES_B)
    batch.started(first)
    end(batch, first)
    batch.started(second)
    assert batch.check_commit(second, ["a"]) is None


def test_a_call_that_starts_again_sees_what_had_made_it_a_conflict():
    batch, first, second = made(WRITES_B, READS_A)
    batch.started(second)
    assert batch.check_commit(first, ["a"]) is None
    batch.started(second)
    assert batch.check_end(second) is None


def test_unknown_reads_meet_every_change():
    batch, first, second = made(WRITES_B, Footprint(None, ()))
    batch.started(second)
    batch.check_commit(first, ["z"])
    assert batch.check_end(second) is not None


def test_an_edited_call_that_now_reads_what_a_later_one_has_changed_is_refused():
    batch, first, second = made(READS_A, WRITES_B)
    batch.started(second)
    assert batch.check_commit(second, ["b"]) is None
    end(batch, second, "b")

    async def footprint_of(_run):
        return READS_B

    batch._footprint_of = footprint_of
    with pytest.raises(Exception, match="comes later in its batch, has changed b already"):
        asyncio.run(batch.learn(first))


def test_the_commits_of_a_batch_inside_a_call_belong_to_that_call():
    outer, first, second = made(WRITES_B, READS_A)
    outer.started(first)
    outer.started(second)
    inner, child = made(WRITES_B)
    child.parent = first
    assert inner.check_commit(child, ["a"]) is None
    assert "changed a after it had started" in outer.check_end(second)
    assert outer.committed_since(0) == ("a",)


def test_a_call_in_which_a_batch_has_committed_goes_on_and_may_still_use_what_it_used():
    outer, first, second = made(READS_A, WRITES_B)
    outer.started(first)
    outer.started(second)
    inner, child = made(WRITES_B)
    child.parent = first
    assert inner.check_commit(child, ["c"]) is None
    assert "comes earlier and may use it, has not ended" in outer.check_commit(second, ["a"])


def test_a_call_that_a_call_of_the_batch_made_belongs_to_it():
    batch, first, second = made(READS_A, WRITES_B)
    batch.started(first)
    child = Run(Call(new_run_id(), ToolName("t"), {}, Principal("me")), _NO_RECORDER, second)
    assert child not in batch and batch.member(child).run is second
    assert batch.check_commit(child, ["a"]) is not None
    assert batch.check_commit(child, ["b"]) is None


def test_no_call_stands_in_a_group_before_one_that_it_waits_for():
    calls = read_calls([{"tool": "t", "after": after} for after in ([], ["1"], [], ["2", "3"], [])])
    footprints = [READS_A, READS_B, WRITES_B, READS_A, Footprint()]
    groups = plan(calls, footprints).groups
    assert groups == (("1",), ("2",), ("3",), ("4",), ("5",))
    group_of = {name: number for number, group in enumerate(groups) for name in group}
    for each in plan(calls, footprints).calls:
        assert all(group_of[name] < group_of[each.call.id] for name, _ in each.waits_for)
