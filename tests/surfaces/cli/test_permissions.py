"""The rules from the command line: which there are, which one decides, how they are changed, what others would do."""

from __future__ import annotations

import asyncio
import json
import shlex
import signal
import stat
import subprocess
import tomllib

import pytest

from haft import ToolService

from .conftest import PROGRAM

OWN = "~/config/haft/haft.toml"


@pytest.fixture
def own(haft, tmp_path):
    """The user's file, with something in it."""
    path = tmp_path / "config" / "haft" / "haft.toml"
    path.parent.mkdir(parents=True)

    def write(text):
        path.write_text(text)
        return path

    return write


# test


@pytest.mark.parametrize(
    ("command", "action", "code"),
    [("ls -la | wc -l", "allow", 0), ("touch a", "ask", 10), ("ls; rm -rf b", "ask", 10), ("((", "ask", 10)],
)
def test_a_call_is_decided_and_not_made(haft, command, action, code):
    said = haft("permissions", "test", "shell", "--args", json.dumps({"command": command}), "--json")
    assert (said.code, said.json["action"]) == (code, action)
    assert set(said.json) == {"action", "layer", "rule", "source", "reason", "parts"}
    assert haft("log", "--json").json == []


def test_what_a_rule_rejects_names_the_rule_and_its_place(haft, own):
    own(
        '# mine\n\n[[permissions]]\ntool = "shell"\nmatches = {command = "rm *"}\n'
        'action = "reject"\nmessage = "ask me"\n'
    )
    said = haft("permissions", "test", "shell", "--command", "ls && rm b", "--json")
    assert said.code == 11
    assert said.json["source"] == f"{OWN}:3" and "ask me" in said.json["reason"]
    assert [part["action"] for part in said.json["parts"]] == ["allow", "reject"]
    shown = haft("permissions", "test", "shell", "--command", "ls && rm b")
    assert shown.out.startswith("reject: ") and f"source: {OWN}:3" in shown.out and "allow: ls\n" in shown.out


def test_rules_for_sub_agents_are_tried_out_with_an_option(haft, own):
    own('[[permissions]]\ntool = "shell"\nmatches = {command = "make"}\ncontext = "subagent"\naction = "reject"\n')
    words = ("permissions", "test", "shell", "--command", "make")
    assert haft(*words).code == 10
    assert haft(*words, "--subagent").code == 11


def test_the_file_is_named_in_which_the_rule_that_decided_stands(haft, own, tmp_path):
    mine = own('[[permissions]]\ntool = "shell"\nmatches = {command = "make a"}\naction = "allow"\n')
    theirs = haft.workspace / "haft.toml"
    theirs.write_text('[[permissions]]\ntool = "shell"\nmatches = {command = "make b"}\naction = "reject"\n')
    for command, file, source in (("make a", mine, f"{OWN}:1"), ("make b", theirs, "haft.toml:1")):
        assert f"  source: {source}\n  file: {file}\n" in haft("permissions", "test", "shell", "--command", command).out
        said = haft("permissions", "test", "shell", "--command", command, "--json").json
        assert (said["source"], said["file"]) == (source, str(file))
    assert "file" not in haft("permissions", "test", "shell", "--command", "make c", "--json").json
    theirs.unlink()
    (haft.workspace / "haft.json").write_text(json.dumps({"permissions": [{"tool": "shell", "action": "reject"}]}))
    said = haft("permissions", "test", "shell", "--command", "make c", "--json").json
    assert said["file"] == str(haft.workspace / "haft.json")


def test_a_rule_of_ones_own_lies_where_xdg_says_and_not_in_the_state_home(haft, tmp_path):
    said = haft("permissions", "add", "ask", "shell", "--json", HAFT_HOME=str(tmp_path / "elsewhere")).json
    assert said["file"] == str(tmp_path / "config" / "haft" / "haft.toml")
    assert not (tmp_path / "elsewhere" / "haft.toml").exists()


def test_every_step_is_told_when_asked_for(haft, own):
    own('[[permissions]]\ntool = "shell"\nmatches = {command = "npm *"}\naction = "allow"\n')
    said = haft("permissions", "test", "shell", "--command", "touch a", "--json", "-v").json
    assert any(step["source"] == f"{OWN}:1" and "does not match" in step["outcome"] for step in said["steps"])
    shown = haft("permissions", "test", "shell", "--command", "touch a", "-v").out
    assert f"({OWN}:1): does not match" in shown


def test_arguments_that_the_tool_refuses_are_judged_all_the_same(haft):
    assert haft("permissions", "test", "shell", "--args", '{"bogus": 1}').code == 10
    assert haft("permissions", "test", "read_file", "--args", '{"path": 5}').code == 0


def test_an_unknown_tool_is_said_with_the_near_miss(haft):
    said = haft("permissions", "test", "shel")
    assert said.code == 2 and "`shell`" in said.err


def test_a_delegate_is_asked_only_when_that_is_said(haft, own):
    program = haft.workspace / "judge"
    program.write_text("#!/bin/sh\ngrep -q fine && exit 0\necho not fine >&2\nexit 2\n")
    program.chmod(0o755)
    own(f'[[permissions]]\ntool = "write_file"\naction = "delegate"\nto = "{program}"\n')
    words = ["permissions", "test", "write_file", "--path", "b.txt", "--json"]
    said = haft(*words, "--content", "fine")
    assert (said.code, said.json["action"]) == (10, "delegate")
    said = haft(*words, "--content", "fine", "--run-delegate")
    assert (said.code, said.json["action"]) == (0, "allow")
    said = haft(*words, "--content", "bad", "--run-delegate")
    assert (said.code, said.json["reason"]) == (11, "not fine")


