"""Processes that outlive their calls, each call above a layer of its own: what is committed, what is held, and what a
process that keeps something open can still reach."""

import asyncio
import logging
import os
import shutil
import sys
import tempfile
from pathlib import Path

import pytest
from tests.sandbox.test_sessions import in_a_loop, yes

from haft import ToolService

pytestmark = [
    pytest.mark.every_user,
    pytest.mark.skipif(sys.platform != "linux", reason="there are no layers elsewhere"),
]

PLUGIN = """
import os, socket

class Plugin:
    def init(self, config):
        return {}

    def get_tool_schemas(self, state):
        parameters = {"type": "object", "properties": {"code": {"type": "string"}}, "required": ["code"]}
        return [{"name": "run", "description": "Runs code.", "parameters": parameters}]

    def execute_tool(self, name, arguments, state, context):
        scope = {"state": state, "context": context}
        exec(arguments["code"], scope)
        return scope.get("result")
"""

MAP = """
import mmap
with open("mapped", "r+b") as file:
    state["map"] = mmap.mmap(file.fileno(), 0)
state["map"][:1] = b"1"
"""


@pytest.fixture(scope="module")
def described(tmp_path_factory):
    """The plugin, and a state home that knows what tools it has."""
    folder = tmp_path_factory.mktemp("layers")
    (folder / "plugin").mkdir()
    (folder / "plugin" / "plugin.py").write_text(PLUGIN)
    (folder / "workspace").mkdir()

    async def ask():
        async with opened(folder / "workspace", folder) as service:
            assert "run" in {one.spec.name for one in service.tools()}

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("haft.sources.brief_run.DESCRIBE_SECONDS", 60.0)
        asyncio.run(ask())
    return folder


@pytest.fixture
def workspace(tmp_path):
    folder = tmp_path / "workspace"
    (folder / "sub").mkdir(parents=True)
    (folder / "mapped").write_bytes(b"0" * 100)
    return folder


@pytest.fixture
def home_elsewhere():
    """A state home on another file system than the workspace, where syncing it writes nothing back of the workspace. A
    sandbox cannot be built there, so that the process works in the workspace itself."""
    home = Path(tempfile.mkdtemp(dir="/dev/shm"))
    yield home
    shutil.rmtree(home, ignore_errors=True)


class Signals:
    """Has a thread of the process do something between two calls."""

    def __init__(self, place, eventually):
        self.place = place
        self._eventually = eventually

    def later(self, code):
        lines = "\n".join(f"    {line}" for line in code.strip().splitlines())
        return f"""
import os, threading, time
def later():
    while not os.path.exists({str(self.place / "go")!r}):
        time.sleep(0.002)
{lines}
    open({str(self.place / "done")!r}, "w").close()
threading.Thread(target=later, daemon=True).start()
"""

    async def given(self):
        (self.place / "go").touch()
        await asyncio.to_thread(self._eventually, (self.place / "done").exists)
        for name in ("go", "done"):
            (self.place / name).unlink()


@pytest.fixture
def signals(tmp_path, eventually):
    (tmp_path / "signals").mkdir()
    return Signals(tmp_path / "signals", eventually)


def opened(workspace, described, grant=None, home=None, keeps_state=True, **settings):
    reference = f"path:{os.path.realpath(described)}/plugin/plugin.py"
    entry = {"plugin": reference, "grant": {"write": ["."]} if grant is None else grant, "keeps_state": keeps_state}
    return ToolService.open(
        workspace,
        home=home or described / "state",
        approver=yes,
        installed=False,
        settings={"plugins": [entry], **settings},
    )


async def run(service, code, **words):
    outcome = await service.call("run", {"code": code}, **words)
    assert outcome.status == "done", outcome.error
    return outcome


def changed(outcome):
    return [one.path for one in outcome.changes.files]


@in_a_loop
async def test_each_call_sees_the_workspace_as_it_is_and_is_committed_when_it_ends(workspace, described):
    async with opened(workspace, described) as service:
        first = await run(service, "open('a', 'w').write('1'); import os; result = [os.getcwd()]")
        assert (first.changes.engine, first.changes.complete, first.changes.state) == ("overlay", True, "committed")
        assert (first.result, changed(first)) == ([str(workspace)], ["a"])
        (workspace / "a").write_text("by a person")
        await service.call("write_file", {"path": "b", "content": "by another run"})
        second = await run(service, "import os; result = [open('a').read(), open('b').read(), sorted(os.listdir())]")
        assert second.result == ["by a person", "by another run", ["a", "b", "mapped", "sub"]]
        assert (second.changes.complete, second.changes.state) == (True, "none")
        assert (await service.undo((await run(service, "open('c', 'w').write('1')")).run_id)).status == "done"
        assert not (await run(service, "import os; result = os.path.exists('c')")).result


