"""`haft serve mcp` as a process: its first answer, both eras on one pipe, and its end."""

import asyncio
import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import sampling
from haft.service import default_home
from haft.surfaces.mcp import first_answer
from haft.surfaces.mcp.command_line import serves_stdio

META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
}
DISCOVER = {"jsonrpc": "2.0", "id": 1, "method": "server/discover", "params": {"_meta": META}}
INITIALIZE = {
    "jsonrpc": "2.0",
    "id": "one",
    "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}},
}
INITIALIZED = {"jsonrpc": "2.0", "method": "notifications/initialized"}
SECONDS = 60


class Served:
    """A running `haft serve mcp`, and its messages."""

    def __init__(self, workspace, home, *options, runs=None):
        command = [sys.executable, "-m", "haft", "-w", str(workspace), "serve", "mcp", *options]
        if runs is not None:
            command = [sys.executable, "-c", runs, *command[3:]]
        environment = {**os.environ, "HAFT_HOME": str(home)}
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment
        )
        self._rest = b""

    def send(self, *messages):
        for message in messages:
            line = message if isinstance(message, bytes) else json.dumps(message).encode()
            self.process.stdin.write(line + b"\n")
        self.process.stdin.flush()

    def read(self):
        end = time.monotonic() + SECONDS
        while b"\n" not in self._rest:
            ready, _, _ = select.select([self.process.stdout], [], [], max(0, end - time.monotonic()))
            assert ready, "no answer"
            data = os.read(self.process.stdout.fileno(), 1 << 16)
            assert data, self.process.stderr.read()
            self._rest += data
        line, _, self._rest = self._rest.partition(b"\n")
        return json.loads(line)

    def ask(self, message):
        self.send(message)
        return self.read()

    def call(self, name, arguments, number=9):
        params = {"name": name, "arguments": arguments, "_meta": META}
        return {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}

    def ended(self):
        code = self.process.wait(SECONDS)
        assert b"Traceback" not in self.process.stderr.read()
        return code


@pytest.fixture
def started(places):
    begun = []

    def start(*options, **how):
        begun.append(Served(places["workspace"], places["home"], *options, **how))
        return begun[-1]

    yield start
    for served in begun:
        served.process.kill()
        served.process.wait()
        for stream in (served.process.stdin, served.process.stdout, served.process.stderr):
            with contextlib.suppress(OSError):
                stream.close()


# The package is never imported: what answers is what was kept.
WITHOUT_THE_PACKAGE = """
import sys
class Refused:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("mcp", "pydantic", "click", "anyio"):
            import time
            time.sleep(1000)
sys.meta_path.insert(0, Refused())
from haft.__main__ import main
main()
"""


def test_the_kept_first_answers_are_the_packages_own(started, places):
    fresh = started()
    discovered = fresh.ask(DISCOVER)
    initialized = fresh.ask(INITIALIZE)
    fresh.process.stdin.close()
    assert fresh.ended() == 0
    kept = places["home"] / "mcp" / "first-answer.json"
    assert kept.stat().st_mode & 0o077 == 0
    quick = started(runs=WITHOUT_THE_PACKAGE)
    assert quick.ask(DISCOVER) == discovered
    assert quick.ask(INITIALIZE) == initialized
    assert initialized["result"]["protocolVersion"] == "2025-06-18"
    assert discovered["result"]["instructions"] == initialized["result"]["instructions"]


def test_both_eras_share_one_pipe_and_every_request_is_answered_once(started):
    for _start in range(2):  # The second start answers from the kept answers.
        served = started()
        served.send(DISCOVER, b"no JSON", INITIALIZE, INITIALIZED)
        first, second = served.read(), served.read()
        assert {json.dumps(first["id"]), json.dumps(second["id"])} == {"1", '"one"'}
        listed = served.ask({"jsonrpc": "2.0", "id": 2, "method": "tools/list"})
        assert listed["id"] == 2 and "read_file" in [tool["name"] for tool in listed["result"]["tools"]]
        assert "resultType" not in listed["result"]
        modern = served.ask({"jsonrpc": "2.0", "id": 3, "method": "tools/list", "params": {"_meta": META}})
        assert modern["id"] == 3 and modern["result"]["resultType"] == "complete"
        served.process.stdin.close()
        assert served.ended() == 0
        assert served.process.stdout.read() == b""


