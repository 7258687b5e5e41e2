"""Python plugins: a worker in the sandbox that keeps their state, and files of functions. None of it runs in the
host."""

import asyncio
import functools
import importlib.util
import json
import os
import py_compile
import sys

import pytest

from haft import ToolService
from haft.contracts import MARK

COUNTER = """
import os, sys
import words

sys.modules["haft_plugin_was_here"] = sys


class Counter:
    def init(self, config):
        return {"count": config.get("start", 0), "pid": os.getpid()}

    async def prepare(self, state):
        state["prepared"] = True

    async def get_tool_schemas(self, state):
        assert state["prepared"]
        parameters = {"type": "object", "properties": {"by": {"type": "integer"}, "do": {"type": "string"}}}
        return [
            {"type": "function", "function": {"name": "count", "description": "Count on.", "parameters": parameters}},
            {"name": "tell", "description": "Tell the count.", "input_schema": {"type": "object", "properties": {}}},
        ]

    async def execute_tool(self, name, arguments, state):
        if name == "tell":
            return f"it is {state['count']}"
        if arguments.get("do") == "write":
            with open("made.txt", "w") as file:
                file.write("by the plugin")
        if arguments.get("do") == "hang":
            import time
            time.sleep(1000)
        if arguments.get("do") == "die":
            os._exit(7)
        if arguments.get("do") == "fail":
            raise ValueError("it cannot")
        print("counting")
        print("quietly", file=sys.stderr)
        state["count"] += arguments.get("by", 1)
        return {"count": state["count"], "pid": state["pid"], "word": words.WORD, "cwd": os.getcwd()}
"""

LOUD = """
import os


class Loud:
    def get_tool_schemas(self, state):
        return [{"name": "loud", "description": "Fill stderr.", "input_schema": {"type": "object", "properties": {}}}]

    def execute_tool(self, name, arguments, state):
        os.write(2, b"x" * 899_999 + b"\\n")
        return "done"
"""

BUSY = """
import time


class Busy:
    def get_tool_schemas(self, state):
        parameters = {"type": "object", "properties": {"seconds": {"type": "number"}}}
        return [{"name": "work", "description": "Use the processor.", "parameters": parameters}]

    def execute_tool(self, name, arguments, state):
        until = time.process_time() + arguments["seconds"]
        while time.process_time() < until:
            pass
        return "done"
"""

FUNCTIONS = '''
from haft import Context, tool


@tool(readonly=True)
def double(number: int) -> int:
    """Double a number. Use it instead of adding."""
    return number * 2


@tool
def note(text: str, context: Context) -> str:
    """Write a note."""
    with open("note.txt", "w") as file:
        file.write(text)
    return "noted"


def helper():
    """No tool."""
'''


def in_a_loop(test):
    @functools.wraps(test)
    def run(*arguments, **named):
        asyncio.run(test(*arguments, **named))

    return run


@pytest.fixture
def plugin(tmp_path):
    folder = tmp_path / "plugin"
    folder.mkdir()
    (folder / "counter.py").write_text(COUNTER)
    (folder / "words.py").write_text("WORD = 'hello'\n")
    (folder / "functions.py").write_text(FUNCTIONS)
    return folder


def opened(tmp_path, *plugins, **settings):
    (tmp_path / "workspace").mkdir(exist_ok=True)

    async def yes(_request):
        return True

    return ToolService.open(
        tmp_path / "workspace",
        home=tmp_path / "state",
        approver=yes,
        installed=False,
        settings={"plugins": list(plugins), **settings},
    )


def states(service):
    return {one.spec.name: one.state for one in service.tools(all=True) if one.spec.kind == "python"}


@in_a_loop
async def test_a_plugin_keeps_its_state_from_call_to_call_in_one_process_that_is_not_the_host(
    tmp_path, plugin, left_of
):
    async with opened(tmp_path, f"path:{plugin}/counter.py", config={"start": 40}) as service:
        assert states(service) == {"count": "ready", "tell": "ready"}
        assert "haft_plugin_was_here" not in sys.modules and "counter" not in sys.modules
        first = await service.call("count", {})
        second = await service.call("count", {"by": 5})
        assert [first.result["count"], second.result["count"]] == [41, 46], "its configuration, and its state"
        assert first.result["pid"] == second.result["pid"] and first.result["word"] == "hello"
        assert first.result["cwd"] == os.path.realpath(tmp_path / "workspace")
        assert (first.output, first.stderr) == ("counting\nquietly\n" + first.output[17:], "quietly\n")
        assert (await service.call("tell")).output == "it is 46"
        outcome = await service.call("count", {"do": "fail"})
        assert (outcome.status, outcome.error.message) == ("error", "ValueError: it cannot")
        assert (await service.call("tell")).output == "it is 46", "a failure is no end"
        assert left_of(str(plugin))
    assert not left_of(str(plugin)), "it ends with the service"