@pytest.mark.parametrize("is_layered", [True, False])
@in_a_loop
async def test_what_is_written_through_a_mapping_during_a_call_is_named_or_said_to_be_unknown(
    workspace, described, is_layered, home_elsewhere, signals
):
    shutil.copytree(described / "state" / "definitions", home_elsewhere / "definitions")
    grant = {"write": [".", str(signals.place)]}
    async with opened(workspace, described, grant, None if is_layered else home_elsewhere) as service:
        assert changed(await run(service, MAP)) == ["mapped"]
        await run(service, signals.later("state['map'][:1] = b'2'"))
        await signals.given()  # From here on the page is dirty: writing to it again gives the file no other time.
        for letter in "345":
            before = (workspace / "mapped").read_bytes()
            outcome = await run(service, f"state['map'][:1] = b'{letter}'")
            if (workspace / "mapped").read_bytes() != before:
                assert changed(outcome) == ["mapped"] or not outcome.changes.complete
            else:
                assert not outcome.changes.complete
                assert "mapping of mapped" in outcome.changes.reason
            assert outcome.changes.engine == ("overlay" if is_layered else "snapshot")
        await run(service, "state.pop('map').close()")
        assert not is_layered or (await run(service, "pass")).changes.complete


@in_a_loop
async def test_what_is_written_between_two_calls_is_held_as_a_run_of_its_own_without_protected_paths(
    workspace, described, signals, caplog
):
    (workspace / ".git" / "hooks").mkdir(parents=True)
    (workspace / ".git" / "HEAD").write_text("ref: refs/heads/main")
    write = """
for path in ("a", "sub/b", ".envrc", ".mcp.json", "new/.envrc", "new/c", ".git/hooks/post-commit"):
    os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    try:
        with open(path, "w") as file:
            file.write("between")
    except OSError:
        pass
"""
    grant = {"write": [".", str(signals.place)]}
    with caplog.at_level(logging.WARNING, "haft"):
        async with opened(workspace, described, grant) as service:
            await run(service, signals.later(write))
            await signals.given()
            assert sorted(os.listdir(workspace)) == [".git", "mapped", "sub"]
            outcome = await run(service, "import os; result = [os.path.exists('a'), os.path.exists('.envrc')]")
            assert (outcome.result, outcome.changes.complete, changed(outcome)) == ([False, False], True, [])
            (note,) = outcome.notes
            assert note.startswith("between calls its process wrote a, new, new/c, sub/b (held: ")
            dropped = {".envrc", ".mcp.json", "new/.envrc"}
            assert {*note.partition("); ")[2].partition(" (protected")[0].split(", ")} == dropped
            held = note.partition("haft diff ")[2].partition("`")[0]
            assert "+++ b/new/c" in service.diff(held)
            assert (await service.apply(held)).status == "done"
            assert (workspace / "new" / "c").read_text() == "between"
            assert sorted(os.listdir(workspace / "new")) == ["c"]
            assert not os.listdir(workspace / ".git" / "hooks")
            await run(service, signals.later("open('last', 'w').close()"))
            await signals.given()
    entries = [one for one in service.record.entries() if one["type"] == "between"]
    assert [one["count"] for one in entries] == [7, 1]
    assert "last (held: " in caplog.records[-1].getMessage()
    assert not (workspace / "last").exists()