def test_a_batch_answers_every_line_in_its_place(haft):
    deep = "(" * 10_000 + "ls" + ")" * 10_000
    lines = [
        (b'{"tool": "shell", "args": {"command": "ls"}}', "allow"),
        (b"nothing", "reject"),
        (b"", "reject"),
        (b'{"tool": "nothing"}', "reject"),
        (b'{"tool": "shell", "args": []}', "reject"),
        (b'{"tool": "shell", "arguments": {}}', "reject"),
        (json.dumps({"tool": "shell", "args": {"command": "x" * 1_000_000}}).encode(), "ask"),
        (json.dumps({"tool": "shell", "args": {"command": "ls \0"}}).encode(), "ask"),
        (b'{"tool": "shell", "args": {"command": "ls \\ud800"}}', "ask"),
        (b'{"tool": "shell", "args": {"command": "ls \xff"}}', "ask"),
        (json.dumps({"tool": "shell", "args": {"command": deep}}).encode(), "ask"),
        (b'{"tool": "shell", "args": ' + b"[" * 100_000 + b"]" * 100_000 + b"}", "reject"),
        (b'{"tool": "read_file", "args": {"path": "a.txt"}}', "allow"),
    ]
    batch = haft.workspace / "batch"
    batch.write_bytes(b"\n".join(line for line, _ in lines))
    said = haft("permissions", "test", "--batch", "batch")
    assert said.code == 0
    answers = [json.loads(line) for line in said.out.splitlines()]
    assert [answer["action"] for answer in answers] == [action for _, action in lines]
    assert all(answer["layer"] == "input" for answer in answers if answer["action"] == "reject")


def test_a_batch_answers_a_line_before_the_next_is_there(haft, ended):
    process = ended(
        subprocess.Popen(
            [*PROGRAM, "permissions", "test", "--batch", "-"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=haft.workspace,
            env=haft.env,
        )
    )
    for command, action in (("ls", "allow"), ("touch a", "ask")):
        process.stdin.write(json.dumps({"tool": "shell", "args": {"command": command}}).encode() + b"\n")
        process.stdin.flush()
        assert json.loads(process.stdout.readline())["action"] == action
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=60) == 130
    assert b"Fatal" not in process.stderr.read()


def test_a_batch_takes_no_name_and_no_arguments(haft):
    assert haft("permissions", "test", "shell", "--batch", "-").code == 2
    assert haft("permissions", "test", "--batch", "-", "--args", "{}").code == 2
    assert haft("permissions", "test").code == 2
    assert haft("permissions", "test", "--batch", "no-such-file").code == 2


# list


def test_rules_are_listed_in_the_order_in_which_they_count(haft, own):
    own('[[permissions]]\ntool = "shell"\nmatches = {command = "npm *"}\naction = "allow"\n')
    (haft.workspace / "haft.toml").write_text(
        '[[permissions]]\ntool = "write_file"\naction = "reject"\n'
        '[[permissions]]\ntool = "edit_file"\naction = "allow"\n'
    )
    listed = haft("permissions", "list", "--json").json
    found = [(rule["origin"], rule["source"], rule["action"], rule["counts"]) for rule in listed][:3]
    assert found == [
        ("workspace", "haft.toml:1", "reject", True),
        ("workspace", "haft.toml:4", "allow", False),
        ("user", f"{OWN}:1", "allow", True),
    ]
    assert listed[-1]["origin"] == "built-in" and listed[-1]["action"] == "ask"
    shown = haft("permissions", "list")
    assert "does not count until `haft trust`: " in shown.out and "haft trust" in shown.err


# add and remove


def test_a_rule_that_is_added_decides(haft, tmp_path):
    assert haft("permissions", "test", "shell", "--command", "touch a").code == 10
    said = haft("permissions", "add", "allow", "shell", "--match", "command=touch *")
    assert said.out == f"added at {OWN}:1\n"
    assert haft("permissions", "test", "shell", "--command", "touch a").code == 0
    assert stat.S_IMODE((tmp_path / "config" / "haft").stat().st_mode) == 0o700
    assert haft("permissions", "remove", f"{OWN}:1").code == 0
    assert haft("permissions", "test", "shell", "--command", "touch a").code == 10


def test_a_rule_is_added_to_the_file_that_is_named_and_the_file_is_said(haft, tmp_path):
    words = ["permissions", "add", "allow", "shell", "--match", "command=make *"]
    mine, theirs = tmp_path / "config" / "haft" / "haft.toml", haft.workspace / "haft.toml"
    told = haft(*words, "--in", "user")
    assert told.code == 0 and told.out == f"added at {OWN}:1\n" and mine.exists() and not theirs.exists()
    mine.unlink()
    told = haft(*words, "--in", "workspace")
    assert told.code == 0 and told.out == f"added at {theirs}:1\n" and not mine.exists()
    assert "counts after `haft trust`" in told.err
    assert tomllib.loads(theirs.read_text())["permissions"] == [
        {"tool": "shell", "matches": {"command": "make *"}, "action": "allow"}
    ]
    said = haft("permissions", "add", "reject", "shell", "--match", "command=make x", "--in", "workspace", "--json")
    assert said.json == {
        "source": "haft.toml:1", "file": str(theirs), "line": 1,
        "rule": {"tool": "shell", "matches": {"command": "make x"}, "action": "reject"},
    }  # fmt: skip
    assert "haft trust" not in said.err, "what narrows counts at once"
    assert haft("permissions", "test", "shell", "--command", "make x").code == 11
    assert haft("permissions", "test", "shell", "--command", "make y").code == 10
    assert haft("trust", "--yes").code == 0
    assert haft("permissions", "test", "shell", "--command", "make y").code == 0