@in_a_loop
async def test_what_lies_compiled_beside_a_plugin_is_not_what_runs(tmp_path, plugin):
    other = tmp_path / "other.py"
    other.write_text('WORD = "compiled from something else"\n')
    compiled = importlib.util.cache_from_source(str(plugin / "words.py"))
    py_compile.compile(str(other), compiled, invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH)
    async with opened(tmp_path, f"path:{plugin}/counter.py") as service:
        assert (await service.call("count", {})).result["word"] == "hello"


@in_a_loop
async def test_what_a_plugin_changes_is_known_and_can_be_undone(tmp_path, plugin):
    made = tmp_path / "workspace/made.txt"
    reference = {"plugin": f"path:{plugin}/counter.py", "grant": {"write": ["."]}}
    async with opened(tmp_path, reference) as service:
        outcome = await service.call("count", {"do": "write"})
        assert made.read_text() == "by the plugin"
        assert (outcome.changes.engine, outcome.changes.complete) == ("overlay", True)
        assert [one.path for one in outcome.changes.files] == ["made.txt"]
        assert (await service.undo(outcome.run_id)).status == "done"
        assert not made.exists()
        outcome = await service.call("count", {}, grants={"network": True})
        assert outcome.error.code == "bad-usage" or "granted" in outcome.error.message


@in_a_loop
async def test_a_call_that_hangs_or_dies_takes_its_process_and_not_the_next_call(tmp_path, plugin):
    async with opened(tmp_path, f"path:{plugin}/counter.py") as service:
        await service.call("count", {"by": 3})
        outcome = await service.call("count", {"do": "hang"}, timeout=1)
        assert outcome.error.code == "timed-out"
        assert (await service.call("tell")).output == "it is 0", "a new process, and a new state"
        outcome = await service.call("count", {"do": "die"})
        assert "exited 7 before it answered" in outcome.error.message
        assert (await service.call("tell")).output == "it is 0"
        run = service.call("count", {"do": "hang"})
        async for event in run:
            if event.status == "in-progress":
                run.cancel()
        assert (await run).status == "cancelled"
        assert (await service.call("tell")).output == "it is 0"


@in_a_loop
async def test_output_past_python_that_comes_before_the_answer_belongs_to_the_call(tmp_path, plugin):
    (plugin / "loud.py").write_text(LOUD)
    async with opened(tmp_path, f"path:{plugin}/loud.py") as service:
        for _ in range(3):
            outcome = await service.call("loud", {})
            assert outcome.result is None and outcome.output_bytes == 900_000 + len("done")


@in_a_loop
async def test_processor_time_of_a_plugin_that_only_reads_is_limited_call_by_call(tmp_path, plugin):
    (plugin / "busy.py").write_text(BUSY)
    async with opened(tmp_path, f"path:{plugin}/busy.py", **{"limits.cpu_seconds": 0.9}) as service:
        for _ in range(3):
            outcome = await service.call("work", {"seconds": 0.5})
            assert outcome.status == "done", outcome.error
        outcome = await service.call("work", {"seconds": 30})
        assert (outcome.status, outcome.limits.hit) == ("error", "cpu_seconds"), outcome.error


@in_a_loop
async def test_a_plugin_that_was_changed_is_asked_and_started_anew(tmp_path, plugin):
    async with opened(tmp_path, f"path:{plugin}/counter.py") as service:
        assert (await service.call("count", {})).result["word"] == "hello"
        (plugin / "words.py").write_text("WORD = 'other'\n")
        assert (await service.call("count", {})).result == {
            **(await service.call("count", {"by": 0})).result,
            "count": 1,
            "word": "other",
        }


@in_a_loop
async def test_functions_of_a_file_run_in_a_process_for_each_call(tmp_path, plugin):
    async with opened(tmp_path, f"python:{plugin}/functions.py") as service:
        assert states(service) == {"double": "ready", "note": "ready"}
        assert (await service.call("double", {"number": 21})).result == 42
        outcome = await service.call("note", {"text": "x"})
        assert (outcome.result, outcome.changes.engine) == (
            "noted",
            "overlay" if sys.platform == "linux" else "snapshot",
        )
        assert (await service.call("double", {"number": "x"})).error.code == "invalid-arguments"


@in_a_loop
async def test_a_folder_names_its_plugins_and_one_of_bash_tools_is_refused_with_the_form_to_write(tmp_path, plugin):
    (plugin / "agent_plugin.json").write_text(json.dumps({"entries": ["counter.py:Counter"]}))
    bash = tmp_path / "bashes"
    bash.mkdir()
    (bash / "agent_plugin.json").write_text(json.dumps({"bash_tools": [{"file": "x.bash"}]}))
    async with opened(tmp_path, f"path:{plugin}", f"path:{bash}") as service:
        assert (await service.call("tell")).output == "it is 0"
        (broken,) = [one for one in service.tools(all=True) if one.state == "broken"]
        assert f"write `bash:{bash}`" in broken.reason


