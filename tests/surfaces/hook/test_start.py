"""`start.py` as an agent starts it: with `python -I -S`, and nothing of haft."""

from __future__ import annotations

import concurrent.futures
import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from residents import resident_of

from haft.connecting import AGENTS
from haft.service import HookKind, HookMessageReader, ask_where, encode_hook_message, hook_socket_path
from haft.surfaces.hook import start_hook as start
from haft.surfaces.hook.line import hook_words

BEFORE = b'{"hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":{"command":"ls"}}'
AFTER = b'{"hook_event_name":"PostToolUse","tool_name":"Bash","tool_input":{"command":"ls"}}'


HAFT = [sys.executable, "-m", "haft", "hook"]


def run(
    home: Path, given: bytes = BEFORE, agent: str = "claude-code", words: list[str] | None = None
) -> subprocess.CompletedProcess[bytes]:
    env = {"HAFT_HOME": str(home), "PATH": os.environ["PATH"]}
    return subprocess.run(words or hook_words(agent), input=given, capture_output=True, env=env)


@contextlib.contextmanager
def answering(home: Path, answer: bytes) -> Iterator[list[tuple[bytes, ...]]]:
    """Something that answers at the socket, and the fields that it got."""
    path = hook_socket_path(home)
    os.makedirs(os.path.dirname(path))
    got: list[tuple[bytes, ...]] = []
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listening:
        listening.bind(path)
        listening.listen()

        def serve() -> None:
            connection, _ = listening.accept()
            with connection:
                reader = HookMessageReader()
                while (message := reader.next()) is None:
                    reader.feed(connection.recv(1 << 16))
                got.append(message.fields)
                connection.sendall(answer)

        thread = threading.Thread(target=serve)
        thread.start()
        yield got
        thread.join()


def test_the_answer_is_printed_as_it_came(tmp_path: Path) -> None:
    with answering(tmp_path, b"..." + encode_hook_message(HookKind.ANSWER, b"7", b'{"a":1}', b"told")) as got:
        ended = run(tmp_path)
    assert (ended.returncode, ended.stdout, ended.stderr) == (7, b'{"a":1}', b"told")
    assert got[0][:2] == (b"1", b"claude-code")
    assert got[0][2] == os.getcwd().encode()
    assert got[0][3] == BEFORE


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"...",
        b"garbage",
        b"a12:",
        encode_hook_message(HookKind.ANSWER, b"x", b"", b""),
        encode_hook_message(HookKind.ANSWER),
    ],
)
def test_an_answer_that_is_none_denies(tmp_path: Path, answer: bytes) -> None:
    with answering(tmp_path, answer):
        ended = run(tmp_path)
    assert ended.returncode == 2
    assert ended.stdout == b""
    assert ended.stderr.startswith(start.DENIED)


