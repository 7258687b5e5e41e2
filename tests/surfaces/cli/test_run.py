"""`haft run`: a whole program in one confined run, with a terminal and without."""

from __future__ import annotations

import fcntl
import os
import pty
import signal
import struct
import subprocess
import sys
import termios
from pathlib import Path

import pytest

from .conftest import Terminal, until


def own_settings(haft, text):
    place = Path(haft.env["XDG_CONFIG_HOME"]) / "haft"
    place.mkdir(parents=True)
    (place / "haft.toml").write_text(text)


def ran(haft, script, *options, **more):
    """The outcome of a shell script as a program."""
    return haft("run", "--json", *options, "--", "bash", "-c", script, **more).json


@pytest.mark.every_user
def test_the_workspace_stays_as_it_is_until_the_changes_are_applied(haft):
    done = haft("run", "--", "bash", "-c", "echo more >> a.txt; echo new > n.txt; cat a.txt; echo late >&2")
    assert done.code == 0
    assert done.out == "one\ntwo\nthree\nmore\n" and "late\n" in done.err
    assert sorted(os.listdir(haft.workspace)) == ["a.txt"]
    (run,) = haft("changes", "list", "--json").json
    assert (run["tool"], run["files"]) == ("program", 2)
    assert f"`haft changes apply {run['run'][:13]} [PATH…]`" in done.err
    assert haft("changes", "apply", run["run"]).code == 0
    assert sorted(os.listdir(haft.workspace)) == ["a.txt", "n.txt"]


def test_what_the_program_may_reach_is_shown_before_it_starts(haft, tmp_path):
    (tmp_path / "more").mkdir()
    options = ["--read", str(tmp_path / "more"), "--network=model.example:443", "--env", "LANG", "--timeout", "50"]
    said = haft("run", *options, "--", "true", LANG="C.UTF-8").err
    assert "program: true" in said and "timeout 50 s" in said and "memory 2" in said
    assert (
        "network only to model.example:443" in said and f"may read {tmp_path / 'more'}" in said and "gets LANG" in said
    )
    assert "no deadline" in haft("run", "--", "true").err
    assert haft("run", "-q", "--", "true").err == ""


def test_an_outcome_has_no_deadline_unless_one_was_given(haft):
    done = ran(haft, "true")
    assert "max_seconds" not in done["limits"]["applied"] and done["decision"]["by"] == "person"
    (haft.workspace / "haft.toml").write_text("[limits]\nmax_seconds = 0.2\nmax_idle_seconds = 0.2\n")
    assert ran(haft, "sleep 0.6; echo x > n.txt")["status"] == "done"
    for seconds in ("0.5", "10"):  # A machine under load may not come to the first line so soon.
        stopped = haft("run", "--json", "--timeout", seconds, "--", "bash", "-c", "echo x > n.txt; sleep 100")
        assert stopped.code == 4
        if stopped.json["changes"]["state"] == "held":
            return
    pytest.fail("the changes are not held")


def test_stdin_is_passed_on_to_its_end(haft):
    assert haft("run", "-q", "--", "sort", stdin="b\na\n").out == "a\nb\n"
    assert ran(haft, "wc -c", stdin="x" * 3_000_000)["output"].strip() == "3000000"


@pytest.mark.every_user
def test_the_home_directory_and_the_state_home_are_hidden(haft, tmp_path):
    (tmp_path / ".ssh").mkdir()
    (tmp_path / ".ssh" / "id").write_text("secret")
    done = ran(haft, f"cat ~/.ssh/id; ls -A {haft.home}; echo x > {tmp_path}/outside; haft approve x")
    assert "secret" not in done["output"]
    assert not (tmp_path / "outside").exists() and (tmp_path / ".ssh" / "id").exists()


def test_a_program_that_fails_says_how_and_its_changes_are_held(haft):
    done = haft("run", "--", "bash", "-c", "echo x > n.txt; exit 3")
    assert done.code == 1 and "`bash` exited 3" in done.err
    outcome = ran(haft, "kill -9 $$")
    assert outcome["exitCode"] == 137 and "signal 9 (SIGKILL)" in outcome["error"]["message"]