WATCH = """
import ctypes
libc = ctypes.CDLL(None)
libc.inotify_add_watch(libc.inotify_init(), b".", 2)
"""
OWN_DESCRIPTORS = """
import ctypes, os, threading
ready = threading.Event()
def hide():
    assert ctypes.CDLL(None).unshare(0x400) == 0  # CLONE_FILES
    os.open("hidden", os.O_WRONLY | os.O_CREAT)
    ready.set()
    threading.Event().wait()
threading.Thread(target=hide, daemon=True).start()
ready.wait()
"""
NO_FIRST_THREAD = """
import subprocess, sys
code = '''
import ctypes, threading
kept = open("left", "w")
threading.Thread(target=threading.Event().wait).start()
ctypes.CDLL(None).pthread_exit(0)
'''
state["left"] = subprocess.Popen([sys.executable, "-c", code])
while open(f"/proc/{state['left'].pid}/stat").read().rpartition(")")[2].split()[0] != "Z":
    assert state["left"].poll() is None
"""
HELD = {
    "state['x'] = open('kept', 'w')": "kept, open for writing",
    "import os; state['y'] = os.open('sub', os.O_RDONLY)": "directory sub, open",
    "import subprocess; state['z'] = subprocess.Popen(['sleep', '60'], cwd='sub')": "working directory sub",
    WATCH: "a watch for changes (inotify)",
    MAP: "mapping of mapped",
    OWN_DESCRIPTORS: "hidden, open for writing",
    NO_FIRST_THREAD: "left, open for writing",
}


@in_a_loop
async def test_a_process_that_still_holds_something_of_a_call_is_named_by_this_outcome_and_the_next(
    workspace, described
):
    async with opened(workspace, described) as service:
        for code, words in HELD.items():
            outcome = await run(service, code)
            assert not outcome.changes.complete
            assert words in outcome.changes.reason
        outcome = await run(service, "pass")
        lasting = [words for code, words in HELD.items() if code != WATCH]  # A watch ends with the layer.
        assert all(words in outcome.changes.reason for words in lasting), outcome.changes.reason


@in_a_loop
async def test_a_file_that_is_only_read_and_a_module_that_is_loaded_make_no_call_incomplete(workspace, described):
    (workspace / "module.py").write_text("value = 1")
    async with opened(workspace, described) as service:
        outcome = await run(service, "import sys; sys.path.insert(0, '.'); import module; state['f'] = open('mapped')")
        assert outcome.changes.complete, outcome.changes.reason


@in_a_loop
async def test_a_descriptor_in_flight_writes_into_a_layer_that_nobody_looks_at(workspace, described):
    send = """
import os, socket
state["pair"] = socket.socketpair()
file = os.open("sent", os.O_RDWR | os.O_CREAT)
os.write(file, b"before")
socket.send_fds(state["pair"][0], [b"x"], [file])
os.close(file)
"""
    receive = """
import os, socket
(file,) = socket.recv_fds(state["pair"][1], 1, 1)[1]
os.pwrite(file, b"#!evil", 0)
os.fsync(file)
os.close(file)
"""
    async with opened(workspace, described) as service:
        assert changed(await run(service, send)) == ["sent"]
        assert (workspace / "sent").read_bytes() == b"before"
        assert changed(await run(service, receive)) == []
        assert (workspace / "sent").read_bytes() == b"before"


@in_a_loop
async def test_every_process_of_a_session_moves_to_the_fresh_layer(workspace, described):
    start = """
import subprocess, sys
child = '''
import sys
for line in sys.stdin:
    with open("by-child", "a") as file:
        file.write(line)
    print("ok", flush=True)
'''
state["child"] = subprocess.Popen([sys.executable, "-c", child], stdin=-1, stdout=-1, text=True, bufsize=1)
"""
    ask = "state['child'].stdin.write('x' + chr(10)); state['child'].stdout.readline()"
    async with opened(workspace, described) as service:
        await run(service, start)
        for count in (1, 2):
            outcome = await run(service, ask)
            assert (outcome.changes.complete, changed(outcome)) == (True, ["by-child"]), outcome.changes.reason
            assert (workspace / "by-child").read_text() == "x\n" * count


@in_a_loop
async def test_a_cancelled_call_leaves_nothing_and_the_next_has_a_fresh_process(workspace, described):
    wait = "import threading; open('a', 'w').close(); print('begun', flush=True); threading.Event().wait()"
    async with opened(workspace, described) as service:
        await run(service, "state['kept'] = 1")
        running = service.call("run", {"code": wait})
        async for event in running:
            if event.type == "stdout":
                running.cancel()
        assert (await running).status == "cancelled", (await running).error
        outcome = await run(service, "result = [*state]")
        assert (outcome.result, outcome.changes.complete) == ([], True)
    assert sorted(os.listdir(workspace)) == ["mapped", "sub"]