@pytest.mark.parametrize("end", sampling.some(["eof", signal.SIGINT, signal.SIGTERM], 1, "the end of a server"))
def test_it_ends_with_everything_that_it_started(started, places, end):
    (places["home"]).mkdir()
    (places["workspace"] / "haft.toml").write_text('[[permissions]]\ntool = "shell"\naction = "allow"\n')
    _trust(places)
    served = started()
    served.ask(DISCOVER)
    served.send(served.call("shell", {"command": "echo $$ > pid; exec sleep 1000"}))
    deadline = time.monotonic() + SECONDS
    while not (children := _sleepers(served.process.pid)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert children
    if end == "eof":
        served.process.stdin.close()
    else:
        served.process.send_signal(end)
    assert served.ended() == 0
    while any(os.path.exists(f"/proc/{child}") for child in children) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not any(os.path.exists(f"/proc/{child}") for child in children)


def _sleepers(parent):
    """The processes below `parent` that sleep."""
    return [child for child, name in _below(parent).items() if name == "sleep"]


def _below(parent):
    """The processes below `parent`, and their names."""
    parents, names = {}, {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            with contextlib.suppress(OSError), open(f"/proc/{entry}/stat") as file:
                name, _, rest = file.read().partition(" (")[2].rpartition(") ")
                parents[int(entry)], names[int(entry)] = int(rest.split()[1]), name
    return {child: names[child] for child in names if child != parent and _is_below(child, parent, parents)}


def _is_below(child, parent, parents):
    while child in parents and child != parent:
        child = parents[child]
    return child == parent


HOSTED = Path(__file__).parents[2] / "sources" / "mcp" / "servers.py"


@pytest.mark.parametrize("end", ["eof", signal.SIGTERM])
def test_it_ends_with_a_hosted_server_even_one_that_ignores_signals(started, tmp_path, monkeypatch, end):
    config = tmp_path / "config" / "haft" / "haft.toml"
    config.parent.mkdir(parents=True)
    config.write_text(
        f'[providers.mine]\ncommand = "{sys.executable}"\nargs = ["{HOSTED}", "ignores-signals"]\n'
        '[[permissions]]\ntool = "mcp__mine__echo"\naction = "allow"\n'
    )
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    served = started()
    answer = served.ask(served.call("mcp__mine__echo", {"text": "here"}))
    assert answer["result"]["content"][0]["text"] == "[MCP server mine] here"
    children = _below(served.process.pid)
    lines = [Path(f"/proc/{child}/cmdline").read_bytes() for child in children]
    assert any(b"ignores-signals" in line for line in lines)
    with contextlib.ExitStack() as stack:
        living = select.poll()
        ends = {os.pidfd_open(child) for child in children}
        for descriptor in ends:
            stack.callback(os.close, descriptor)
            living.register(descriptor, select.POLLIN)
        if end == "eof":
            served.process.stdin.close()
        else:
            served.process.send_signal(end)
        assert served.ended() == 0
        while ends and (found := living.poll(SECONDS * 1000)):  # A descriptor can be read when its process has ended.
            for descriptor, _event in found:
                living.unregister(descriptor)
                ends.remove(descriptor)
        assert ends == set()


OWN = ["batch", "undo", "redo", "diff", "output", "wait", "cancel", "runs", "search_tools"]
BUILT_IN = ["edit_file", "find_files", "list_directory", "read_file", "search", "shell", "skill", "write_file"]
MAY_CHANGE = {"edit_file", "shell", "write_file", "undo", "redo"}


@pytest.mark.parametrize(
    ("options", "names"),
    [
        ([], {*BUILT_IN, *OWN}),
        (["--lazy"], {"search_tools", "call_tool"}),
        (["--profile", "read-only"], {*BUILT_IN, *OWN} - MAY_CHANGE),
        (["--tools", "*_file", "--tools", "sh*"], {"edit_file", "read_file", "write_file", "shell", *OWN}),
        (["--lazy", "--profile", "read-only"], {"search_tools", "call_tool"}),
    ],
    ids=["no option", "lazy", "read-only", "globs", "lazy and read-only"],
)
def test_the_options_decide_which_tools_are_listed_and_what_the_instructions_say(started, options, names):
    served = started(*options)
    said = served.ask(DISCOVER)["result"]["instructions"]
    listed = served.ask({"jsonrpc": "2.0", "id": 2, "method": "tools/list", "params": {"_meta": META}})
    assert {tool["name"] for tool in listed["result"]["tools"]} == names
    assert "approval" in said and "call `wait`" in said
    assert ("`undo`" in said) == ("read-only" not in options)
    assert ("`call_tool`" in said) == ("--lazy" in options)
    served.process.stdin.close()
    assert served.ended() == 0


def _trust(places):
    environment = {**os.environ, "HAFT_HOME": str(places["home"])}
    command = [sys.executable, "-m", "haft", "-w", str(places["workspace"]), "trust", "--yes"]
    subprocess.run(command, env=environment, check=True, capture_output=True)


def test_what_else_is_written_to_stdout_goes_to_stderr(started, places):
    (places["workspace"] / "haft.toml").write_text('[[permissions]]\ntool = "shell"\naction = "allow"\n')
    served = started(runs="import os\nfrom haft.__main__ import main\nos.write(1, b'before\\n')\nmain()")
    assert os.read(served.process.stdout.fileno(), 100) == b"before\n"
    listed = served.ask({"jsonrpc": "2.0", "id": 3, "method": "tools/list", "params": {"_meta": META}})
    assert listed["id"] == 3
    served.process.stdin.close()
    assert served.process.wait(SECONDS) == 0
    said = served.process.stderr.read().decode()
    assert "haft.toml wait" in said or "haft.toml waits" in said
    assert served.process.stdout.read() == b""


def test_a_client_of_an_early_version_gets_no_links(started, places):
    served = started()
    params = {**INITIALIZE["params"], "protocolVersion": "2024-11-05"}
    answer = served.ask({**INITIALIZE, "params": params})
    assert answer["result"]["protocolVersion"] == "2024-11-05"
    served.send(INITIALIZED)
    (places["workspace"] / "long.txt").write_text("x" * 200_000)
    read = {"name": "read_file", "arguments": {"path": "long.txt"}}
    result = served.ask({"jsonrpc": "2.0", "id": 5, "method": "tools/call", "params": read})["result"]
    assert {block["type"] for block in result["content"]} == {"text"}
    assert "structuredContent" not in result


def test_a_process_without_stdin_ends_at_once(places):
    command = f"exec {sys.executable} -m haft -w {places['workspace']} serve mcp <&-"
    environment = {**os.environ, "HAFT_HOME": str(places["home"])}
    done = subprocess.run(["bash", "-c", command], env=environment, capture_output=True, timeout=SECONDS)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_the_end_of_stdin_ends_the_process_also_while_it_imports(started):
    served = started(runs=WITHOUT_THE_PACKAGE)
    served.process.stdin.close()
    assert served.ended() == 0


@pytest.mark.parametrize(
    ("words", "serves"),
    [
        ("serve mcp", True),
        ("-w . serve --quiet mcp -q", True),
        ("--json serve --workspace=. mcp --tools x* --lazy --tools=y --profile read-only --profile=read-only", True),
        ("serve mcp --http 127.0.0.1:1", False),
        ("serve mcp --htp x", False),
        ("serve mcp --help", False),
        ("serve --lazy mcp", False),
        ("serve mcp --lazy=yes", False),
        ("serve mcp --profile x", False),
        ("serve mcp --profile", False),
        ("serve mcp --tools --lazy", False),
        ("serve mcp --allow-host x", False),
        ("serve mcp stray", False),
        ("serve mcp mcp", False),
        ("serve mcp -w missing", False),
        ("serve mcp -w ./a-file", False),
        ("serve mcp --workspace=", False),
        ("serve mcp -w /proc", False),
        ("tools use serve mcp", False),
        ("-w serve mcp", False),
        ("serve", False),
        ("", False),
    ],
)
def test_only_a_right_command_line_of_a_server_on_stdin_is_answered_before_it_is_parsed(
    words, serves, tmp_path, monkeypatch
):
    monkeypatch.setenv("HAFT_HOME", str(tmp_path / "state"))
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "a-file").touch()
    monkeypatch.chdir(tmp_path / "project")
    assert serves_stdio(words.split()) is serves


def test_without_a_workspace_nothing_is_answered_before_the_command_line_is_parsed(tmp_path, monkeypatch):
    monkeypatch.setenv("HAFT_HOME", str(tmp_path))
    monkeypatch.chdir("/")
    assert not serves_stdio(["serve", "mcp"])


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (["--htp", "x"], b"no option `--htp`"),
        (["--profile", "x"], b"`--profile` must be one of read-only, not `x`"),
        (["--http", "x"], b"`x` is not an address to listen on"),
        (["-w", "/nonexistent"], b"the workspace /nonexistent is not a directory"),
        (["stray"], b"takes no argument `stray`"),
    ],
)
def test_a_wrong_command_line_is_an_error_and_the_client_gets_no_answer(words, error, started, places):
    kept = started()
    assert kept.ask(INITIALIZE)["result"]
    kept.process.stdin.close()
    assert kept.ended() == 0
    wrong = started(*words)
    with contextlib.suppress(BrokenPipeError):
        wrong.send(INITIALIZE)
        wrong.process.stdin.close()
    assert wrong.process.stdout.read() == b""
    said = wrong.process.stderr.read()
    assert error in said and b"haft serves MCP" not in said
    assert wrong.process.wait(SECONDS) == 2


