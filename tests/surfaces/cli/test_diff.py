"""`haft diff`, over a change set that is only made up."""

from __future__ import annotations

import io
import json
import os
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from haft.changes import differences
from haft.changes.commit.entry import Entry
from haft.changes.commit.manifest import PathChange
from haft.contracts import ConflictingPath
from haft.surfaces.cli.commands.diff import print_changes
from haft.surfaces.cli.globals import Globals

from .conftest import short

RUN = "r_0123456789abcdef01234567"


def file(content: bytes) -> Entry:
    return Entry("file", 0o644, 0, 0, len(content), 1, content.hex())


@dataclass
class Kept:
    """A change set, and where it is kept."""

    contents: dict[str, tuple[bytes | None, bytes | None]] = field(default_factory=dict)
    run: str = RUN
    state: str = "committed"
    engine: str = "overlay"
    complete: bool = True
    reason: str | None = None
    conflicts: tuple[ConflictingPath, ...] = ()
    more: tuple[PathChange, ...] = ()

    @property
    def entries(self) -> tuple[PathChange, ...]:
        made = (
            PathChange(path, *(None if content is None else file(content) for content in both))
            for path, both in self.contents.items()
        )
        return (*made, *self.more)

    def find(self, run: str) -> Kept:
        assert self.run.startswith(run)
        return self

    def read(self, change_set: Any, altered: PathChange, side: str) -> io.BytesIO | None:
        content = self.contents[altered.path][side == "after"]
        return None if content is None else io.BytesIO(content)

    def differences(self, found: Kept):
        return differences(found.entries, lambda altered, side: self.read(found, altered, side))