def test_with_commit_nothing_is_asked(haft):
    done = haft("run", "--commit", "--", "bash", "-c", "echo new > n.txt")
    assert done.code == 0 and (haft.workspace / "n.txt").read_text() == "new\n" and "haft undo" in done.err
    assert haft("undo").code == 0 and not (haft.workspace / "n.txt").exists()


def test_a_protected_path_is_held_even_with_commit(haft):
    (haft.workspace / ".git").mkdir()
    done = haft("run", "--commit", "--json", "--", "bash", "-c", "mkdir -p .vscode; echo '{}' > .vscode/tasks.json")
    assert done.json["changes"]["state"] == "held" or done.json["exitCode"] != 0
    assert not (haft.workspace / ".vscode").exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "needs a program"),
        (["--", "no-such-program"], "`no-such-program` was not found"),
        (["--", "./a.txt"], "it is not executable"),
        (["--", "./b.txt"], "there is no such file"),
    ],
)
def test_a_program_that_cannot_start_is_refused(haft, words, said):
    done = haft("run", *words)
    assert done.code == 2 and said in done.err


def test_without_layers_it_is_refused_with_the_reason(haft):
    own_settings(haft, '[changes]\nengine = "snapshot"\n')
    for options in ([], ["--commit"]):
        done = haft("run", *options, "--", "touch", "n.txt")
        assert done.code == 2 and "`changes.engine` is `snapshot`" in done.err
    assert not (haft.workspace / "n.txt").exists()


def test_a_rule_can_reject_a_program(haft):
    (haft.workspace / "haft.toml").write_text('[[permissions]]\ntool = "program"\naction = "reject"\n')
    done = haft("run", "--json", "--", "true")
    assert done.code == 3 and done.json["decision"]["by"] == "rule"


def test_words_after_the_program_belong_to_it(haft):
    assert haft("run", "-q", "echo", "--network=x", "-q", "--json").out == "--network=x -q --json\n"
    assert haft("run", "-q", "--", "echo", "--", "--commit").out == "-- --commit\n"


def test_it_works_in_the_current_directory(haft):
    (haft.workspace / "below").mkdir()
    said = haft("run", "-q", "--", "bash", "-c", "pwd; ./tool", cwd=haft.workspace / "below")
    assert said.out == f"{haft.workspace}/below\n"


def test_the_output_is_kept_with_the_run(haft):
    run = ran(haft, "echo to be kept")["run"]
    assert haft("output", run).out == "to be kept\n"


def test_cancelling_it_ends_all_its_processes_and_holds_its_changes(haft, ended):
    process = ended(haft.start("run", "--", "bash", "-c", "echo x > n.txt; echo ready; sleep 300 & sleep 301"))
    assert process.stdout.readline() == b"ready\n"
    run = haft.open_run()["id"]
    apply = haft("changes", "apply", run)
    assert apply.code == 2 and "has not ended yet" in apply.err
    assert haft("cancel", run).code == 0
    assert process.wait(timeout=30) == 130
    assert haft("diff", run, "--json").json["state"] == "held"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_signal_to_haft_ends_the_program_and_holds_its_changes(haft, ended, number):
    process = ended(haft.start("run", "--", "bash", "-c", "echo x > n.txt; echo ready; sleep 302"))
    assert process.stdout.readline() == b"ready\n"
    process.send_signal(number)
    assert process.wait(timeout=30) == 130
    (held,) = haft("changes", "list", "--json").json
    assert held["files"] == 1


def is_running(words):
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/cmdline", "rb") as file:
                if words in file.read().replace(b"\0", b" "):
                    return True
        except OSError:
            pass
    return False


def test_when_haft_is_killed_nothing_runs_on_and_nothing_is_half_done(haft, ended):
    mark = f"sleep 300.{os.getpid()}1"
    process = ended(
        haft.start("run", "--commit", "--", "bash", "-c", f"echo x > n.txt; echo ready; (setsid {mark} &) ; {mark}")
    )
    assert process.stdout.readline() == b"ready\n"
    run = haft.open_run()["id"]
    process.kill()
    process.wait()
    until(lambda: not is_running(mark.encode()))
    assert sorted(os.listdir(haft.workspace)) == ["a.txt"]
    shown = haft("show", run, "--json").json["outcome"]
    assert (shown["status"], shown["error"]["code"]) == ("error", "interrupted")


