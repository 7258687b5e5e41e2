"""Isolated tools: found by name, run in a process of their own, and otherwise like any function."""

import asyncio
import functools
import os
import subprocess
import sys
import textwrap
import types
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from haft import ToolService
from haft.contracts import Answer, BadConfig, Exit, InvalidArguments, LimitExceeded, Limits
from haft.sources.python import PythonTool, tool
from haft.sources.python.frames import FrameReader, FrameWriter
from haft.sources.python.isolated import LARGEST_MESSAGE, Listener, search_path

sys.path.insert(0, str(Path(__file__).parent))
import isolated_tools

every_user = pytest.mark.every_user


def isolated(function, **claims):
    return tool(isolated=True, **claims)(function)


@pytest.fixture
def call(tmp_path):
    """Call one isolated tool through everything, approved."""
    (tmp_path / "workspace").mkdir()

    async def scenario(function, arguments, act, **claims):
        made = function if isinstance(function, PythonTool) else isolated(function, **claims)
        async with ToolService.open(
            tmp_path / "workspace",
            home=tmp_path / "home",
            tools=[made],
            approver=lambda request: True,
            installed=False,
        ) as service:
            run = service.call(made.spec.name, arguments)
            events = []
            async for event in run:
                events.append(event)
                if act is not None:
                    act(run, event)
            return await run, events

    def call(function, arguments=None, act=None, **claims):
        return asyncio.run(asyncio.wait_for(scenario(function, arguments or {}, act, **claims), 60))

    return call


# What it is.


def test_the_spec_differs_in_nothing_but_where_it_runs():
    plain, apart = tool(isolated_tools.add).spec, isolated(isolated_tools.add).spec
    assert (plain.hosting, apart.hosting) == ("in-process", "per-call")
    assert plain.digest != apart.digest
    assert replace(apart, hosting="in-process", digest=plain.digest) == plain


def test_the_decorated_function_stays_the_function():
    assert isolated(isolated_tools.add)(1, 2) == 3


@pytest.mark.parametrize(
    ("made", "why"),
    [
        (lambda a: a, "a lambda"),
        (functools.partial(isolated_tools.add, b=1), "a partial"),
        ([].append, "no name in a module"),
        (isolated_tools.Point(x=1).model_dump, "bound to an object"),
    ],
)
def test_what_a_worker_could_not_find_is_refused_when_described(made, why):
    with pytest.raises(BadConfig, match=why) as raised:
        _ = isolated(made, name="t").spec
    assert "at the top level of a module" in raised.value.hint


def test_inner_functions_and_methods_are_refused_when_described():
    def inner(): ...

    class Greeter:
        @tool(isolated=True)
        def greet(self, name: str) -> str:
            return name

    for made, why in ((isolated(inner), "inside a function"), (Greeter().greet, "bound to an object")):
        with pytest.raises(BadConfig, match=why):
            _ = made.spec
    with pytest.raises(BadConfig, match="is a method"):
        _ = Greeter.greet.spec


def test_a_function_whose_name_another_thing_has_is_refused(monkeypatch):
    made = isolated(isolated_tools.add)
    monkeypatch.setattr(isolated_tools, "add", isolated_tools.untyped)
    with pytest.raises(BadConfig, match="`isolated_tools` has another object, or none"):
        _ = made.spec
    monkeypatch.delattr(isolated_tools, "add")
    with pytest.raises(BadConfig, match="another object, or none"):
        _ = made.spec


# What it does.


@pytest.mark.parametrize(
    ("function", "arguments"), isolated_tools.ALIKE, ids=[each.__name__ for each, _ in isolated_tools.ALIKE]
)
def test_it_answers_as_it_would_in_the_hosts_process(call, function, arguments):
    here, _ = call(tool(function), arguments)
    apart, _ = call(function, arguments)
    for field in ("status", "result", "error", "exit_code", "output", "stderr", "truncated", "output_bytes"):
        assert getattr(apart, field) == getattr(here, field), field


@every_user
def test_it_runs_in_a_process_of_its_own(call, tmp_path):
    outcome, _ = call(isolated_tools.where)
    assert outcome.result["pid"] != os.getpid()
    assert outcome.result["cwd"] == os.path.realpath(tmp_path / "workspace")
    assert outcome.result["thread"] is True
    assert outcome.result["stdin"] == ""