def test_a_rule_goes_into_no_json_file_and_no_unknown_place(haft):
    said = haft("permissions", "add", "allow", "shell", "--in", "elsewhere")
    assert said.code == 2 and "workspace" in said.err and "user" in said.err
    (haft.workspace / "haft.json").write_text("{}")
    said = haft("permissions", "add", "allow", "shell", "--in", "workspace")
    assert said.code == 2 and "haft.json" in said.err and (haft.workspace / "haft.json").read_text() == "{}"
    assert not (haft.workspace / "haft.toml").exists()


def test_a_rule_for_a_workspace_is_written_through_no_link(haft, own):
    mine, theirs = own("# mine\n"), haft.workspace / "haft.toml"
    words = ["permissions", "add", "allow", "shell", "--match", "command=make lint", "--in"]
    for target in (mine, haft.workspace / "absent"):
        theirs.symlink_to(target)
        said = haft(*words, "workspace")
        assert said.code == 2 and f"{theirs} is a link" in said.err and "--in user" in said.err
        assert mine.read_text() == "# mine\n" and theirs.is_symlink() and not (haft.workspace / "absent").exists()
        theirs.unlink()
    mine.rename(mine.with_name("dotfile.toml"))
    mine.symlink_to("dotfile.toml")
    assert haft(*words, "user").code == 0 and mine.is_symlink(), "a link of the user's own is followed"


def test_everything_else_in_the_file_stays_as_it_was_written(haft, own):
    before = (
        '# top\n[limits] # of mine\nmax_seconds = 7\n\n# about npm\n[[permissions]]\ntool = "shell"\n'
        'matches = {command = """\nnpm [[permissions]]"""}\naction = "allow"\n\n# the end\n[sandbox]\nnetwork = false\n'
    )
    path = own(before)
    assert haft("permissions", "add", "reject", "write_file", "--message", "no").out == f"added at {OWN}:5\n"
    added = '[[permissions]]\ntool = "write_file"\naction = "reject"\nmessage = "no"\n\n'
    assert path.read_text() == before.replace("# about npm", f"{added}# about npm")
    assert haft("permissions", "add", "ask", "edit_file", "--last").code == 0
    assert tomllib.loads(path.read_text())["permissions"][-1] == {"tool": "edit_file", "action": "ask"}
    line = path.read_text().splitlines().index('tool = "edit_file"')
    assert haft("permissions", "remove", f"haft.toml:{line}").code == 0
    assert haft("permissions", "remove", f"{OWN}:5").code == 0
    assert path.read_text().rstrip("\n") == before.rstrip("\n")


def test_the_line_ends_of_windows_stay(haft, own):
    path = own("")
    before = b'[limits]\r\nmax_seconds = 7\r\n\r\n[[permissions]]\r\ntool = "a"\r\naction = "ask"\r\n\r\n[sandbox]\r\n'
    path.write_bytes(before)
    assert haft("permissions", "add", "ask", "b").code == 0
    added = path.read_bytes()
    assert added.count(b"\n") == added.count(b"\r\n") == before.count(b"\n") + 4
    assert haft("permissions", "remove", f"{OWN}:4").code == 0
    assert path.read_bytes() == before


def test_removing_takes_exactly_that_rule(haft, own):
    path = own(
        '[[permissions]]\ntool = "a"\naction = "ask"\n[permissions.matches]\nx = "1"\n\n# b\n[[permissions]]\n'
        'tool = "b"\naction = "ask"\n'
    )
    assert haft("permissions", "remove", f"{OWN}:1").code == 0
    assert path.read_text() == '# b\n[[permissions]]\ntool = "b"\naction = "ask"\n'


def test_any_text_is_written_as_it_is_meant(haft, tmp_path):
    message = 'a "b" \\ \n\t\x7f \u202e \U0001f600 \'\'\' """ # ]'
    assert haft("permissions", "add", "reject", "x", "--message", message, "--match", f"odd key={message}").code == 0
    text = (tmp_path / "config" / "haft" / "haft.toml").read_text()
    assert tomllib.loads(text)["permissions"] == [
        {"tool": "x", "matches": {"odd key": message}, "action": "reject", "message": message}
    ]
    assert "\u202e" not in text