@pytest.mark.parametrize(
    "change",
    [
        {"method": "tools/list"},
        {"params": {}},
        {"params": {"_meta": {**META, "io.modelcontextprotocol/protocolVersion": "2099-01-01"}}},
        {"params": {"_meta": {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}}},
    ],
)
def test_the_package_answers_whatever_is_not_as_it_should_be(change):
    kept = {"discover": {"supportedVersions": ["2026-07-28"]}, "initialize": {}, "handshakes": ["2025-11-25"]}
    assert first_answer.kept_result(kept, DISCOVER) == kept["discover"]
    assert first_answer.kept_result(kept, {**DISCOVER, **change}) is None
    params = INITIALIZE["params"]
    assert first_answer.kept_result(kept, INITIALIZE) == {"protocolVersion": "2025-11-25"}
    for key in params:
        assert first_answer.kept_result(kept, {**INITIALIZE, "params": {**params, key: None}}) is None


def test_kept_answers_of_other_versions_and_options_do_not_count(tmp_path):
    answers = {"discover": {}, "initialize": {}, "handshakes": []}
    key = first_answer.key_of(["serve", "mcp"])
    first_answer.save_kept(str(tmp_path), key, answers)
    assert first_answer.load_kept(str(tmp_path), key) == {"key": key, **answers}
    assert first_answer.load_kept(str(tmp_path), ["other", *key[1:]]) is None
    assert first_answer.load_kept(str(tmp_path), first_answer.key_of(["serve", "mcp", "--lazy"])) is None
    (tmp_path / "mcp" / "first-answer.json").write_text("{")
    assert first_answer.load_kept(str(tmp_path), key) is None
    assert default_home({"HAFT_HOME": str(tmp_path)}) == str(tmp_path)