def test_pydantic_is_imported_only_for_tools_that_need_it(call, tmp_path, monkeypatch):
    (tmp_path / "lean.py").write_text(
        "import sys\n"
        "from haft.contracts import ToolContext\n"
        "def lean(a: int, b: list[str] | None = None, *, context: ToolContext) -> dict[str, bool]:\n"
        "    context.progress('x')\n"
        "    return {name: name in sys.modules for name in ('pydantic', 'asyncio', 'haft.service')}\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    import lean

    outcome, _ = call(lean.lean, {"a": 1})
    assert outcome.result == {"pydantic": False, "asyncio": False, "haft.service": False}


def test_prints_messages_and_output_arrive_in_order(call):
    outcome, events = call(isolated_tools.speak)
    told = [
        event.facts.get("text", event.facts.get("message")) for event in events if event.type in ("stdout", "progress")
    ]
    expected = "".join(f"print {step}step {step} and output {step}\n" for step in range(20))
    assert "".join(told) == expected + outcome.who
    assert outcome.stderr == "".join(f"error {step}" for step in range(20)) + "at last\n"
    progress = [event.facts for event in events if event.type == "progress"]
    assert progress[10] == {"message": "step 10", "fraction": 0.5, "step": 10}


def test_what_it_yields_is_there_at_once(call, tmp_path):
    def act(run, event):
        if event.type == "stdout" and "waiting" in event.facts["text"]:
            (tmp_path / "workspace" / "sign").write_text("now")

    (tmp_path / "workspace").mkdir(exist_ok=True)
    (tmp_path / "workspace" / "sign").touch()
    outcome, _ = call(isolated_tools.wait_for, {"name": "sign"}, act)
    assert outcome.output == "waiting\nfound\n"


def test_its_context_says_what_any_context_says(tmp_path):
    (tmp_path / "workspace" / "inner").mkdir(parents=True)

    async def scenario():
        async with ToolService.open(
            tmp_path / "workspace",
            home=tmp_path / "home",
            tools=[isolated(isolated_tools.tell)],
            approver=lambda request: True,
            installed=False,
        ) as service:
            return await service.call("tell", cwd="inner", env={"GREETING": "hello"}, config={"deep": [1]}, who="me")

    outcome = asyncio.run(scenario())
    assert outcome.error is None, outcome.stderr
    said = outcome.result
    assert (said["run"], said["thread"], said["who"]) == (outcome.run_id, outcome.thread, "me")
    assert (said["cwd"], said["env"], said["config"]) == ("inner", {"GREETING": "hello"}, {"deep": [1]})
    assert (said["variable"], said["limits"], said["cancelled"]) == ("hello", Limits().max_seconds, False)
    assert said["root"] == os.path.realpath(tmp_path / "workspace")
    assert "starts processes itself" in said["launcher"]
    assert (tmp_path / "workspace" / "made.txt").read_bytes() == b"made"


@every_user
@pytest.mark.parametrize(
    ("how", "said", "code"),
    [
        ("exit", "exited 3", 3),
        ("quietly", "exited 0", 0),
        ("SIGSEGV", "ended by signal 11 (SIGSEGV)", 139),
        ("SIGKILL", "ended by signal 9 (SIGKILL)", 137),
        ("SIGTERM", "ended by signal 15 (SIGTERM)", 143),
    ],
)
def test_a_worker_that_dies_says_how(call, how, said, code):
    outcome, _ = call(isolated_tools.vanish, {"how": how})
    assert (outcome.status, outcome.error.code, outcome.exit_code) == ("error", "tool-failed", code)
    assert outcome.error.message == f"the worker process of `vanish` was {said} before it answered".replace(
        "was exited", "exited"
    )
    assert outcome.output == "before\n"


@every_user
@pytest.mark.parametrize(
    ("function", "sees"),
    [
        (isolated_tools.look, True),
        (isolated_tools.look_later, True),
        (isolated_tools.look_never, False),
        (isolated_tools.look_not_at_it, False),
    ],
)
def test_cancellation_reaches_the_function_and_ends_the_process(call, function, sees):
    def act(run, event):
        if event.type == "stdout" and "started" in event.facts["text"]:
            run.cancel()

    outcome, _ = call(function, act=act)
    assert outcome.status == "cancelled"
    assert ("saw it" in outcome.output) is sees


@every_user
def test_a_deadline_ends_the_process(call):
    outcome, _ = call(isolated_tools.look_never, timeout=1)
    assert (outcome.status, outcome.error.code) == ("error", "timed-out")


def test_a_large_result_is_whole_although_a_child_floods_the_pipe(call):
    outcome, _ = call(isolated_tools.crowd, {"n": 500_000})
    assert outcome.error is None
    assert len(outcome.result) == 500_000


def test_a_function_that_points_stdout_elsewhere_is_still_heard(call):
    outcome, events = call(isolated_tools.redirect)
    assert outcome.output == "done"
    assert "still heard" in [event.facts.get("message") for event in events]


def test_threads_that_it_leaves_are_not_waited_for(call):
    outcome, _ = call(isolated_tools.leave_a_thread)
    assert outcome.result == "not waited for"
    assert outcome.duration < 30


def test_preprocess_runs_in_the_host(call):
    seen = []

    def note(arguments):
        seen.append(os.getpid())
        return {**arguments, "a": 40}

    outcome, _ = call(isolated_tools.add, {"a": 1}, preprocess=note)
    assert (outcome.result, seen) == (42, [os.getpid()])


# What it can be led astray by.


@every_user
def test_modules_of_the_workspace_are_not_imported(call, tmp_path):
    for name in ("json", "colorsys", "haft", "sitecustomize", "usercustomize", "isolated_tools"):
        (tmp_path / "workspace" / f"{name}.py").write_text("raise SystemExit('from the workspace')")
    outcome, _ = call(isolated_tools.import_json)
    assert outcome.error is None, outcome.stderr
    assert str(tmp_path) not in outcome.result


@every_user
def test_variables_of_the_call_do_not_change_where_modules_are_found(tmp_path):
    (tmp_path / "workspace").mkdir()
    (tmp_path / "workspace" / "colorsys.py").write_text("raise SystemExit('from the workspace')")

    async def scenario():
        async with ToolService.open(
            tmp_path / "workspace",
            home=tmp_path / "home",
            tools=[isolated(isolated_tools.import_json)],
            approver=lambda request: True,
            installed=False,
        ) as service:
            return await service.call("import_json", env={"PYTHONPATH": ".", "PYTHONINSPECT": "1"})

    assert asyncio.run(scenario()).error is None


def test_the_search_path_means_the_same_from_everywhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", ["", "here", "/there", Path("/ignored")])
    real = os.getcwd()
    assert search_path() == [real, f"{real}/here", "/there"]


# Programs.

PROGRAM = """
    import asyncio
    import os
    import sys

    from haft import ToolService, tool
    {above}

    print("loaded as", __name__)

    @tool(isolated=True, readonly=True)
    def whose() -> dict:
        return {{"name": __name__, "package": __package__}}

    async def main():
        async with ToolService.open(
            {root!r} + "/workspace", home={root!r} + "/home", tools=[whose], installed=False
        ) as service:
            outcome = await service.call("whose")
            print(outcome.result, outcome.error)
"""
GUARDED = """
    if __name__ == "__main__":
        asyncio.run(main())
"""


def program(tmp_path, body=GUARDED, above=""):
    (tmp_path / "workspace").mkdir()
    return textwrap.dedent(PROGRAM).format(root=str(tmp_path), above=above) + textwrap.dedent(body)


def python(*words, cwd):
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    done = subprocess.run([sys.executable, *map(str, words)], cwd=cwd, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@every_user
def test_functions_of_a_script_are_found_without_running_it(tmp_path):
    script = tmp_path / "script-without-a-suffix"
    script.write_text(program(tmp_path))
    assert python(script.name, cwd=tmp_path) == (
        "loaded as __main__\n{'name': '__haft_main__', 'package': None} None\n"
    )


@pytest.mark.parametrize(("path", "name"), [("app/tool.py", "app.tool"), ("app/__main__.py", "app")])
def test_functions_of_a_module_that_is_run_are_found(tmp_path, path, name):
    (tmp_path / "app").mkdir()
    (tmp_path / "app" / "__init__.py").touch()
    (tmp_path / "app" / "other.py").touch()
    (tmp_path / path).write_text(program(tmp_path, above="from . import other"))
    shown = python("-m", name, cwd=tmp_path)
    assert shown == "loaded as __main__\n{'name': '__haft_main__', 'package': 'app'} None\n"


@pytest.mark.parametrize("packed", [True, False])
def test_functions_of_a_directory_or_an_archive_that_is_run_are_found(tmp_path, packed):
    text = program(tmp_path)
    if packed:
        with zipfile.ZipFile(tmp_path / "app", "w") as file:
            file.writestr("__main__.py", text)
    else:
        (tmp_path / "app").mkdir()
        (tmp_path / "app" / "__main__.py").write_text(text)
    assert "'name': '__haft_main__'" in python("app", cwd=tmp_path)


def test_a_program_without_a_file_is_told_so(tmp_path):
    shown = python(
        "-c",
        "from haft import BadConfig, tool\n"
        "@tool(isolated=True)\n"
        "def f(): ...\n"
        "try: f.spec\n"
        "except BadConfig as error: print(error)",
        cwd=tmp_path,
    )
    assert "`f` cannot be an isolated tool: its program has no file" in shown


def test_a_program_without_a_guard_starts_no_workers_without_end(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(program(tmp_path, "\nasyncio.run(main())\n"))
    shown = python(script, cwd=tmp_path)
    assert "`whose` cannot be loaded in its worker process" in shown
    assert 'if __name__ == "__main__"' in shown


def test_a_function_that_only_the_host_has_is_a_failure_in_words(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(program(tmp_path, 'if __name__ != "__main__":\n    del whose\n' + textwrap.dedent(GUARDED)))
    shown = python(script, cwd=tmp_path)
    assert "`whose` cannot be loaded in its worker process: AttributeError" in shown


def test_a_module_that_only_the_host_can_import_is_a_failure_in_words(call, monkeypatch):
    module = types.ModuleType("made_up")
    exec("def made(): ...", module.__dict__)
    monkeypatch.setitem(sys.modules, "made_up", module)
    outcome, _ = call(module.made)
    assert outcome.error.message.endswith("ModuleNotFoundError: No module named 'made_up'")
    assert "made_up" in outcome.stderr


# What it asks the launcher for.


class Asked:
    """A launcher that remembers, and does what it is told instead."""

    def __init__(self, act):
        self.act = act

    async def run(self, command, sink):
        self.command = command
        return self.act(sink) or Exit(0)


def asked(context, tmp_path, act):
    from haft.files import Root

    context.launcher, context.workspace, context.limits = Asked(act), Root(tmp_path), Limits()
    return asyncio.run(isolated(isolated_tools.add).invoke({"a": 1}, context)), context.launcher


def test_errors_of_the_launcher_go_through_as_they_are(context, tmp_path):
    def exceed(sink):
        sink.output("stdout", b"partial \x1e")
        raise LimitExceeded("memory_bytes", 1, "it took too much")

    with pytest.raises(LimitExceeded):
        asked(context, tmp_path, exceed)
    assert context.text("stdout") == "partial \x1e"


def test_arguments_that_do_not_fit_start_no_process(context):
    with pytest.raises(InvalidArguments, match="`a`"):
        asyncio.run(isolated(isolated_tools.add).invoke({"a": "x"}, context))


def test_what_the_worker_reads_is_named(context, tmp_path, monkeypatch):
    home = tmp_path / "person"
    (home / "beside").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setattr(sys, "path", [str(home), str(home / "beside"), "/does/not/exist", *sys.path])
    answer, launcher = asked(context, tmp_path, lambda sink: None)
    readable = set(launcher.command.readable)
    import haft

    needed = {sys.prefix, sys.base_prefix, os.path.dirname(sys.executable), isolated_tools.__file__, *haft.__path__}
    for path in (*needed, str(Path(isolated_tools.__file__).parent), str(home / "beside")):
        assert any(f"{path}/".startswith(f"{each}/") for each in readable), path
    assert not {"/", str(home), str(tmp_path), "/does/not/exist"} & readable
    assert all(os.path.isabs(path) for path in readable)
    assert answer.failure.message == "the worker process of `add` exited 0 before it answered"
    assert launcher.command.argv[0] == sys.executable
    assert "-P" in launcher.command.argv


# The messages.

MARKER = b"\x1emark\x1e!"


@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("output"), st.binary(max_size=20)),
            st.tuples(st.just("output"), st.sampled_from([MARKER[:n] for n in range(1, len(MARKER))])),
            st.tuples(st.sampled_from([b"+", b".", b"e"]), st.binary(max_size=30)),
        ),
        max_size=8,
    ),
    st.data(),
)
def test_messages_are_told_from_output_however_the_bytes_are_split(said, data):
    stream, expected = b"", []
    for kind, payload in said:
        if kind == "output":
            stream += payload
            add_output(expected, payload)
        else:
            stream += MARKER + kind + len(payload).to_bytes(2, "big") + payload
            expected.append((kind, payload))
    assume(not any(kind == "output" and MARKER in payload for kind, payload in expected))
    heard: list = []
    frames = FrameReader(
        MARKER, lambda piece: add_output(heard, piece), lambda kind, payload: heard.append((kind, payload))
    )
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=10)))
    for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True):
        frames.feed(stream[start:end])
    seen = b"".join(payload for _, payload in heard)
    assert len(b"".join(payload for _, payload in expected)) - len(seen) < len(MARKER)
    frames.close()
    assert heard == expected