def test_when_the_program_is_killed_its_changes_are_held_and_its_children_end(haft):
    mark = f"sleep 300.{os.getpid()}2"
    done = ran(haft, f"echo x > n.txt; (setsid {mark} &); kill -9 $$")
    assert done["changes"]["state"] == "held" and done["exitCode"] == 137
    assert not is_running(mark.encode())
    assert sorted(os.listdir(haft.workspace)) == ["a.txt"]


# On a terminal.


class Shell(Terminal):
    """Another program on a terminal of its own."""

    def __init__(self, haft, *words):
        self._master, slave = pty.openpty()
        self.process = subprocess.Popen(
            words, stdin=slave, stdout=slave, stderr=slave, cwd=haft.workspace, env={**haft.env, "TERM": "xterm"},
            start_new_session=True, preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        )  # fmt: skip
        os.close(slave)
        self.seen = ""
        self._looked_at = 0


def children_of(process):
    """The process ids of the children of a process."""
    with open(f"/proc/{process}/task/{process}/children") as file:
        return [*map(int, file.read().split())]


def on_terminal(terminal, *words):
    return terminal("run", "--", *words)


@pytest.mark.every_user
def test_the_program_has_a_terminal_of_its_own_with_the_size_of_the_window(terminal):
    shown = on_terminal(terminal, "bash", "--norc", "--noprofile")
    shown.until("bash")
    fcntl.ioctl(shown._master, termios.TIOCSWINSZ, struct.pack("HHHH", 33, 77, 0, 0))
    shown.type("tty; echo $((1+1))two\n")
    shown.until("/dev/pts/0\n")
    shown.until("2two")
    shown.type("until [ \"$(stty size)\" = '33 77' ]; do sleep 0.05; done; echo re''sized\n")
    shown.until("resized")
    shown.type("exit\n")
    assert shown.end() == 0
    assert "changed nothing" in shown.seen


def test_keys_reach_the_program_and_job_control_works(terminal):
    shown = on_terminal(terminal, "bash", "--norc", "--noprofile")
    shown.until("bash")
    shown.type("bash -c \"echo go''es; exec sleep 300\"\n")
    shown.until("goes\n")
    shown.type("\x03")
    shown.type("bash -c \"echo af''ter; exec sleep 301\"\n")
    shown.until("after\n")
    shown.type("\x1a")
    shown.until("Stopped")
    shown.type("kill -9 %1; exit\nexit\n")  # The second one, if the job has not ended yet.
    assert shown.end() in (0, 1)


def test_a_full_screen_program_works(terminal, haft):
    (haft.workspace / "long.txt").write_text("".join(f"line {number}\n" for number in range(500)))
    shown = on_terminal(terminal, "less", "long.txt")
    shown.until("line 1\n")
    shown.type("G")
    shown.until("line 499")
    shown.type("q")
    assert shown.end() == 0


def test_the_person_looks_at_the_diff_and_applies_a_part_and_drops_the_rest(terminal, haft):
    shown = on_terminal(terminal, "bash", "-c", "echo new > n.txt; echo other > o.txt; echo more >> a.txt")
    shown.until("Apply these changes? ")
    assert "n.txt" in shown.seen and "3 files changed" in shown.seen
    shown.type("d\n")
    shown.until("+more")
    shown.until("drop them] ")
    shown.type("what\n")
    shown.until("is not an answer here")
    shown.until("drop them] ")
    shown.type("p\n")
    shown.until("paths, separated by blanks: ")
    shown.type("n.txt a.txt\n")
    shown.until("drop them] ")
    assert (haft.workspace / "n.txt").exists()
    shown.type("x\n")
    assert shown.end() == 0
    assert sorted(os.listdir(haft.workspace)) == ["a.txt", "n.txt"]
    assert haft("changes", "list", "--json").json == []