def test_without_a_state_home_that_can_be_used_the_call_is_denied(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    ended = run(tmp_path / "file")
    assert ended.returncode == 2
    assert ended.stderr.startswith(start.DENIED)


def test_a_hook_whose_code_is_broken_denies(tmp_path: Path) -> None:
    for broken in ("raise SystemExit(0)\n", "def main(:\n", None):
        place = tmp_path / str(hash(broken))
        place.mkdir()
        shutil.copy(hook_words("")[3], place / "start.py")
        if broken is not None:
            (place / "start_hook.py").write_text(broken)
        words = [*hook_words("")[:3], str(place / "start.py"), "claude-code"]
        ended = subprocess.run(words, input=BEFORE, capture_output=True)
        assert ended.returncode == 2
        assert b"could not be loaded" in ended.stderr


def test_a_missing_hook_ends_as_a_denial_does(tmp_path: Path) -> None:
    words = [*hook_words("")[:3], str(tmp_path / "start.py"), "claude-code"]
    ended = subprocess.run(words, input=BEFORE, capture_output=True)
    assert ended.returncode == 2
    assert ended.stderr


def test_the_limits_end_before_those_of_the_agents() -> None:
    limits = {name: agent.hooks.limit_seconds for name, agent in AGENTS.items() if agent.hooks is not None}
    assert {name: seconds + 5 for name, seconds in start.SECONDS.items()} == limits


def with_settings(settings: str) -> list[str]:
    """The words of the hook line, with other settings: tests wait for its limits."""
    words = hook_words("claude-code")
    script = (
        "import sys; sys.argv = sys.argv[1:]; start = {'__name__': 'start', '__file__': sys.argv[0]};"
        "exec(open(sys.argv[0]).read(), start); sys.modules['__main__'].load = start['load'];"
        f"hook = start['load']('start_hook'); {settings}; hook.main()"
    )
    return [*words[:3], "-c", script, *words[3:]]


def test_a_resident_that_hangs_is_denied_in_time(home: Path) -> None:
    run(home)
    process = resident_of(home)
    assert process is not None
    os.kill(process, signal.SIGSTOP)
    try:
        words = with_settings("hook.SILENCE = 1")
        ended = subprocess.run(words, input=BEFORE, capture_output=True, env={"HAFT_HOME": str(home)})
    finally:
        os.kill(process, signal.SIGCONT)
    assert ended.returncode == 2
    assert b"its helper does not answer" in ended.stderr


@contextlib.contextmanager
def living(home: Path) -> Iterator[None]:
    """Something that listens at the socket, and sends every connection signs of life and nothing else."""
    path = hook_socket_path(home)
    os.makedirs(os.path.dirname(path))
    is_over = threading.Event()

    def serve() -> None:
        connection, _ = listening.accept()
        with connection, contextlib.suppress(OSError):
            while not is_over.wait(0.05):
                connection.sendall(b".")

    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listening:
        listening.bind(path)
        listening.listen()
        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield
        finally:
            is_over.set()
            thread.join()


LIMITED = "hook.SECONDS['claude-code'] = 1"


@pytest.mark.parametrize(("given", "code", "said"), [(BEFORE, 2, start.DENIED), (AFTER, 0, b"haft could not record")])
def test_a_resident_that_lives_and_never_decides_is_denied_at_the_limit(
    tmp_path: Path, given: bytes, code: int, said: bytes
) -> None:
    with living(tmp_path):
        words = with_settings(LIMITED)
        ended = subprocess.run(words, input=given, capture_output=True, env={"HAFT_HOME": str(tmp_path)})
    assert (ended.returncode, ended.stdout) == (code, b"")
    assert ended.stderr.startswith(said)
    assert b"it did not decide within 1 seconds" in ended.stderr


def test_an_agent_that_never_closes_the_hooks_input_is_denied_at_the_limit(tmp_path: Path) -> None:
    for given in (b"", BEFORE, AFTER[:20]):
        with subprocess.Popen(
            with_settings(LIMITED),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={"HAFT_HOME": str(tmp_path)},
        ) as process:
            assert process.stdin is not None and process.stdout is not None and process.stderr is not None
            process.stdin.write(given)
            process.stdin.flush()
            assert process.wait() == 2
            assert process.stdout.read() == b""
            assert b"it did not decide within 1 seconds" in process.stderr.read()
    assert not os.listdir(tmp_path), "nothing was started"


def test_an_unknown_agent_is_denied(tmp_path: Path) -> None:
    ended = run(tmp_path, agent="nobody")
    assert ended.returncode == 2
    assert b"it knows no such agent" in ended.stderr


def test_the_command_for_the_files_of_a_project_answers_as_the_line_does(home: Path, tmp_path: Path) -> None:
    with answering(tmp_path / "other", encode_hook_message(HookKind.ANSWER, b"7", b'{"a":1}', b"told")) as got:
        ended = run(tmp_path / "other", words=[*HAFT, "claude-code"])
    assert (ended.returncode, ended.stdout, ended.stderr) == (7, b'{"a":1}', b"told")
    assert got[0][:2] == (b"1", b"claude-code")
    assert got[0][3] == BEFORE
    for given in (b"", b"{", b"[]"):
        one, other = run(home, given), run(home, given, words=[*HAFT, "claude-code"])
        assert (one.returncode, one.stderr) == (other.returncode, other.stderr)
        assert other.returncode == 2


@pytest.mark.parametrize(
    "words", [["nobody"], [], ["shell"], ["shell", "t_1", "ls"], ["--no-such-option"], ["claude-code", "codex"]]
)
def test_the_command_denies_for_words_that_name_no_agent(tmp_path: Path, words: list[str]) -> None:
    ended = run(tmp_path, words=[*HAFT, *words])
    assert (ended.returncode, ended.stdout) == (2, b"")
    assert b"it knows no such agent" in ended.stderr


def test_the_command_denies_if_it_cannot_start(tmp_path: Path) -> None:
    script = "import sys; sys.argv = ['haft', 'hook', 'codex']; sys.executable = '/nowhere'; import haft.__main__ as m"
    ended = run(tmp_path, words=[sys.executable, "-c", f"{script}; m.main()"])
    assert ended.returncode == 2
    assert ended.stderr.startswith(b"haft denied this call, because its hook could not start: FileNotFoundError")


def test_a_failure_after_the_call_denies_nothing_and_says_so(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    ended = run(tmp_path / "file", AFTER)
    assert ended.returncode == 0
    assert ended.stdout == b""
    assert b"could not record the end of this call" in ended.stderr


def test_a_call_whose_arguments_look_like_an_after_event_is_denied(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    given = b'{"hook_event_name":"PreToolUse","tool_input":{"hook_event_name":"PostToolUse"}}'
    assert run(tmp_path / "file", given).returncode == 2


def test_it_imports_neither_json_nor_socket_nor_anything_of_haft(tmp_path: Path) -> None:
    words = hook_words("claude-code")
    listed = subprocess.run(
        [words[0], "-X", "importtime", *words[1:]],
        input=b"",
        capture_output=True,
        env={"HAFT_HOME": "/dev/null", "PATH": os.environ["PATH"]},
    )
    names = {line.rpartition(b"|")[2].strip().decode() for line in listed.stderr.splitlines() if b"|" in line}
    assert names
    assert not names & {"json", "socket", "select", "os", "re", "subprocess"}
    assert not [name for name in names if name.startswith("haft.")]


def test_the_state_home_is_the_one_that_haft_uses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from haft.service import default_home

    home = str(tmp_path)
    for given in (
        {"HOME": home},
        {"HOME": home, "XDG_STATE_HOME": f"{home}/state"},
        {"HOME": home, "XDG_STATE_HOME": "relative"},
        {"HOME": home, "HAFT_HOME": f"{home}/own"},
        {"HOME": home, "HAFT_HOME": "~/own"},
    ):
        script = "import sys; __name__ = 'start'; exec(open(sys.stdin.read()).read()); print(state_home().decode())"
        found = subprocess.run(
            [sys.executable, "-I", "-S", "-c", script], input=start.__file__, env=given, capture_output=True, text=True
        )
        for name in ("HOME", "XDG_STATE_HOME", "HAFT_HOME"):
            monkeypatch.delenv(name, raising=False)
        for name, value in given.items():
            monkeypatch.setenv(name, value)
        assert found.stdout.strip() == default_home(given), found.stderr


def test_the_first_hook_starts_the_resident(home: Path) -> None:
    assert ask_where(home) is None
    run(home)
    assert ask_where(home) == ("resident", "")


@pytest.mark.every_user
def test_hooks_that_come_at_once_start_one_resident(home: Path) -> None:
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        list(pool.map(run, [home] * 4))
    first = resident_of(home)
    run(home)
    assert first is not None
    assert resident_of(home) == first