def test_what_an_argument_takes_decides_what_a_pattern_is(haft, tmp_path):
    words = ["--match", "replace_all=true", "--match", "path=true", "--match", "path=b*"]
    assert haft("permissions", "add", "reject", "edit_file", *words).code == 0
    text = (tmp_path / "config" / "haft" / "haft.toml").read_text()
    assert tomllib.loads(text)["permissions"][0]["matches"] == {"replace_all": True, "path": ["true", "b*"]}


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["alow", "shell"], "`allow`"),
        (["allow", "shell", "--match", "command=a && b"], "can never match"),
        (["allow", "shell", "--match", "comand=a"], "`command`"),
        (["allow", "shell", "--match", "cmd=make*"], "did you mean `command`?"),
        (["allow", "shell", "--match", "command"], "for example `--match 'command=make *'`"),
        (["allow", "no such tool"], "can match no tool"),
        (["delegate", "shell"], "needs `to`"),
        (["reject", "shell", "--network"], "`grant`"),
        (["allow", "shell", "--network=a b"], "`--network`: `a b` is no host: write HOST"),
        (["allow", "shell", "--network="], "`--network=` names no host"),
        (
            ["allow", "write_file", "--network=*.github.io"],
            "names below `github.io` belong to many owners; name the hosts",
        ),
        (["allow", "shell", "--network", "--network=a.example"], "`--network` is given both alone and with hosts"),
        (["allow", "shell", "--network=localhost"], "would open services of this machine: name the port"),
        (["allow", "shell", "--danger", "nonsense"], "danger"),
        (["ask", "shell", "--last"], "can never match"),
    ],
)
def test_a_rule_that_cannot_hold_is_refused_and_nothing_is_written(haft, own, words, why):
    path = own('[[permissions]]\ntool = "shell"\naction = "ask"\n')
    before = path.read_text()
    said = haft("permissions", "add", *words)
    assert said.code == 2 and why in said.err
    assert "haft.toml:1:" not in said.err, "nothing is written there"
    assert path.read_text() == before


@pytest.mark.parametrize(
    "text",
    ["permissions = []\n", 'permissions = [{tool = "shell", action = "ask"}]\n', "broken\n", "[nothing]\nx = 1\n"],
)
def test_a_file_that_cannot_be_changed_by_lines_is_left_alone(haft, own, text):
    path = own(text)
    said = haft("permissions", "add", "ask", "write_file")
    assert said.code == 2 and "error:" in said.err
    assert path.read_text() == text


@pytest.mark.parametrize("source", ["nonsense", "remembered:9", f"{OWN}:2", "/etc/haft.toml:1", "haft.toml:99"])
def test_what_is_no_rule_of_ours_is_not_removed(haft, own, source):
    path = own('[[permissions]]\ntool = "shell"\naction = "ask"\n')
    (haft.workspace / "haft.toml").write_text('[[permissions]]\ntool = "edit_file"\naction = "ask"\n')
    said = haft("permissions", "remove", source)
    assert said.code == 2 and "error:" in said.err
    assert path.read_text() and (haft.workspace / "haft.toml").read_text()
    assert len(haft("permissions", "list", "--json").json) == 6


def test_a_rule_of_the_workspace_is_removed_by_the_source_that_list_shows(haft, own):
    mine = own('[[permissions]]\ntool = "shell"\naction = "ask"\n')
    theirs = haft.workspace / "haft.toml"
    words = ["permissions", "add", "allow", "shell", "--in", "workspace", "--match"]
    assert haft(*words, "command=make *").code == haft(*words, "command=touch *").code == 0
    assert haft("trust", "--yes").code == 0
    first = haft("permissions", "list", "--json").json[0]["source"]
    said = haft("permissions", "remove", first)
    assert said.code == 0 and said.out.startswith(f"removed from {theirs}:1: ") and "touch" in said.out
    assert "its trusted settings do not count until `haft trust`" in said.err
    assert "touch" not in theirs.read_text() and mine.read_text()
    missing = haft("permissions", "remove", "haft.toml:99")
    assert missing.code == 2 and f"no rule begins at line 99 of {theirs}" in missing.err
    assert haft("trust", "--yes").code == 0
    last = haft("permissions", "remove", "haft.toml:1")
    assert last.code == 0 and "trust" not in last.err, "nothing is left that needs it"


def test_adding_to_a_trusted_file_says_that_what_was_trusted_does_not_count(haft):
    words = ["permissions", "add", "--in", "workspace"]
    assert haft(*words, "allow", "shell", "--match", "command=make *").code == 0
    assert haft("trust", "--yes").code == 0
    said = haft(*words, "reject", "shell", "--match", "command=make x")
    assert "its trusted settings do not count until `haft trust`" in said.err
    assert haft("permissions", "test", "shell", "--command", "make y").code == 10
    assert "what you trusted" not in haft(*words, "reject", "shell", "--match", "command=make z").err


def test_a_linked_file_stays_a_link(haft, own, tmp_path):
    path = own("")
    real = tmp_path / "dotfiles.toml"
    path.unlink()
    real.write_text("# mine\n")
    path.symlink_to(real)
    assert haft("permissions", "add", "ask", "shell").code == 0
    assert path.is_symlink() and real.read_text().startswith("# mine\n\n[[permissions]]\n")


# edit


def editor(haft, script):
    path = haft.workspace / "editor"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return str(path)


def test_what_was_edited_is_checked_and_then_counts(haft, own, terminal):
    path = own('[[permissions]]\ntool = "shell"\naction = "ask"\n')
    here = terminal("permissions", "edit", EDITOR=editor(haft, 'sed -i s/ask/reject/ "$1"'))
    assert here.end() == 0 and 'action = "reject"' in path.read_text()