@pytest.mark.parametrize(("answer", "there"), [("y\n", True), ("\n", False), ("\x04", False)])
def test_the_person_applies_everything_or_keeps_it_held(terminal, haft, answer, there):
    shown = on_terminal(terminal, "bash", "-c", "echo new > n.txt")
    shown.until("drop them] ")
    shown.type(answer)
    assert shown.end() == 0
    assert (haft.workspace / "n.txt").exists() == there
    assert len(haft("changes", "list", "--json").json) == (not there)


@pytest.mark.parametrize("answer", ["y\n", "n\n", "x\n", "d\n", "p\n"])
@pytest.mark.parametrize(("verb", "became"), [("drop", "dropped"), ("apply", "applied")])
def test_a_decision_in_another_terminal_ends_the_question(terminal, haft, answer, verb, became):
    shown = on_terminal(terminal, "bash", "-c", "echo new > n.txt")
    shown.until("drop them] ")
    (held,) = haft("changes", "list", "--json").json
    assert haft("changes", verb, held["run"]).code == 0
    shown.type(answer)
    assert shown.end() == 0
    assert f"its changes were {became} meanwhile" in shown.seen
    assert "holds no changes" not in shown.seen and "held: `haft diff" not in shown.seen


def test_the_terminal_is_as_before_after_the_program(terminal):
    shown = on_terminal(terminal, "bash", "-c", "stty raw -echo; echo x > n.txt")
    shown.until("drop them] ")
    modes = termios.tcgetattr(shown._master)
    assert modes[3] & termios.ICANON and modes[3] & termios.ECHO
    shown.type("\n")
    assert shown.end() == 0


def test_ctrl_c_at_the_question_keeps_the_changes_held_and_says_so(terminal, haft):
    shown = on_terminal(terminal, "bash", "-c", "echo new > n.txt")
    shown.until("drop them] ")
    shown.type("\x03")
    shown.until("held: ")
    assert shown.end() == 130
    assert len(haft("changes", "list", "--json").json) == 1


def test_a_connection_of_the_program_rings_the_bell_and_is_approved_in_the_inbox(terminal, haft):
    """A message would destroy the screen of the program."""
    shown = on_terminal(terminal, "bash", "-c", "exec 3<>/dev/tcp/one.invalid/4711 && cat <&3; echo ended")
    shown.until("\a")
    (waiting,) = haft("inbox", "--json").json
    assert (waiting["connection"]["host"], waiting["connection"]["port"]) == ("one.invalid", 4711)
    assert haft("approve", waiting["id"]).code == 0
    shown.until("Connection reset by peer\n")  # There is no such host.
    shown.until("ended\n")
    assert shown.end() == 0
    assert waiting["id"] not in shown.seen
    (run,) = haft("log", "--host", "one.invalid", "--json").json
    (connection,) = haft("show", run["id"], "--json").json["outcome"]["sandbox"]["connections"]
    assert (connection["allowed"], connection["by"].endswith("who was asked")) == (True, True)


def test_stopping_haft_in_its_job_gives_the_terminal_back_until_it_goes_on(haft, tmp_path):
    """A shell of the person starts haft as a job, another program stops it, and `fg` continues it."""
    run = f"{sys.executable} -m haft run -q -- bash --norc --noprofile"
    (tmp_path / "rc").write_text(f"PS1='person> '\nalias program='{run}'\n")
    shell = Shell(haft, "bash", "--noprofile", "--noediting", "--rcfile", str(tmp_path / "rc"), "-i")
    try:
        shell.until("person> ")
        shell.type("program\n")
        shell.until("bash")
        shell.type("echo in$((1+1))side; stty -a > /dev/null\n")
        shell.until("in2side\n")
        [haft_process] = children_of(shell.process.pid)
        os.kill(haft_process, signal.SIGTSTP)
        shell.until("Stopped")
        shell.until("person> ")
        modes = termios.tcgetattr(shell._master)
        assert modes[3] & termios.ICANON and modes[3] & termios.ECHO
        shell.type("echo out$((1+1))side; fg\n")
        shell.until("out2side\n")
        shell.until("haft run")
        shell.type("echo back$((1+1))again > n.txt; cat n.txt\n")
        shell.until("back2again\n")
        assert not termios.tcgetattr(shell._master)[3] & termios.ICANON
        shell.type("exit\n")
        shell.until("drop them] ")
        shell.type("y\n")
        shell.until("person> ")
        shell.type("exit\n")
        assert shell.end() == 0
    finally:
        shell.close()
    assert (haft.workspace / "n.txt").read_text() == "back2again\n"