@in_a_loop
async def test_a_process_that_dies_between_two_calls_is_started_again(workspace, described, signals):
    grant = {"write": [".", str(signals.place)]}
    done = str(signals.place / "done")
    async with opened(workspace, described, grant) as service:
        await run(service, signals.later(f"open('a', 'w').close(); open({done!r}, 'w').close(); os._exit(1)"))
        await signals.given()
        assert changed(await run(service, "open('b', 'w').close()")) == ["b"]
    assert sorted(os.listdir(workspace)) == ["b", "mapped", "sub"]


@in_a_loop
async def test_a_grant_with_a_single_call_of_a_plugin_that_keeps_a_state_is_refused_with_the_line_to_write(
    workspace, described
):
    async with opened(workspace, described) as service:
        outcome = await service.call("run", {"code": "pass"}, grants={"network": True, "env": ["CI"]})
        assert (outcome.status, outcome.error.code) == ("error", "bad-usage")
        reference = f"path:{os.path.realpath(described)}/plugin/plugin.py"
        line = f'{{plugin = "{reference}", grant = {{network = true, env = ["CI"], write = ["."]}}}}'
        assert line in outcome.error.hint
        (workspace / ".envrc").touch()
        words = {"write": [str(workspace.resolve() / ".envrc")], "scratch": True}
        outcome = await service.call("run", {"code": "pass"}, grants=words)
        assert f'{{plugin = "{reference}", grant = {{write = [".", ".envrc"]}}}}' in outcome.error.hint
        outcome = await service.call("run", {"code": "pass"}, grants={"scratch": True})
        assert outcome.error.hint == "call it without grants"


@in_a_loop
async def test_a_grant_with_a_single_call_is_served_by_a_process_started_for_it_where_no_state_is_kept(
    workspace, described, monkeypatch
):
    monkeypatch.setenv("GRANTED", "value")
    ask = (
        "import os; state.setdefault('calls', []).append(1); result = [len(state['calls']), os.environ.get('GRANTED')]"
    )
    async with opened(workspace, described, keeps_state=False) as service:
        assert (await run(service, ask)).result == [1, None]
        assert (await run(service, ask)).result == [2, None]
        alone = await run(service, ask + "; open('alone', 'w').close()", grants={"env": ["GRANTED"]})
        assert (alone.result, alone.sandbox.env) == ([1, "value"], ("GRANTED",))
        assert (alone.changes.complete, changed(alone)) == (True, ["alone"])
        assert (await run(service, ask)).result == [3, None], "the process that stays is another one"
    async with opened(workspace, described, {}, keeps_state=False) as service:
        closed = await service.call("run", {"code": "open('b', 'w')"}, grants={"env": ["GRANTED"]})
        assert closed.error.code == "sandbox-denied", "what is granted to a call opens nothing else"


@in_a_loop
async def test_processor_time_is_counted_for_each_call(workspace, described):
    burn = "import time; began = time.process_time()\nwhile time.process_time() < began + {}: pass"
    async with opened(workspace, described, **{"limits.cpu_seconds": 1.5}) as service:
        for _ in range(3):
            await run(service, burn.format(0.6))
        outcome = await service.call("run", {"code": burn.format(30)})
        assert (outcome.status, outcome.limits.hit) == ("error", "cpu_seconds"), outcome.error


@in_a_loop
async def test_a_call_that_a_session_makes_sees_its_changes_and_lands_in_its_layer(workspace, described):
    code = """
with open("mine", "w") as file:
    file.write("1")
seen = context.call("shell", {"command": "cat mine; echo 2 > theirs"})
context.call("write_file", {"path": "written", "content": "3"})
result = [seen.output.strip(), open("theirs").read(), open("written").read()]
"""
    async with opened(workspace, described) as service:
        for _ in range(2):
            outcome = await run(service, code)
            assert (outcome.result, outcome.changes.complete) == (["1", "2\n", "3"], True), outcome.changes.reason
            assert (workspace / "theirs").read_text() == "2\n"
            assert (await service.undo(outcome.run_id)).status == "done"
            assert sorted(os.listdir(workspace)) == ["mapped", "sub"]


@in_a_loop
async def test_a_plugin_that_may_write_cannot_call_a_tool_of_itself(workspace, described):
    call = "found = context.call('run', {'code': 'pass'}); result = [found.error.code, found.error.message]"
    async with opened(workspace, described) as service:
        code, message = (await run(service, call)).result
        assert code == "deadlock"
        assert "its process answers one call at a time" in message
