"""Which thread a call from the command line belongs to, and what that means for `/tmp` and for answers."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import shlex
import subprocess
import sys
import termios

import pytest

from .conftest import PATIENCE, PROGRAM, Terminal

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="a terminal is told by /proc")

TOUCH = ["tools", "use", "shell", "--command", "touch made && echo done"]
QUESTION = ", e(dit), m(essage)] "


class Shell(Terminal):
    """A shell on a terminal of its own, with the program at hand as `haft`."""

    def __init__(self, haft, script: str):
        self._start(haft, ["bash", "-c", f'haft() {{ {shlex.join(PROGRAM)} "$@"; }}; {script}'], controls=True)

    def _start(self, haft, words: list[str], *, controls: bool) -> None:
        self._master, slave = pty.openpty()
        self.process = subprocess.Popen(
            words,
            stdin=slave, stdout=slave, stderr=slave,
            cwd=haft.workspace,
            env={**haft.env, "TERM": "xterm", "COLUMNS": "80"},
            start_new_session=True,
            preexec_fn=(lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0)) if controls else None,
        )  # fmt: skip
        os.close(slave)
        self.seen = ""
        self._looked_at = 0


class Loose(Shell):
    """The program with a terminal as its streams, which is no terminal of its session."""

    def __init__(self, haft, *words: str):
        self._start(haft, [*PROGRAM, *words], controls=False)


@pytest.fixture
def tmp_path(outside_tmp):
    return outside_tmp


@pytest.fixture
def shell(haft):
    opened = []

    def open_(*words, kind=Shell):
        opened.append(kind(haft, *words))
        return opened[-1]

    yield open_
    for one in opened:
        one.close()


def outcome(haft, name: str) -> dict:
    return json.loads((haft.workspace / name).read_text())


def calling(command: str, into: str, *more: str) -> str:
    return f"haft tools use shell --command {shlex.quote(command)} --approve {' '.join(more)} > {into}"


def test_calls_from_one_terminal_share_a_thread_and_its_tmp(haft, shell):
    lines = [calling("echo 1,2 > /tmp/out.csv", "one"), calling("cat /tmp/out.csv", "two")]
    named = calling("ls /tmp/out.csv", "named", "--thread", "T-mine")
    assert shell(f"{'; '.join(lines)}; {named}; true").end() == 0
    assert shell(f"{calling('ls /tmp/out.csv', 'other')}; true").end() == 0
    one, two, other, named = (outcome(haft, name) for name in ("one", "two", "other", "named"))
    assert one["thread"] == two["thread"] and two["output"] == "1,2\n"
    assert one["thread"].startswith("T-terminal-") and other["thread"] != one["thread"]
    assert named["thread"] == "T-mine"
    assert "No such file" in other["output"] and "No such file" in named["output"]
    assert other["notes"] == named["notes"] == []


def test_without_a_terminal_every_call_is_a_thread_of_its_own(haft):
    def call(command):
        words = ["tools", "use", "shell", "--command", command, "--approve"]
        done = subprocess.run(
            [*PROGRAM, *words], cwd=haft.workspace, env=haft.env, capture_output=True, stdin=subprocess.DEVNULL,
            start_new_session=True, timeout=PATIENCE,
        )  # fmt: skip
        return json.loads(done.stdout), done.stderr.decode()

    (one, said), (two, told) = call("seq 3 > /tmp/out.csv"), call("wc -l /tmp/out.csv")
    assert one["thread"] != two["thread"] and not one["thread"].startswith("T-terminal-")
    note = "without a terminal, each call has its own /tmp: `--thread NAME` shares one between calls"
    assert (one["notes"], said) == ([], "") and two["notes"] == [note] and f"note: {note}\n" in told


def test_an_answer_for_the_thread_lasts_until_the_terminal_is_closed(haft, shell):
    line = shlex.join(["haft", *TOUCH])
    here = shell(f"{line}; rm made; {line}")
    here.until("t lasts until this terminal is closed\n")
    here.until(QUESTION)
    here.type("t\n")
    assert here.end() == 0  # The second call did not ask.
    assert (haft.workspace / "made").exists()
    there = shell(line)
    there.until(QUESTION)
    there.type("n\n")
    assert there.end() == 3


def test_permissions_test_agrees_with_a_call_from_the_same_terminal(shell):
    tested = shlex.join(["haft", "permissions", "test", "shell", "--command", TOUCH[-1]])
    here = shell(f"{shlex.join(['haft', *TOUCH])}; {tested}")
    here.until(QUESTION)
    here.type("t\n")
    here.until("source: remembered:1")
    assert here.end() == 0


def test_for_a_thread_with_a_name_it_lasts_for_all_calls_that_name_it(shell):
    here = shell(shlex.join(["haft", *TOUCH, "--thread", "T-one"]))
    here.until("t lasts for all calls that name this thread with --thread\n")
    here.until(QUESTION)
    here.type("n\n")
    assert here.end() == 3


def test_where_it_would_last_for_one_call_only_it_is_not_offered(shell):
    here = shell(*TOUCH, kind=Loose)
    here.until("a (always, here) also allows")
    here.until("Approve shell? [y/N, a(lways), w(ith network), w HOST, e(dit), m(essage)] ")
    assert "t (in this thread)" not in here.seen and "t lasts" not in here.seen
    here.type("t\n")
    here.until("`t` is not offered: it would hold for this call only; type y/N")
    here.until("Approve shell?")
    here.type("n\n")
    assert here.end() == 3


def test_the_network_comes_with_an_empty_tmp_unless_the_approval_says_otherwise(haft, terminal):
    thread = ["--thread", "T-one"]
    assert haft("tools", "use", "shell", "--command", "echo secret > /tmp/mine", "--approve", *thread).code == 0
    look = ["tools", "use", "shell", "--command", "cat /tmp/mine; true", *thread]
    for options, shown, answer, sees in (
        ([], "no network", "w", False),
        ([], "no network", "w /tmp", True),
        (["--network"], "the whole network, an empty /tmp", "y", False),
        (["--network"], "the whole network, an empty /tmp", "w /tmp", True),
        (["--network", "--scratch"], "the whole network, with this thread's /tmp", "y", True),
    ):
        here = terminal(*look, *options, COLUMNS="100")
        here.until("sandbox: ")
        here.until(shown)
        here.until(QUESTION)
        here.type(f"{answer}\n")
        assert here.end() == 0
        assert ("secret" in here.seen) is sees, (options, answer)
        run = haft("log", "--json", "--limit", "1").json[0]
        confinement = run["outcome"]["sandbox"]
        assert confinement["network"] is True and confinement["scratch"] == ("thread" if sees else "call")
        if answer == "w /tmp":
            assert "with network, and with this thread's /tmp" in run["outcome"]["decision"]["reason"]
        assert ("/tmp: its thread's, which is not part of undo" in haft("show", run["outcome"]["run"]).out) is sees


def test_an_answer_in_the_inbox_can_grant_it(haft, ended):
    thread = ["--thread", "T-one"]
    assert haft("tools", "use", "shell", "--command", "echo secret > /tmp/mine", "--approve", *thread).code == 0
    for options, sees in ((["--network"], False), (["--network", "--scratch"], True)):
        call = ["tools", "use", "shell", "--command", "cat /tmp/mine; true", "--wait", "30", *thread]
        asking, question = haft.ask(*call)
        said = haft("approve", question, *options)
        assert said.code == 0 and ("and its thread's /tmp" in said.err) is sees
        out, _ = ended(asking).communicate(timeout=PATIENCE)
        assert ("secret" in json.loads(out)["output"]) is sees


def test_a_rule_for_it_can_be_written_on_the_command_line(haft):
    added = haft(
        "permissions", "add", "allow", "shell", "--match", "command=make *", "--network", "--scratch", "--json"
    )
    assert added.json["rule"]["grant"] == {"network": True, "scratch": True}