def test_what_is_broken_does_not_take_the_place_of_the_file(haft, own, terminal):
    path = own('[[permissions]]\ntool = "shell"\naction = "ask"\n')
    here = terminal("permissions", "edit", EDITOR=editor(haft, 'sed -i s/ask/reect/ "$1"'))
    here.until("Edit it again? [Y/n] ")
    assert "`reject`" in here.seen
    here.type("no\n")
    assert here.end() == 2 and "was not changed" in here.seen
    assert 'action = "ask"' in path.read_text()


def test_editing_without_a_terminal_is_an_error_that_says_what_works(haft, own):
    path = own('[[permissions]]\ntool = "shell"\naction = "ask"\n')
    said = haft("permissions", "edit", EDITOR=editor(haft, 'sed -i s/ask/reject/ "$1"'))
    assert said.code == 2 and "needs a terminal for the editor" in said.err
    assert f"`haft permissions add` and `remove` work without a terminal; the file is {path}" in said.err
    assert 'action = "ask"' in path.read_text()


def test_what_is_broken_can_be_edited_again(haft, own, terminal):
    path = own('[[permissions]]\ntool = "shell"\naction = "ask"\n')
    twice = editor(haft, 'grep -q reect "$1" && sed -i s/reect/reject/ "$1" || sed -i s/ask/reect/ "$1"')
    here = terminal("permissions", "edit", EDITOR=twice)
    here.until("Edit it again? [Y/n] ")
    here.type("y\n")
    assert here.end() == 0
    assert 'action = "reject"' in path.read_text()


# suggest


