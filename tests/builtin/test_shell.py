import pytest

from haft.builtin.shell import Shell
from haft.contracts import UNTRACKED, Failure, InvalidArguments, PathEscapes, ToolFailed


def test_a_command_streams_both_its_outputs(call, context):
    answer = call(Shell, command="echo out; echo err >&2")
    assert context.streamed == {"stdout": b"out\n", "stderr": b"err\n"}
    assert (answer.exit_code, answer.failure, answer.text) == (0, None, None)
    assert answer.changes is UNTRACKED


@pytest.mark.parametrize(
    ("command", "code", "message"),
    [
        ("exit 3", 3, "`bash` exited 3"),
        ("kill -9 $$", 137, "`bash` was ended by signal 9 (SIGKILL)"),
        ("bash -c 'kill -TERM $$'; exit $?", 143, "`bash` exited 143: its command was ended by signal 15 (SIGTERM)"),
        ("-c 'echo no option of bash'", 127, "`bash` exited 127"),
    ],
)
def test_how_it_ended_is_said(call, command, code, message):
    answer = call(Shell, command=command)
    assert answer.exit_code == code
    assert answer.failure == Failure("tool-failed", message)


def test_it_runs_in_the_directory_it_is_told(call, context, workspace):
    (workspace / "real").mkdir()
    (workspace / "link").symlink_to("real")
    context.cwd = "real"
    call(Shell, command="pwd")
    call(Shell, command="pwd", cwd=".")
    call(Shell, command="pwd", cwd="link")
    assert context.stdout.split() == [f"{workspace}/real", str(workspace), f"{workspace}/real"]


def test_directories_outside_or_missing_are_refused(call, context, workspace):
    (workspace / "out").symlink_to("..")
    for cwd in ("..", "out", "/"):
        with pytest.raises(PathEscapes):
            call(Shell, command="pwd", cwd=cwd)
    with pytest.raises(ToolFailed, match="does not exist"):
        call(Shell, command="pwd", cwd="missing")
    assert context.launcher.commands == []


def test_variables_are_added_and_the_callers_come_first(call, context):
    context.env = {"A": "host", "B": "host"}
    call(Shell, command="echo $A $B", env={"B": "call"})
    assert context.stdout == "host call\n"


def test_no_start_up_file_is_read(call, context, workspace):
    (workspace / ".bashrc").write_text("echo START-UP")
    (workspace / ".bash_profile").write_text("echo START-UP")
    call(Shell, command="echo fine", env={"HOME": str(workspace)})
    assert context.stdout == "fine\n"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"command": "a\0b"}, "NUL"),
        ({"command": "\ud800"}, "lone surrogate"),
        ({"command": "x" * 200_000}, "write it to a file"),
        ({"command": "true", "env": {"": "x"}}, "cannot be the name"),
        ({"command": "true", "env": {"A=B": "x"}}, "cannot be the name"),
        ({"command": "true", "env": {"A": "\0"}}, "NUL"),
    ],
)
def test_what_cannot_be_started_is_refused_beforehand(call, context, arguments, words):
    with pytest.raises(InvalidArguments, match=words):
        call(Shell, **arguments)
    assert context.launcher.commands == []
