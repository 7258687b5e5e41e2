"""Recordings of past runs: what they hold, when they pass, and which runs are refused."""

import os

import pytest

from haft.contracts import BadUsage
from haft.testing.reading import read_scenario_file
from haft.testing.recording import NotReproducible

pytestmark = pytest.mark.takes_turns

UPPER = "read line; path=${line#path: }; tr a-z A-Z <$path >$path.up; rm $path; echo made $PWD/$path.up"


def test_a_recorded_run_replays_green_and_red_after_the_tool_changed(past):
    past.tool("upper", UPPER)
    past.write("deep/a.txt", "hello\n")
    assert past.call("tb__upper", {"path": "deep/a.txt"}).status == "done"
    recorded = past.record()
    assert os.path.dirname(recorded.path) == str(past.workspace / "tools"), "it is written beside the tool"
    (scenario,) = read_scenario_file(recorded.path)
    assert scenario.files["deep/a.txt"].content == b"hello\n"
    assert scenario.expect.output.equals == "made <workspace>/deep/a.txt.up\n"
    assert {path: each.exists for path, each in scenario.expect.files.items()} == {
        "deep/a.txt": False,
        "deep/a.txt.up": True,
    }
    assert past.replay(recorded).passed
    past.tool("upper", UPPER.replace("tr a-z A-Z", "tr a-z b-za"))
    (mismatch,) = past.replay(recorded).mismatches
    assert mismatch.path == "expect.files.deep/a.txt.up"
    assert (mismatch.expected, mismatch.actual) == ("HELLO\n", "ifmmp\n")


def test_files_are_as_they_were_before_the_run_and_not_as_later_runs_left_them(past):
    past.write("a.txt", "first\n")
    past.call("read_file", {"path": "a.txt"})
    reading = past.last()
    past.call("edit_file", {"path": "a.txt", "old_string": "first", "new_string": "second"})
    editing = past.last()
    past.call("write_file", {"path": "a.txt", "content": "third\n"})
    for run, after in ((reading, b"first\n"), (editing, b"second\n")):
        recorded = past.record(run, to=f"{run}.scenario.yaml")
        (scenario,) = read_scenario_file(recorded.path)
        assert scenario.files["a.txt"].content == b"first\n"
        assert past.replay(recorded).passed
        if run == editing:
            assert scenario.expect.files["a.txt"].content.equals.encode() == after


def test_a_file_that_was_changed_by_hand_after_the_run_is_named(past):
    past.write("a.txt", "first\n")
    past.call("shell", {"command": "test -e a.txt"})
    past.write("a.txt", "second\n")
    assert any("a.txt changed after the run" in note for note in past.record().notes)


def test_all_kinds_of_files_survive(past):
    past.write("script", "#!/bin/sh\n", 0o755)
    command = (
        "printf '\\377\\000' >binary; ln -s script link; mkdir -p empty/inner; chmod 644 script; "
        "printf '  two\\n\\tthree \\nno: end' >odd.yaml; printf 'caf\\303\\251\\r\\n\\033[1m' >text"
    )
    past.call("shell", {"command": command})
    recorded = past.record()
    (scenario,) = read_scenario_file(recorded.path)
    assert scenario.files["script"].mode == 0o755
    expected = scenario.expect.files
    assert expected["binary"].content == b"\xff\0"
    assert expected["link"].target == "script"
    assert expected["empty/inner"].kind == "directory"
    assert expected["script"].mode == 0o644
    assert expected["odd.yaml"].content.equals == "  two\n\tthree \nno: end"
    assert expected["text"].content.equals == "café\r\n\x1b[1m"
    assert past.replay(recorded).passed


def test_what_differs_from_run_to_run_is_left_out_and_named(past):
    past.call("shell", {"command": "echo same; date +%s%N; date +%s%N >stamp; date -u +%FT%TZ >time"})
    recorded = past.record()
    (scenario,) = read_scenario_file(recorded.path)
    assert scenario.expect.output.contains == ("same",)
    assert scenario.expect.files["stamp"].content is None
    assert scenario.expect.files["time"].content.equals == "<time>\n"
    assert {
        "the file stamp differs from run to run, and is not compared",
        "times in the file time are not compared",
    } <= {*recorded.notes}


def test_a_run_that_needs_more_files_is_refused_until_they_are_added(past):
    past.write("lib/one.txt", "1\n")
    past.write("lib/two.txt", "2\n")
    past.call("shell", {"command": "cat $(ls lib*/*.txt)"})
    with pytest.raises(NotReproducible, match="a replay of it did something else") as refused:
        past.record()
    assert "--files" in refused.value.hint
    assert not list(past.workspace.rglob("*.scenario.*"))
    assert past.replay(past.record(files=["lib/*"])).passed


def test_a_failed_call_is_recorded_with_its_exit_code_and_error(past):
    past.call("shell", {"command": "echo out; echo bad >&2; exit 3"})
    recorded = past.record()
    (scenario,) = read_scenario_file(recorded.path)
    assert (scenario.expect.status, scenario.expect.error, scenario.expect.exit) == ("error", "tool-failed", 3)
    assert scenario.expect.stderr.equals == "bad\n"
    assert past.replay(recorded).passed


def test_runs_that_no_scenario_can_repeat_are_refused(past):
    past.call("shell", {"command": "touch made"})
    made = past.last()
    past.call("shell", {"command": "sleep 60"}, timeout=0.3)
    with pytest.raises(BadUsage, match="ended with `timed-out`"):
        past.record()
    past.record(made, to="one.scenario.yaml")
    with pytest.raises(BadUsage, match="exists"):
        past.record(made, to="one.scenario.yaml")
    with pytest.raises(BadUsage, match="cannot be a recording"):
        past.record(made, to="one.txt")
    gone = past.tool("gone", "echo here")
    past.call("tb__gone")
    gone.unlink()
    with pytest.raises(BadUsage, match="there is no tool `tb__gone`"):
        past.record()


def test_json_recordings_pass_too(past):
    past.call("shell", {"command": "echo one; echo two"})
    recorded = past.record(to="one.scenario.json")
    assert past.replay(recorded).passed


def test_lines_that_stay_the_same_are_kept_however_short_they_are(past):
    past.call("shell", {"command": "echo 2; date +%s%N; echo done; echo 10"})
    recorded = past.record(to="one.scenario.yaml")
    output = read_scenario_file(recorded.path)[0].expect.output
    assert (output.contains, output.matches) == (("done",), "(?ms)^2$.*^10$")
    assert past.replay(recorded).passed


def test_clocks_and_dates_become_placeholders(past):
    command = "echo 2; date '+done at %T'; date; LC_ALL=C date -u +%c; echo opens at 10:00:00"
    past.call("shell", {"command": command})
    recorded = past.record()
    assert read_scenario_file(recorded.path)[0].expect.output.equals == (
        "2\ndone at <time>\n<time>\n<time>\nopens at 10:00:00\n"
    )
    assert past.replay(recorded).passed