@pytest.fixture
def past(haft, monkeypatch, tmp_path):
    """Calls that were asked, each with the answer of a person, or of nobody."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))

    def past(*calls, **more):
        async def main():
            answers = iter([answer for _, answer in calls])

            async def answer(_request):
                return next(answers)

            async with ToolService.open(haft.workspace, home=haft.home, approver=answer) as service:
                return [(await service.call("shell", {"command": each}, **more)).run_id for each, _ in calls]

        return asyncio.run(main())

    return past


def test_past_approvals_suggest_rules_and_the_lines_that_write_them(haft, past):
    yes = past(("make x; true", True), ("make 'a b'; true", True), ("make x; true", True), ("make 'a b'; true", True))
    past(("git add no", False), ("git add a", True), ("git add b", True), ("touch once", True))
    past(("python3 x.py", True), ("python3 x.py", True), ("make -C no", False))
    said = haft("permissions", "suggest", "--json").json
    assert (said["lookedAt"], said["approved"], said["saved"]) == (11, 9, 4)
    assert [(one["saves"], sorted(one["runs"]), one["alsoPasses"], one["alone"]) for one in said["suggestions"]] == [
        (2, sorted(yes[1::2]), [], True),
        (2, sorted(yes[::2]), [], True),
    ]
    lines = [rule["add"] for one in said["suggestions"] for rule in one["rules"]]
    assert lines == [
        """haft permissions add allow shell --match 'command=make "a b"' --last""",
        "haft permissions add allow shell --match 'command=make x' --last",
    ]
    shown = haft("permissions", "suggest")
    assert shown.code == 0 and all(f"   {line}\n" in shown.out for line in lines)
    assert shown.out.count("would have saved 2 prompts\n   would have allowed no other call\n") == 2
    assert "4 of 9 approvals would not have been needed; no narrow rule would have saved the other 5" in shown.err
    for line in lines:
        assert haft(*shlex.split(line)[1:]).code == 0
    assert haft("permissions", "test", "shell", "--command", "make x; true").code == 0
    assert haft("permissions", "test", "shell", "--command", "make 'a b'").code == 0
    assert haft("permissions", "test", "shell", "--command", "git add no").code == 10
    assert haft("permissions", "suggest", "--json").json["suggestions"] == []
    told = haft("permissions", "suggest").err
    assert "nothing to suggest: no narrow rule would have saved these 5 approvals" in told


def test_a_rejection_counts_however_old_and_approvals_only_of_the_time_that_is_looked_at(haft, past):
    past(("git add no", False), ("git add a", True), ("git add b", True), ("make x", True), ("make x", True))
    assert haft("permissions", "suggest", "--limit", "4", "--json").json["saved"] == 2, "`git add *` is never proposed"
    assert haft("permissions", "suggest", "--limit", "1", "--json").json["saved"] == 0
    assert haft("permissions", "suggest", "--since", "1h", "--json").json["saved"] == 2
    assert haft("permissions", "suggest", "--since", "2100-01-01", "--json").json["lookedAt"] == 0
    assert haft("permissions", "suggest", "--since", "x").code == 2


def test_approvals_that_a_plain_rule_would_not_answer_alike_suggest_nothing(haft, past, monkeypatch):
    monkeypatch.setenv("MY_TOKEN", "abc-123-xyz")
    past(("make abc-123-xyz", True), ("make abc-123-xyz", True))
    past(("make net", True), ("make net", True), grants={"network": True})
    past(("make env", True), ("make env", True), env={"MAKEFLAGS": "x"})
    said = haft("permissions", "suggest", "--json")
    assert said.json["suggestions"] == [] and "abc-123" not in said.out


def test_approvals_with_hosts_suggest_rules_only_if_every_call_has_these_hosts(haft, past, own):
    past(("make x", True), ("make x", True), grants={"network": ["a.example"]})
    assert haft("permissions", "suggest", "--json").json["suggestions"] == []
    own('[sandbox]\nnetwork = ["b.example", "a.example"]\n')
    assert haft("permissions", "suggest", "--json").json["saved"] == 2


def test_an_empty_history_suggests_nothing_and_says_so(haft):
    said = haft("permissions", "suggest")
    assert (said.code, said.out) == (0, "")
    assert "nothing to suggest: of 0 past calls, no approved one would need approval again" in said.err
    assert haft("permissions", "suggest", "--json").json == {
        "lookedAt": 0, "approved": 0, "saved": 0, "suggestions": []
    }  # fmt: skip


# replay


def test_a_replay_shows_what_would_be_decided_otherwise(haft):
    ran = haft("tools", "use", "shell", "--command", "touch b", "--approve", "--json").json["run"]
    haft("tools", "use", "read_file", "--path", "a.txt")
    assert haft("permissions", "replay", "--json").json == {"lookedAt": 2, "passedOver": 0, "flips": []}
    (haft.workspace / "rules.toml").write_text(
        '[[permissions]]\ntool = "shell"\nmatches = {command = "touch *"}\naction = "reject"\n'
    )
    done = haft("permissions", "replay", "--with", "rules.toml", "--json").json
    assert [(one["run"], one["was"], one["now"], one["source"]) for one in done["flips"]] == [
        (ran, "ask", "reject", "rules.toml:1")
    ]
    shown = haft("permissions", "replay", "--with", "rules.toml")
    assert "ask → reject" in shown.out and "1 of 2 calls" in shown.err
    assert haft("permissions", "test", "shell", "--command", "touch b").code == 10, "nothing was changed by it"


def test_a_replay_by_changed_rules_is_held_against_what_was_decided_then(haft):
    haft("tools", "use", "shell", "--command", "touch b", "--approve")
    haft("permissions", "add", "allow", "shell", "--match", "command=touch *")
    flips = haft("permissions", "replay", "--json").json["flips"]
    assert [(one["was"], one["now"]) for one in flips] == [("ask", "allow")]


@pytest.mark.parametrize("text", [None, "broken", '[[permissions]]\ntool = "shell"\naction = "alow"\n'])
def test_rules_that_cannot_be_read_are_not_replayed(haft, text):
    if text is not None:
        (haft.workspace / "rules.toml").write_text(text)
    assert haft("permissions", "replay", "--with", "rules.toml").code == 2


# What is not there

MISSING = [
    ('tool = "shel"', "there is no tool called `shel` here: did you mean `shell`?"),
    ('tool = "builtin:red_file"', "there is no tool called `builtin:red_file` here: did you mean `builtin:read_file`?"),
    ('tool = "tb__deploy"', "there is no tool called `tb__deploy` here"),
    ('tool = "tb__gret"', "there is no tool called `tb__gret` here: did you mean `tb__greet`?"),
    ('tool = "tb__weather"', "there is no tool called `tb__weather` here"),
    ('tool = "*"\nmatches = {comand = "x*"}', "`*` has no argument `comand`: did you mean `command`?"),
    ('tool = "tb__greet"\nexactly = {nam = "x"}', "`tb__greet` has no argument `nam`: did you mean `name`?"),
]
THERE = [
    'tool = "shell"\nmatches = {command = "x*"}',
    'tool = "tb__greet"\nmatches = {name = "x*"}',
    'tool = "tb__*"\nmatches = {name = "x*"}',
    'tool = "*"\nmatches = {path = "x*"}',
    'tool = "mcp:*"',
    'tool = "search"',
]


@pytest.fixture
def greeting(haft):
    """A toolbox tool that nobody asked yet what it is."""
    tools = haft.workspace / ".agents" / "tools"
    tools.mkdir(parents=True)
    described = '{"name": "greet", "description": "Greets.", "args": {"name": ["string", "whom"]}}'
    (tools / "greet").write_text(f"#!/bin/sh\n[ $TOOLBOX_ACTION = describe ] && echo '{described}'\n")
    (tools / "greet").chmod(0o755)


def ruled(rules):
    return "".join(f'[[permissions]]\n{rule}\naction = "ask"\n' for rule in rules)


def test_a_rule_for_what_is_not_there_is_reported_where_rules_are_listed_and_tested_and_by_the_doctor(
    haft, own, greeting
):
    own(ruled(rule for rule, _ in MISSING))
    sentences = [sentence for _, sentence in MISSING]
    listed = [each for each in haft("permissions", "list", "--json").json if each["origin"] == "user"]
    assert [each["missing"] for each in listed] == sentences
    shown = haft("permissions", "list").out
    assert all(sentence in shown for sentence in sentences)
    told = [f"{each['source']}: {each['missing']}" for each in listed]
    tested = haft("permissions", "test", "shell", "--command", "ls")
    near = [each for each in told if "did you mean" in each]
    assert tested.err.splitlines() == [f"warning: {each}" for each in near], "others are tools of other workspaces"
    (haft.workspace / "haft.toml").write_text(ruled(['tool = "tb__deploy"']))
    tested = haft("permissions", "test", "shell", "--command", "ls")
    assert tested.err.splitlines()[0] == "warning: haft.toml:1: there is no tool called `tb__deploy` here"
    (haft.workspace / "haft.toml").unlink()
    assert haft("permissions", "test", "shell", "--command", "ls", "-q").err == ""
    batch = haft("permissions", "test", "--batch", "-", stdin='{"tool": "shell", "args": {"command": "ls"}}\n' * 2)
    assert batch.err.count(told[0]) == 1
    found = [each for each in haft("doctor", "--json").json if each["check"] == "permissions"]
    assert [(each["state"], each["detail"]) for each in found] == [("warn", each) for each in told]


def test_a_pattern_for_an_argument_that_a_tool_does_not_take_is_listed_and_told_and_stops_calls(haft, own, greeting):
    own('[[permissions]]\ntool = "tb__greet"\nmatches = {nme = "x*"}\naction = "ask"\n')
    missing = "`tb__greet` has no argument `nme`: did you mean `name`?"
    assert missing in haft("permissions", "list").out
    tested = haft("permissions", "test", "shell", "--command", "ls")
    assert tested.err.startswith(f"error: {OWN}:1: `tb__greet` has no argument `nme`")
    (found,) = [each for each in haft("doctor", "--json").json if each["check"] == "permissions"]
    assert (found["state"], found["detail"]) == ("broken", f"{OWN}:1: {missing}")
    assert found["hint"] == "no call runs until then: `haft permissions edit` opens your own rules"


def test_the_doctor_names_a_rule_once_and_says_which_file_to_mend(haft, own):
    own('[[permissions]]\ntool = "shell"\nmatches = {comand = "x*"}\naction = "ask"\n')
    told = [each for each in haft("doctor", "--json").json if "comand" in each["detail"]]
    assert [(each["check"], each["state"], each["hint"]) for each in told] == [
        ("configuration", "broken", "did you mean `command`?")
    ]
    own("")
    (haft.workspace / "haft.toml").write_text('[[permissions]]\ntool = "shel"\naction = "ask"\n')
    (found,) = [each for each in haft("doctor", "--json").json if each["check"] == "permissions"]
    assert (found["state"], found["hint"]) == ("warn", "the rule is in haft.toml:1")


def test_a_rule_for_what_is_there_or_may_come_is_not_reported(haft, own, greeting):
    own(f'[tools]\ndisable = ["search"]\n{ruled(THERE)}')
    haft("tools", "list")
    assert {each["missing"] for each in haft("permissions", "list", "--json").json} == {None}
    assert "warning" not in haft("permissions", "test", "shell", "--command", "ls").err
    assert not [each for each in haft("doctor", "--json").json if each["check"] == "permissions"]


def test_a_file_that_is_new_is_asked_before_its_tool_is_said_to_be_missing(haft, own, greeting):
    own('[[permissions]]\ntool = "tb__greet"\naction = "ask"\n')
    assert {each["missing"] for each in haft("permissions", "list", "--json").json} == {None}


# Hosts


def test_a_rule_with_hosts_is_written_listed_and_read_again(haft, own):
    path = own("")
    mirror = "mirror.example=10.1.0.0/16,10.2.0.0/16"
    words = [
        "add",
        "allow",
        "--network=registry.example:443,*.example.org",
        "shell",
        f"--network={mirror}",
        "--scratch",
    ]
    assert haft("permissions", *words, "--match", "command=make *").code == 0
    hosts = ["registry.example:443", "*.example.org", mirror]
    grant = tomllib.loads(path.read_text())["permissions"][0]["grant"]
    assert grant == {"network": hosts, "scratch": True}
    assert haft("permissions", "list", "--json").json[0]["grant"]["network"] == hosts
    assert "registry.example:443" in haft("permissions", "list").out
    assert '"network": ["registry.example:443"' in haft("permissions", "test", "shell", "--command", "make x").out


def test_the_word_after_a_bare_network_is_an_argument_of_its_own(haft, own):
    path = own("")
    assert haft("permissions", "add", "allow", "--network", "shell", "--match", "command=make").code == 0
    assert haft("permissions", "add", "reject", "shell", "--message", "--network=x", "--last").code == 0
    allowed, rejected = tomllib.loads(path.read_text())["permissions"]
    assert (allowed["tool"], allowed["grant"]) == ("shell", {"network": True})
    assert rejected["message"] == "--network=x" and "grant" not in rejected


def test_a_wrong_host_in_a_file_is_refused_with_its_place(haft, own):
    own("[[permissions]]\ntool = 'shell'\naction = 'allow'\ngrant = {network = ['a b']}\n")
    said = haft("permissions", "list")
    assert said.code == 2 and "haft.toml" in said.err and "`a b` is no host" in said.err and "`grant`" in said.err


def reach(haft, command, host, *words):
    said = haft("permissions", "test", *words, "shell", "--command", command, "--network", host, "--json", "-q")
    return said.code, said.json["network"]


RULE = '[[permissions]]\ntool = "shell"\nmatches = {{command = "{}"}}\naction = "{}"\ngrant = {{network = {}}}\n'


def test_a_test_says_which_grant_reaches_a_host(haft, own):
    allowed = RULE.format("make *", "allow", '["registry.example:443", "*.example.org:8000-8010"]')
    asked = RULE.format("npm *", "ask", '["registry.example"]')
    own(f'[sandbox]\nnetwork = ["localhost:5432"]\n{allowed}{asked}{RULE.format("git push*", "allow", "true")}')
    code, found = reach(haft, "make all", "Registry.Example")
    assert code == 0, found
    assert found == {
        "host": "registry.example",
        "port": 443,
        "verdict": "allowed",
        "reason": "registry.example:443 is granted",
        "grant": "registry.example:443",
        "by": f"{OWN}:3",
        "toAllow": None,
    }
    assert reach(haft, "make all", "a.example.org:8005")[1]["grant"] == "*.example.org:8000-8010"
    code, found = reach(haft, "npm i", "registry.example:80")
    assert (code, found["verdict"]) == (10, "allowed") and "once the call is approved" in found["reason"]
    code, found = reach(haft, "git push", "anything.example:22")
    assert (code, found["grant"], found["reason"]) == (0, "true", "the whole network is granted")
    code, found = reach(haft, "ls", "localhost:5432")
    assert (code, found["grant"]) == (0, "localhost:5432") and found["by"].startswith("`sandbox.network` (")


def test_a_test_says_who_is_asked_about_a_host_and_what_would_allow_it(haft, own):
    own(
        RULE.format("make *", "allow", '["registry.example:443"]')
        + '[[permissions]]\ntool = "edit_file"\naction = "reject"\n'
    )
    code, found = reach(haft, "make all", "other.example:8080")
    assert (code, found["verdict"], found["toAllow"]) == (10, "asked", "other.example:8080")
    assert "waits for the answer of a person" in found["reason"]
    code, found = reach(haft, "ls", "other.example")
    assert (code, found["verdict"], found["toAllow"]) == (11, "refused", "other.example:443")
    assert "nobody is asked, because the call runs without approval" in found["reason"]
    assert reach(haft, "make all", "[::1]:53")[1]["toAllow"] == "[::1]:53"
    shown = haft("permissions", "test", "shell", "--command", "make all", "--network", "other.example:8080").out
    assert "  network: asked: other.example:8080 is not granted" in shown
    assert "to allow it: `--network=other.example:8080` with the call" in shown
    rejected = haft("permissions", "test", "edit_file", "--network", "a.example", "--json")
    assert rejected.code == 11 and rejected.json["network"]["reason"] == "the call is rejected"
    free = haft("permissions", "test", "write_file", "--network", "a.example", "--json").json["network"]
    assert (free["verdict"], free["reason"]) == ("allowed", "no sandbox confines the tool's own code")
    batch = haft("permissions", "test", "--batch", "-", "--network=a.example", stdin='{"tool": "shell"}\n')
    assert json.loads(batch.out)["network"]["host"] == "a.example"


def test_a_test_says_that_nothing_reaches_a_host_under_never(haft, own):
    own(f'[sandbox]\nnetwork = "never"\n{RULE.format("make *", "allow", "true")}')
    code, found = reach(haft, "make all", "a.example")
    assert (code, found["verdict"], found["toAllow"]) == (11, "refused", None)
    assert "`sandbox.network` is `never`" in found["reason"]


@pytest.mark.parametrize(
    ("host", "why"),
    [
        ("*.example.org", "`*.example.org` is not one host"),
        ("a.example:*", "`a.example:*` is not one host"),
        ("a.example:1-2", "`a.example:1-2` is not one host"),
        ("a.example=10.0.0.0/8", "`a.example=10.0.0.0/8` is not one host"),
        ("@package-indexes", "`@package-indexes` is not the name of a host"),
        ("https://a.example", "`https://a.example` is no host"),
    ],
)
def test_a_test_is_about_one_port_of_one_host(haft, host, why):
    said = haft("permissions", "test", "shell", "--command", "ls", "--network", host)
    assert said.code == 2 and why in said.err


@pytest.mark.parametrize(
    ("network", "state", "detail"),
    [
        ("true", "ok", "every call reaches the whole network: `sandbox.network` ("),
        ('["a.example", "*.b.example"]', "ok", "every call reaches a.example, *.b.example: `sandbox.network` ("),
        ('["*.github.io"]', "broken", "names below `github.io` belong to many owners; name the hosts"),
    ],
)
def test_the_doctor_says_what_every_call_reaches(haft, own, network, state, detail):
    own(f"[sandbox]\nnetwork = {network}\n")
    (found,) = (each for each in haft("doctor", "--json").json if each["check"] == "open network")
    assert found["state"] == state and detail in found["detail"]


# Never the network


def test_under_never_flags_are_refused_and_rules_listed_without_the_network(haft, own):
    rule = '[[permissions]]\ntool = "shell"\nmatches = {command = "true"}\naction = "allow"\ngrant = {network = true}\n'
    own(f'[sandbox]\nnetwork = "never"\n{rule}')
    for option in ("--network", "--network=a.example"):
        refused = haft("tools", "use", "shell", "--command", "ls", option, "--approve")
        assert refused.code == 2 and "no call gets the network: `sandbox.network` is `never`" in refused.err
    listed = haft("permissions", "list", "--json").json[0]
    assert listed["grant"]["network"] is False and listed["counts"]
    assert "without the network: `sandbox.network` is `never`" in listed["why"]
    assert "grants" not in haft("permissions", "test", "shell", "--command", "true", "-q").out
    assert [each["state"] for each in haft("doctor", "--json").json if each["check"] == "network"] in (
        ["ok"],
        ["broken"],
    )
