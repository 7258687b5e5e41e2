"""Where bars lie on the timeline: what ran at once stands on rows of its own, and nothing else does."""

import datetime

from haft.surfaces.http.console.run_facts import run_facts
from haft.surfaces.http.console.timeline import MOST_ROWS, NOW, timeline

AT = 1_800_000_000.0


def iso(at):
    return datetime.datetime.fromtimestamp(at, datetime.UTC).isoformat()


def run(number, began, lasts, *, thread="T-1", tool="read_file", parent=None, status="done", engine="none", files=()):
    ended = None if lasts is None else began + lasts
    changes = {"engine": engine, "complete": True, "state": "committed" if files else "none"}
    return run_facts(
        {
            "id": f"r_{number:024x}",
            "tool": tool,
            "arguments": {"path": "a.txt"},
            "status": status,
            "who": "codex",
            "thread": thread,
            "parent": parent,
            "startedAt": iso(began),
            "endedAt": None if ended is None else iso(ended),
            "states": [{"at": iso(began), "status": "queued"}],
            "outcome": {"changes": {**changes, "files": [{"path": path} for path in files]}},
        }
    )


def drawn(*runs, most_lanes=100):
    return timeline(runs, {}, now=AT, chosen="15m", base="/w/x/", most_lanes=most_lanes)


def rows(lane):
    return {bar.y for bar in lane.bars}


def test_calls_at_the_same_time_have_rows_of_their_own():
    (lane,) = drawn(*(run(number, AT - 300, 60) for number in range(4))).lanes
    assert len(lane.bars) == 4
    assert len(rows(lane)) == 4


def test_hundreds_of_calls_of_a_millisecond_that_follow_each_other_share_bars_on_one_row():
    (lane,) = drawn(*(run(number, AT - 300 + number * 0.002, 0.001) for number in range(500))).lanes
    assert len(rows(lane)) == 1
    assert sum(bar.count for bar in lane.bars) == 500
    assert len(lane.bars) < 10
    assert all("runs: " in bar.name or bar.count == 1 for bar in lane.bars)


def test_a_change_among_reads_is_seen_in_their_bar():
    reads = [run(number, AT - 300 + number * 0.002, 0.001) for number in range(50)]
    change = run(99, AT - 300 + 0.0505, 0.001, tool="write_file", engine="declared", files=["a.txt"])
    (lane,) = drawn(*reads, change).lanes
    assert {bar.kind for bar in lane.bars} == {"read", "changed"}


def test_an_error_and_what_is_open_never_share_a_bar():
    runs = [run(number, AT - 300, 0.001, status="error", engine="overlay") for number in range(3)]
    (lane,) = drawn(*runs, run(8, AT - 300, None, status="in-progress")).lanes
    assert [bar.count for bar in lane.bars] == [1, 1, 1, 1]


def test_a_crowd_of_parallel_calls_has_a_bounded_height():
    (lane,) = drawn(*(run(number, AT - 300, 60) for number in range(200))).lanes
    assert len(rows(lane)) == MOST_ROWS
    assert sum(bar.count for bar in lane.bars) == 200


def test_thirty_threads_have_a_lane_each_and_open_ones_come_first():
    runs = [run(number, AT - 600 + number, 5, thread=f"T-{number}") for number in range(29)]
    found = drawn(*runs, run(99, AT - 800, None, thread="T-open", status="in-progress"), most_lanes=14)
    assert len(found.lanes) == 14
    assert found.more == 16
    assert found.lanes[0].key == "lane-T-open"
    assert found.lanes[1].key == "lane-T-28"


def test_the_calls_of_a_sub_agent_have_a_lane_below_that_of_their_thread():
    task = run(1, AT - 300, 100, tool="task")
    lanes = drawn(task, run(2, AT - 250, 5, parent=task.id), run(3, AT - 240, 5, thread="T-2")).lanes
    at = [lane.is_child for lane in lanes].index(True)
    assert lanes[at].title == "task: a.txt"
    assert lanes[at - 1].key == "lane-T-1"


def test_no_bar_reaches_into_the_future():
    found = drawn(*(run(number, AT - 1 - number * 0.2, 0.1) for number in range(10)))
    assert all(float(bar.end.rstrip("%")) <= NOW + 0.01 for lane in found.lanes for bar in lane.bars)