def test_unusual_values_survive_the_way_to_and_from_the_client():
    from haft.surfaces.mcp.stdio import line_of, message_of

    huge, odd = 2**70, "\ud800"
    line = json.dumps({**DISCOVER, "params": {"n": huge, "text": odd}}).encode()
    message = message_of(line).message
    assert message.params == {"n": huge, "text": odd}
    assert isinstance(message_of(b"[" * 100_000), Exception)
    assert isinstance(message_of(b'{"jsonrpc": "2.0", "id": null, "method": 1}'), Exception)
    from mcp_types import ErrorData, JSONRPCError, JSONRPCResponse

    answer = JSONRPCResponse(jsonrpc="2.0", id=1, result={"n": huge, "text": odd})
    assert json.loads(line_of(answer)) == {"jsonrpc": "2.0", "id": 1, "result": {"n": huge, "text": odd}}
    failed = JSONRPCError(jsonrpc="2.0", id=1, error=ErrorData(code=-1, message=odd))
    assert json.loads(line_of(failed))["error"]["message"] == odd


def test_a_client_that_does_not_read_delays_nobody(tmp_path):
    from haft.surfaces.mcp.stdio import Outgoing

    async def main():
        reading, writing = os.pipe()
        outgoing = Outgoing(writing)
        line = b"x" * 999_999 + b"\n"
        outgoing.write(line)
        outgoing.write(line)
        await asyncio.sleep(0)  # The loop goes on although the pipe is full.
        data = b""
        while len(data) < 2 * len(line):
            data += await asyncio.to_thread(os.read, reading, 1 << 16)
        assert data == line * 2
        os.close(reading)
        outgoing.write(line)
        outgoing.write(line)
        os.close(writing)

    asyncio.run(main())


