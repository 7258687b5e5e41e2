import json
import os
import signal

import pytest


def test_the_outcome_is_one_json_object_where_stdout_is_no_terminal(haft):
    said = haft("tools", "use", "read_file", "--path", "a.txt", "--start-line", "2", "--end-line", "2")
    outcome = said.json
    assert (said.code, said.err) == (0, "")
    assert outcome["status"] == "done" and outcome["output"] == "two\n"
    assert outcome["changes"]["files"] == [] and outcome["decision"]["action"] == "allow"


def test_only_prints_one_field_raw(haft):
    assert haft("tools", "use", "read_file", "--path", "a.txt", "--only", "output").out == "one\ntwo\nthree\n"
    assert haft("tools", "use", "read_file", "--path", "a.txt", "--only", "result").json["totalLines"] == 3
    assert (
        haft("tools", "use", "read_file", "--path", "a.txt", "--only", "output", "--json").json == "one\ntwo\nthree\n"
    )


def test_arguments_come_from_stdin(haft):
    said = haft("tools", "use", "read_file", "--args", "-", "--only", "output", stdin='{"path": "a.txt"}')
    assert said.out == "one\ntwo\nthree\n"


def test_stream_prints_every_event_and_the_outcome_last(haft):
    said = haft("tools", "use", "shell", "--command", "echo a; echo b >&2", "--approve", "--stream")
    events = [json.loads(line) for line in said.out.splitlines()]
    assert [event["seq"] for event in events] == sorted(event["seq"] for event in events)
    assert {"status", "stdout", "stderr"} <= {event["type"] for event in events}
    assert events[-1]["type"] == "outcome" and events[-1]["outcome"]["status"] == "done"


def test_approve_lets_pass_what_would_ask(haft):
    said = haft("tools", "use", "write_file", "--path", "new.txt", "--content", "x", "--approve")
    assert said.code == 0 and (haft.workspace / "new.txt").read_text() == "x"
    assert said.json["decision"]["by"] == "person"
    assert haft("tools", "use", "write_file", "--path", "no.txt", "--content", "x").code == 3
    assert not (haft.workspace / "no.txt").exists()


def test_a_call_that_nobody_can_approve_names_the_options_as_they_are_typed(haft):
    said = haft("tools", "use", "shell", "--command", "touch made")
    assert "approve it with --approve" in said.err and "with --wait SECONDS," in said.err
    assert "`--wait SECONDS`" in haft("tools", "use", "--help").out


def test_thread_and_workspace_are_passed_on(haft, tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    (other / "b.txt").write_text("bee")
    said = haft("tools", "use", "read_file", "--path", "b.txt", "--thread", "T-1", "-w", str(other))
    assert said.json["output"] == "bee" and said.json["thread"] == "T-1"


def test_settings_that_do_not_count_are_said_once(haft):
    (haft.workspace / "haft.toml").write_text("[limits]\nmax_seconds = 9999\n")
    said = haft("tools", "use", "read_file", "--path", "a.txt")
    assert said.code == 0
    assert said.err == "warning: 1 setting of haft.toml waits for `haft trust`, which shows it\n"
    assert haft("tools", "use", "read_file", "--path", "a.txt", "-q").err == ""


def test_children_that_were_ended_are_in_the_outcome(haft):
    begun = 'until [ "$(cat /proc/$!/comm)" = sleep ]; do :; done'
    said = haft("tools", "use", "shell", "--command", f"sleep 300 & {begun}; echo on", "--approve")
    assert said.json["output"] == "on\n"
    assert any("sleep" in child["command"] for child in said.json["endedChildren"])


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_cancels_the_run_and_waits_for_its_end(haft, ended, number):
    process = ended(haft.start("tools", "use", "shell", "--command", "echo on; sleep 300", "--approve"))
    haft.open_run()
    process.send_signal(number)
    out, err = process.communicate(timeout=30)
    assert process.returncode == 130
    assert json.loads(out)["status"] == "cancelled"
    assert err.decode() == "cancelling; press Ctrl-C again to quit at once\n"


def test_a_second_signal_quits_at_once_and_the_run_is_interrupted(haft, ended):
    command = "trap '' TERM; echo on; sleep 300"
    process = ended(haft.start("tools", "use", "shell", "--command", command, "--approve"))
    run = haft.open_run()["id"]
    process.send_signal(signal.SIGINT)
    os.read(process.stderr.fileno(), 100)
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=30) == 130
    kept = haft("show", run, "--json").json
    assert kept["status"] in ("error", "cancelled") and kept["endedAt"] is not None
    assert haft("audit", "verify").code == 0


def test_progress_is_told_in_plain_lines_where_stderr_is_no_terminal(haft, tmp_path):
    package = tmp_path / "site" / "working-1.0.dist-info"
    package.mkdir(parents=True)
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: working\nVersion: 1.0\n")
    (package / "entry_points.txt").write_text("[haft.tools]\nwork = working:work\n")
    (tmp_path / "site" / "working.py").write_text(
        "from haft import Context\n\n"
        "async def work(context: Context) -> str:\n"
        '    """Work."""\n'
        '    context.progress("half \\x1b[0m", fraction=0.5)\n'
        '    return "done"\n'
    )
    said = haft("tools", "use", "work", "--approve", PYTHONPATH=str(tmp_path / "site"))
    assert said.json["output"] == "done"
    assert said.err == "[##########          ]  50% half \\x1b[0m\n"
    assert haft("tools", "use", "work", "--approve", "-q", PYTHONPATH=str(tmp_path / "site")).err == ""