def test_the_program_cannot_type_into_the_persons_terminal(terminal):
    script = "import fcntl, sys, termios; [fcntl.ioctl(0, termios.TIOCSTI, bytes([each])) for each in b'echo typed']"
    shown = on_terminal(terminal, "bash", "-c", f'python3 -c "{script}"; echo x > n.txt')
    shown.until("drop them] ")
    shown.type("\n")
    assert shown.end() == 0
    assert "is not an answer here" not in shown.seen


def test_the_program_cannot_hide_what_haft_shows_after_it(terminal):
    shown = on_terminal(terminal, "bash", "-c", r"echo x > n.txt; printf 'marker\033[8m\033[?1049h\033]0;unfinished'")
    shown.until("drop them] ")
    shown.type("\n")
    assert shown.end() == 0
    after = shown.seen[shown.seen.rindex("unfinished") : shown.seen.index("drop them] ")]
    assert after.index("\x18") < after.index("\x1b[?47l") < after.index("\x1b[m") < after.index("n.txt")


# Several times side by side.


def test_three_run_side_by_side_each_in_a_layer_of_its_own(haft):
    script = "cat > in.txt; echo $$-$RANDOM-$RANDOM > own.txt; ls"
    done = haft("run", "--times", "3", "--json", "--", "bash", "-c", script, stdin="the same")
    assert done.code == 0
    runs = done.json["runs"]
    assert [each["status"] for each in runs] == ["done"] * 3
    assert all(each["output"].split() == ["a.txt", "in.txt", "own.txt"] for each in runs)
    assert len({haft("diff", each["run"]).out for each in runs}) == 3
    assert sorted(os.listdir(haft.workspace)) == ["a.txt"]
    assert haft("changes", "apply", runs[1]["run"]).code == 0
    assert haft("changes", "apply", runs[2]["run"]).code == 5, "the other one is in conflict now"
    assert (haft.workspace / "in.txt").read_text() == "the same"


def test_the_output_and_a_table_tell_the_runs_apart(haft):
    done = haft("run", "--times", "2", "--", "bash", "-c", "echo hello; echo x > n.txt")
    assert "[1] hello\n" in done.err and "[2] hello\n" in done.err
    assert [line.split()[0] for line in done.out.splitlines()] == ["[1]", "[2]"] and "1 path held" in done.out
    refused = haft("run", "--times", "2", "--commit", "--", "true")
    assert refused.code == 2 and "cannot be used together" in refused.err


def test_the_person_chooses_one_of_them(terminal, haft):
    shown = terminal("run", "--times", "2", "--", "bash", "-c", "echo x > n.txt")
    shown.until("(Enter)? ")
    shown.type("d 1\n")
    shown.until("+x")
    shown.until("(Enter)? ")
    shown.type("2\n")
    shown.until("(Enter)? ")
    shown.type("x\n")
    assert shown.end() == 0
    assert (haft.workspace / "n.txt").exists() and haft("changes", "list", "--json").json == []


def test_an_attempt_in_the_way_of_another_is_named(terminal, haft):
    shown = terminal("run", "--times", "2", "--", "bash", "-c", "echo $$-$RANDOM-$RANDOM > n.txt")
    shown.until("(Enter)? ")
    shown.type("2\n")
    shown.until("(Enter)? ")
    shown.type("1\n")
    shown.until("attempt 2, which you applied, also changed `n.txt`")
    shown.until("(Enter)? ")
    (held,) = haft("changes", "list", "--json").json
    assert haft("changes", "drop", held["run"]).code == 0
    shown.type("1\n")
    assert shown.end() == 0
    assert "its changes were dropped meanwhile" in shown.seen and "changed again" not in shown.seen


def test_the_last_line_of_each_run_is_shown_without_a_newline_too(haft):
    done = haft("run", "--times", "2", "--", "bash", "-c", "printf 'one\\nlast'")
    for number in (1, 2):
        assert f"[{number}] one\n" in done.err and f"[{number}] last\n" in done.err