def test_a_message_that_comes_in_pieces_is_put_together_and_one_too_long_is_dropped(monkeypatch):
    from haft.surfaces.mcp import stdio

    monkeypatch.setattr(stdio, "LONGEST_LINE", 1000)

    async def main():
        incoming = stdio.Incoming(-1)
        line = json.dumps(DISCOVER).encode() + b"\n"
        for at in range(len(line)):
            incoming.feed(line[at : at + 1])
        incoming.feed(b"y" * 900)
        incoming.feed(b"y" * 900)
        incoming.feed(b"y" * 900 + b"\n" + line + b"\n" + line[:5])
        incoming.feed(line[5:])
        incoming.end()
        return [item.message.method async for item in incoming]

    assert asyncio.run(main()) == ["server/discover"] * 3


def test_a_request_in_a_wrong_form_is_answered_and_those_after_it_too(started):
    served = started()
    wrong = [
        {"jsonrpc": "2.0", "id": "a", "method": "ping", "cls": 1},
        {"jsonrpc": "2.0", "id": "b", "method": "ping", "params": [1]},
        {"jsonrpc": "2.0", "id": "c", "method": "ping", "_fields_set": 1},
    ]
    served.send(*wrong, {"jsonrpc": "2.0", "id": 9, "method": "ping"})
    answers = {found["id"]: found for found in (served.read() for _ in range(4))}
    assert answers["b"]["error"]["code"] == -32600
    assert answers.keys() == {"a", "b", "c", 9} and "result" in answers[9]


def test_a_long_message_is_put_together_once():
    from haft.surfaces.mcp import stdio

    async def main():
        incoming = stdio.Incoming(-1)
        for _ in range(20_000):  # 20 MB: with a copy for each piece, 200 GB would be copied.
            incoming.feed(b" " * 1000)
        incoming.feed(json.dumps(DISCOVER).encode() + b"\n")
        return (await incoming.receive()).message.method

    assert asyncio.run(main()) == "server/discover"