def be_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have stdout, as the test sees it, be one; fixtures see another."""
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)


def test_a_pipe_gets_the_patch_to_the_byte_and_git_takes_it_back(capfdbinary, tmp_path):
    contents = {"a é.txt": (b"one\ntwo\r\n", "ein\x1b[2Jß\ntwo\n".encode()), "new": (None, b"x")}
    dangling = PathChange("link", None, Entry("link", 0o777, 0, 0, content=os.fsdecode(b"to\xff")))
    print_changes(Kept(contents, more=(dangling,)), RUN[:6], Globals(), "patch")
    patch, talk = capfdbinary.readouterr()
    assert talk == b""
    assert b"+to\xff\n" in patch
    (tmp_path / "a é.txt").write_bytes(contents["a é.txt"][1])
    (tmp_path / "new").write_bytes(b"x")
    os.symlink(b"to\xff", os.fsencode(tmp_path / "link"))
    env = {**os.environ, "GIT_CEILING_DIRECTORIES": str(tmp_path.parent)}
    subprocess.run(["git", "apply", "-R"], input=patch, cwd=tmp_path, env=env, check=True, capture_output=True)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {"a é.txt": b"one\ntwo\r\n"}


def test_what_a_patch_cannot_tell_is_said_beside_it(capfdbinary):
    kept = Kept({"b\nin": (b"\0", b"\0\0"), "t": (b"a\n", b"b\n")})
    print_changes(kept, RUN, Globals(), "patch")
    patch, talk = capfdbinary.readouterr()
    assert patch.startswith(b"diff --git a/t b/t\n")
    assert talk.decode() == "not in the patch: b\\nin: binary file, 1 → 2 bytes\n"
    print_changes(kept, RUN, Globals(quiet=True), "patch")
    assert capfdbinary.readouterr() == (patch, b"")


def test_a_terminal_gets_colour_and_nothing_that_steers_it(capsys, monkeypatch):
    be_terminal(monkeypatch)
    kept = Kept({"x": (b"-- a\nsame\n", b"++ \x1b[2J\r\nsame\n"), "bin": (None, b"\0")})
    print_changes(kept, RUN, Globals(), "patch")
    assert capsys.readouterr().out == (
        "\x1b[1mdiff --git a/x b/x\x1b[0m\n\x1b[1m--- a/x\x1b[0m\n\x1b[1m+++ b/x\x1b[0m\n"
        "\x1b[2m@@ -1,2 +1,2 @@\x1b[0m\n\x1b[31;1m--- a\x1b[0m\n\x1b[32m+++ \\x1b[2J\\r\x1b[0m\n same\n"
        "\x1b[1mcreate bin\x1b[0m\n\x1b[2mbinary file, 1 byte\x1b[0m\n"
    )


def test_a_rename_is_shown_once(capsys, monkeypatch):
    be_terminal(monkeypatch)
    print_changes(Kept({"a": (b"same\n", None), "b": (None, b"same\n")}), RUN, Globals(), "patch")
    assert capsys.readouterr().out.count("diff --git") == 1


def test_stat_counts(capsys):
    kept = Kept({"x": (b"a\nb\n", b"a\nc\nd\n"), "bin": (b"\0", b"\0\0"), "d/o": (b"s\n", None), "d/p": (None, b"s\n")})
    print_changes(kept, RUN, Globals(), "stat")
    assert capsys.readouterr().out.splitlines() == [
        " x          |   3 ++-",
        " bin        | Bin 1 -> 2 bytes",
        " d/{o => p} |   0",
        " 3 files changed, 2 insertions(+), 1 deletion(-)",
    ]


def test_stat_is_coloured_on_a_terminal(capsys, monkeypatch):
    be_terminal(monkeypatch)
    print_changes(Kept({"x": (b"a\nb\n", b"a\nc\nd\n")}), RUN, Globals(), "stat")
    assert capsys.readouterr().out == (
        " x | 3 \x1b[32m++\x1b[0m\x1b[31;1m-\x1b[0m\n 1 file changed, 2 insertions(+), 1 deletion(-)\n"
    )


def test_json_has_the_whole_change_set(capsys):
    kept = Kept(
        {"x": (b"a\n", b"b\n")}, state="held", conflicts=(ConflictingPath("x"),), complete=False, reason="a fifo"
    )
    print_changes(kept, RUN, Globals(json=True), "patch")
    said = capsys.readouterr()
    found = json.loads(said.out)
    (one,) = found.pop("files")
    assert found == {
        "run": RUN, "engine": "overlay", "complete": False, "reason": "a fifo", "state": "held",
        "conflicts": [{"path": "x", "by": "outside"}],
    }  # fmt: skip
    assert (one["path"], one["type"], one["added"], one["removed"], one["note"]) == ("x", "modify", 1, 1, None)
    assert one["diff"].endswith("-a\n+b\n")
    assert said.err == ""


def test_the_state_is_talk(capsys):
    kept = Kept(
        {"x": (b"a\n", b"b\n")}, state="held", conflicts=(ConflictingPath("x", "r_1"),), complete=False, reason="why"
    )
    print_changes(kept, RUN, Globals(), "stat")
    assert capsys.readouterr().err.splitlines() == [
        "warning: the change set is not complete: why",
        "in conflict: x, changed by r_1",
        f"held: not in the workspace; `haft changes apply {RUN}` or `haft changes drop {RUN}`",
    ]
    print_changes(Kept({"x": (b"a\n", b"b\n")}, state="undone"), RUN, Globals(), "stat")
    assert capsys.readouterr().err == "undone: not in the workspace\n"


def test_no_changes_print_nothing(capsys):
    for form in ("patch", "stat"):
        print_changes(Kept(state="none"), RUN, Globals(), form)
        assert capsys.readouterr() == ("", f"{RUN} changed nothing\n")
    print_changes(Kept(complete=False, reason="why"), RUN, Globals(), "patch")
    assert capsys.readouterr().err.splitlines()[1:] == [f"haft knows no changes of {RUN}"]


@pytest.mark.parametrize(("words", "begin"), [([], "diff --git"), (["--stat"], " x |"), (["--json"], '{"run":')])
def test_the_command_reads_what_the_service_keeps(haft, words, begin):
    run = haft("tools", "use", "write_file", "--path", "x", "--content", "y\n", "--approve").json["run"]
    done = haft("diff", run[:-2], *words)
    assert (done.code, done.out[: len(begin)], done.err) == (0, begin, "")


def test_without_any_state_there_is_no_such_run(haft):
    done = haft("diff", RUN)
    assert (done.code, done.out) == (2, "") and "there is no run" in done.err
    assert not haft.home.exists()


def test_a_run_without_a_change_set_says_why(haft, tmp_path):
    reading = haft("tools", "use", "read_file", "--path", "a.txt").json["run"]
    done = haft("diff", reading)
    assert (done.code, done.out, done.err) == (0, "", f"{short(reading)} changed nothing\n")
    untracked = haft("tools", "use", "shell", "--command", "echo > x", "--approve", HAFT_CHANGES_ENGINE="off").json[
        "run"
    ]
    done = haft("diff", untracked)
    assert (done.code, done.out) == (0, "")
    assert done.err.splitlines() == [
        "warning: the change set is not complete: `changes.engine` is `off`",
        f"haft knows no changes of {short(untracked)}",
    ]
    assert haft("diff", untracked, "--json").json["complete"] is False


def test_the_diff_of_an_open_run_shows_its_changes_so_far(haft, ended):
    command = "mkdir d; echo more >> a.txt; mv a.txt d/b.txt; echo ready; sleep 300"
    process = ended(haft.start("tools", "use", "shell", "--command", command, "--approve", "--stream"))
    assert any(b"ready" in line for line in process.stdout if b'"stdout"' in line)
    run = haft.open_run()["id"]
    done = haft("diff", run)
    assert done.code == 0 and "the change set is not complete: it has not ended yet" in done.err
    assert "deleted file mode" in done.out or "rename from a.txt" in done.out
    assert "+more" in done.out and not (haft.workspace / "d").exists()
    shown = haft("diff", run, "--json").json
    assert (shown["complete"], shown["state"]) == (False, "none")
    assert {each["path"] for each in shown["files"]} == {"a.txt", "d", "d/b.txt"}
    assert haft("diff", run).out == done.out, "looking changes nothing"
    assert not any((haft.home / "changes").glob("*/looks/*"))


def test_an_open_run_without_a_layer_has_no_diff_yet(haft, ended):
    own = Path(haft.env["XDG_CONFIG_HOME"]) / "haft"
    own.mkdir(parents=True)
    (own / "haft.toml").write_text('[changes]\nengine = "off"\n')
    ended(haft.begin("tools", "use", "shell", "--command", "sleep 300", "--approve"))
    done = haft("diff", haft.open_run()["id"])
    assert done.code == 2 and "has not ended yet" in done.err