@pytest.fixture
def boxed(haft):
    """A tool of the workspace whose parameters have the names of haft's options."""
    box = haft.workspace / ".agents" / "tools"
    box.mkdir(parents=True)
    tool = box / "run_tests"
    tool.write_text(
        '#!/bin/sh\nif [ "$TOOLBOX_ACTION" = describe ]; then\n'
        "printf 'name: run_tests\\ndescription: Runs tests.\\nworkspace: string what\\ntimeout: string how long\\n'\n"
        "else cat; fi\n"
    )
    tool.chmod(0o755)
    return haft


def test_a_parameter_that_haft_has_an_option_for_is_refused_after_the_name(boxed):
    (boxed.workspace / "core").mkdir()
    for words in (["--workspace", "core"], ["--workspace=none"], ["-w", "none"], ["-w", "core"], ["--timeout", "5m"]):
        said = boxed("tools", "use", "tb__run_tests", *words, "--approve")
        option = "--timeout" if "--timeout" in words else "--workspace"
        assert said.code == 2 and said.json["error"]["code"] == "bad-usage"
        assert said.err.startswith(
            f"error: `{words[0].partition('=')[0]}` after `tb__run_tests` may mean haft's option"
        )
        assert f"`haft tools use {option} VALUE tb__run_tests`" in said.err
        assert f"`haft tools use tb__run_tests -- {option} VALUE`" in said.err


def test_both_spellings_work_together(boxed):
    here = str(boxed.workspace)
    given = ["tools", "use", "--workspace", here, "--timeout", "60", "--approve", "tb__run_tests"]
    said = boxed(*given, "--", "--workspace", "core", "--timeout", "5m", cwd=boxed.home.parent)
    assert said.json["output"].splitlines() == ["workspace: core", "timeout: 5m"]
    assert said.json["limits"]["applied"]["max_seconds"] == 60


def test_what_describes_a_tool_names_the_spelling_that_works(boxed):
    for words in (["tools", "show", "tb__run_tests"], ["tools", "use", "tb__run_tests", "--help"]):
        said = boxed(*words)
        assert "haft has options with the same names: --workspace, --timeout." in said.out
        assert "`haft tools use tb__run_tests -- --workspace VALUE`" in said.out
    assert "Haft has options" not in boxed("tools", "show", "read_file").out


def test_testing_permissions_refuses_a_workspace_that_may_be_the_tools_own_too(boxed):
    (boxed.workspace / "core").mkdir()
    for words in (["--workspace", "core"], ["--workspace=none"], ["-w", "none"]):
        said = boxed("permissions", "test", "tb__run_tests", *words)
        assert said.code == 2 and "after `tb__run_tests` may mean haft's option" in said.err
        assert "`haft permissions test --workspace VALUE tb__run_tests`" in said.err
        assert "`haft permissions test tb__run_tests -- --workspace VALUE`" in said.err
    elsewhere = boxed(
        "permissions", "test", "-w", str(boxed.workspace), "tb__run_tests", "-w", "x", cwd=boxed.home.parent
    )
    assert "after `tb__run_tests` may mean haft's option" in elsewhere.err
    assert boxed("permissions", "test", "shell", "--command", "ls", "-w", str(boxed.workspace)).code == 0
    assert "is not a directory" in boxed("permissions", "test", "shell", "--command", "ls", "-w", "none").err


def test_testing_permissions_hides_no_parameter_either(haft):
    said = haft("permissions", "test", "shell", "--command", "ls", "--cwd", ".")
    assert said.code == 2
    assert "`haft permissions test --cwd VALUE shell`" in said.err
    assert "`haft permissions test shell -- --cwd VALUE`" in said.err
    assert haft("permissions", "test", "--cwd", ".", "shell", "--command", "ls").code == 0
    assert haft("permissions", "test", "shell", "--command", "ls", "--", "--cwd", "x").code in (0, 10)


@pytest.mark.parametrize(("isolation", "code"), [("snapshot", 0), ("serial", 5)])
def test_the_isolation_of_a_call_says_whether_others_may_change_what_it_read(haft, ended, tmp_path, isolation, code):
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    line = f"cat a.txt > copy; cat {gate}"
    options = ["--isolation", isolation, "--read", str(gate), "--approve"]
    running = ended(haft.begin("tools", "use", "shell", "--command", line, *options))
    with open(gate, "w"):  # Opened as soon as the call has read the file.
        assert haft("tools", "use", "write_file", "--path", "a.txt", "--content", "new", "--approve").code == 0
    running.communicate(timeout=60)
    assert running.returncode == code


def test_an_unknown_isolation_is_refused(haft):
    said = haft("tools", "use", "read_file", "--path", "a.txt", "--isolation", "none")
    assert said.code == 2 and "`--isolation` is `snapshot` or `serial`, not `none`" in said.err