def test_haft_reads_no_more_requests_while_the_client_reads_no_answers(monkeypatch):
    from haft.surfaces.mcp import stdio

    monkeypatch.setattr(stdio, "MOST_UNREAD", 100_000)

    async def main():
        requests, sending = os.pipe()
        reading, answers = os.pipe()
        outgoing = stdio.Outgoing(answers)
        incoming = stdio.Incoming(requests, outgoing)
        outgoing.write(b"x" * 300_000)
        incoming.start()
        line = json.dumps(DISCOVER).encode() + b"\n"
        os.write(sending, line)
        await incoming.receive()
        os.write(sending, line)
        await asyncio.sleep(0.2)
        assert not incoming._waiting
        left = 300_000
        while left:
            left -= len(await asyncio.to_thread(os.read, reading, left))
        assert (await asyncio.wait_for(incoming.receive(), 10)).message.method == "server/discover"
        outgoing.write(b"x" * 300_000)
        os.write(sending, line * 3)
        os.close(sending)
        return [item async for item in incoming]

    assert len(asyncio.run(main())) <= 3


def test_only_the_option_itself_counts_for_the_kept_answers():
    plain = first_answer.key_of(["serve", "mcp"])
    assert first_answer.key_of(["-w", "/read-only", "serve", "mcp", "--tools", "x-read-only"]) == plain
    for words in (["--profile", "read-only"], ["--profile=read-only"]):
        assert first_answer.key_of(["serve", "mcp", *words])[-1] == "-read-only"


BUSY = """
import sys, threading, time
import haft.surfaces.mcp.offers.own_tools as own
def stuck(*_given, **_named):
    sys.stderr.write("stuck\\n")
    time.sleep(1000)
import haft.service
haft.service.search = stuck
from haft.__main__ import main
main()
"""


@pytest.mark.parametrize("end", ["stdin", signal.SIGTERM])
def test_a_thread_that_does_not_end_holds_nothing_up(started, end):
    served = started(runs=BUSY)
    params = {"name": "search_tools", "arguments": {"query": "x"}, "_meta": META}
    served.send({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
    assert served.ask({"jsonrpc": "2.0", "id": 2, "method": "tools/list", "params": {"_meta": META}})["id"] == 2
    if end == "stdin":
        served.process.stdin.close()
    else:
        served.process.send_signal(end)
    assert served.ended() == 0


@pytest.mark.parametrize(
    ("params", "has_answer"),
    [
        ({"capabilities": {"roots": {"listChanged": True}, "elicitation": {"form": {}, "url": {}}}}, True),
        ({"clientInfo": {"name": "x", "version": "1", "title": "X"}, "_meta": {"progressToken": 1}}, True),
        ({"capabilities": {"roots": 5}}, False),
        ({"capabilities": {"roots": {"listChanged": {}}}}, False),
        ({"capabilities": {"elicitation": {"form": True}}}, False),
        ({"capabilities": {"unheard": {}}}, False),
        ({"clientInfo": {"name": "x", "version": "1", "icons": 3}}, False),
        ({"clientInfo": {"name": "x", "version": "1", "title": 3}}, False),
        ({"_meta": 5}, False),
        ({"_meta": {"progressToken": [1]}}, False),
    ],
)
def test_kept_answers_are_for_requests_that_the_package_would_not_refuse(params, has_answer):
    kept = {"discover": {"supportedVersions": ["2026-07-28"]}, "initialize": {}, "handshakes": ["2025-11-25"]}
    changed = {**INITIALIZE, "params": {**INITIALIZE["params"], **params}}
    assert (first_answer.kept_result(kept, changed) is not None) == has_answer
    meta = {**META, **params.get("_meta", {})} if isinstance(params.get("_meta", {}), dict) else 5
    for key in ("capabilities", "clientInfo"):
        if key in params:
            name = "clientCapabilities" if key == "capabilities" else key
            meta[f"io.modelcontextprotocol/{name}"] = params[key]
    discover = {**DISCOVER, "params": {"_meta": meta}}
    assert (first_answer.kept_result(kept, discover) is not None) == has_answer