BROKEN = {
    "no such file": (None, "there is no"),
    "raises": ("raise RuntimeError('not today')", "RuntimeError: not today"),
    "exits": ("import sys; sys.exit(3)", "SystemExit"),
    "no plugin": ("x = 1", "has no plugin"),
    "two plugins": (
        "class A:\n    def execute_tool(self): ...\nclass B:\n    def execute_tool(self): ...",
        "several plugins, A, B",
    ),
    "bad schemas": (
        "class A:\n    def get_tool_schemas(self, s): return [{'name': 'a b'}]\n    def execute_tool(self, n, a, s): 0",
        "no valid name",
    ),
    "hangs": ("import time; time.sleep(100)", "did not list its tools within"),
}


@in_a_loop
async def test_what_is_wrong_with_a_plugin_is_said_and_disturbs_no_other(tmp_path, plugin):
    names = {}
    for number, (name, (text, _why)) in enumerate(BROKEN.items()):
        file = tmp_path / f"broken{number}.py"
        names[name] = f"path:{file}"
        if text is not None:
            folder = tmp_path / f"folder{number}"
            folder.mkdir()
            file = folder / "plugin.py"
            file.write_text(text)
            names[name] = f"path:{file}"
    async with opened(tmp_path, *names.values(), f"path:{plugin}/counter.py") as service:
        listed = {
            one.spec.meta["plugin"]["reference"]: one for one in service.tools(all=True) if "plugin" in one.spec.meta
        }
        for name, (_text, why) in BROKEN.items():
            assert listed[names[name]].state == "broken" and why in listed[names[name]].reason, name
        assert (await service.call("tell")).output == "it is 0"


@in_a_loop
async def test_a_workspace_brings_python_plugins_only_once_it_is_trusted(tmp_path, plugin):
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    (workspace / "plugin.py").write_text(COUNTER)
    granted = '{plugin = "path:./plugin.py", grant = {write = ["."]}}'
    (workspace / "haft.toml").write_text(f'plugins = ["python:./plugin.py", "os.path", {granted}]\n')
    async with opened(tmp_path) as service:
        assert states(service) == {}
        (ignored,) = service.config.ignored
        assert ignored.name == "plugins" and ignored.value[2]["grant"] == {"write": ["."]}


SPEAKING = """
import os, sys


class Speaking:
    def init(self, config):
        return config if {lazily} else {{"user": config["user"], **config}}

    def get_tool_schemas(self, state):
        return [{{"name": "{name}", "description": "Knows " + state["api_token"], "parameters": {{}}}}]

    def execute_tool(self, name, arguments, state):
        token = state["api_token"]
        sys.stdout.write("out " + token[:9])
        sys.stderr.write("err " + token[:9])
        sys.stdout.write(token[9:] + "\\n")
        sys.stderr.write(token[9:] + "\\n")
        if arguments.get("fail"):
            state.get("user")
        return {{"token": token, "granted": os.environ.get("SHOP_KEY")}}
"""


@in_a_loop
async def test_a_plugin_that_keeps_a_state_is_masked_and_needs_only_the_variables_that_it_asks_for(
    tmp_path, monkeypatch
):
    secret = "tk-0123456789-abcdef"
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("SOME_VALUE", secret)
    monkeypatch.setenv("SHOP_KEY", "a-key-that-was-granted")
    (tmp_path / "config/haft").mkdir(parents=True)
    own = tmp_path / "config/haft/haft.toml"
    own.write_text('[config]\napi_token = "${env:SOME_VALUE}"\nuser = "${env:NOT_SET_HERE}"\n')
    for name, lazily in (("eager", False), ("lazy", True)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "plugin.py").write_text(SPEAKING.format(name=name, lazily=lazily))
    granted = {"plugin": f"path:{tmp_path}/lazy/plugin.py", "grant": {"env": ["SHOP_KEY"]}}
    async with opened(tmp_path, f"path:{tmp_path}/eager/plugin.py", granted) as service:
        listed = {one.spec.origin.split("/")[-2]: one for one in service.tools(all=True) if one.spec.kind == "python"}
        assert listed["eager"].state == "needs-config", listed["eager"].reason
        assert f"({own}:3)" in listed["eager"].reason and "`NOT_SET_HERE`, which is not set" in listed["eager"].reason
        assert listed["lazy"].state == "ready" and listed["lazy"].spec.description == f"Knows {MARK}"
        outcome = await service.call("lazy")
        failed = await service.call("lazy", {"fail": True})
    assert secret[:9] not in outcome.output and outcome.output.count(MARK) == 4
    assert outcome.stderr == f"err {MARK}\n" and outcome.result == {"token": MARK, "granted": MARK}
    assert "`NOT_SET_HERE`, which is not set" in failed.error.message
    held = b"".join(path.read_bytes() for path in (tmp_path / "state").rglob("*") if path.is_file())
    assert secret.encode() not in held


@in_a_loop
async def test_a_folder_that_says_nothing_of_itself_is_told_how_a_python_plugin_does(tmp_path):
    (tmp_path / "bare").mkdir()
    async with opened(tmp_path, f"path:{tmp_path}/bare") as service:
        (broken,) = (one for one in service.tools(all=True) if one.state == "broken")
        assert 'write {"entries": ["plugin.py:MyPlugin"]} into it' in broken.reason
        assert f"or name one file: `path:{tmp_path}/bare/plugin.py`" in broken.reason