def add_output(told, data):
    if told and told[-1][0] == "output":
        told[-1] = ("output", told[-1][1] + data)
    elif data:
        told.append(("output", data))


@given(st.binary(max_size=200).filter(lambda data: b"\x1e" not in data))
def test_ordinary_output_is_never_held_back(data):
    heard = []
    frames = FrameReader(MARKER, heard.append, lambda *piece: pytest.fail("no piece"))
    for byte in range(len(data)):
        frames.feed(data[byte : byte + 1])
    assert b"".join(heard) == data


def test_a_voice_is_heard(context):
    reading, writing = os.pipe()
    writer, listener = FrameWriter(MARKER, writing), Listener(context, MARKER)
    writer.stderr(b"error")
    writer.message({"progress": {"message": "ä", "fraction": 0.5, "facts": {}}})
    writer.message({"answer": {"result": "x" * 20_000, "has_text": True, "failure": None}})
    os.close(writing)
    with open(reading, "rb") as file:
        while data := file.read(7):
            listener.output("stdout", data)
    listener.close()
    assert context.events == [("stderr", b"error"), ("progress", "ä", 0.5)]
    assert listener.answer == Answer(text="x" * 20_000, result="x" * 20_000)


@pytest.mark.parametrize(
    "message",
    [
        b"no json",
        b"\xff",
        b"[]",
        b"5",
        b"{}",
        b'{"answer": 5}',
        b'{"answer": {}}',
        b'{"answer": {"result": 1, "has_text": true, "failure": 5}}',
        b'{"answer": {"result": 1, "has_text": true, "failure": {}}}',
        b'{"progress": {"message": "x", "fraction": 1, "facts": {"message": "y"}}}',
        b"[" * 60_000,
    ],
)
def test_what_a_function_makes_up_is_not_taken_for_an_answer(context, message):
    listener = Listener(context, MARKER)
    listener.output("stdout", MARKER + b"." + len(message).to_bytes(2, "big") + message)
    assert listener.answer is None
    assert "cannot be understood" in listener.problem


def test_a_message_without_end_fills_no_memory(context):
    listener = Listener(context, MARKER)
    piece = MARKER + b"+" + (60_000).to_bytes(2, "big") + b"x" * 60_000
    for _ in range(LARGEST_MESSAGE // 60_000 + 2):
        listener.output("stdout", piece)
    assert "too large" in listener.problem
    assert len(listener._message) == 0


def test_a_tool_does_not_speak_for_the_sandbox_and_limits():
    from haft.sources.python.isolated import _answer

    for code in ("sandbox-denied", "limit-exceeded", "timed-out", "anything"):
        answer = _answer(None, False, {"code": code, "message": "m", "hint": "--write /", "retryable": False})
        assert answer.failure.code == "tool-failed"
