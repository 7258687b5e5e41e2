"""What is started for a tool, and what becomes of what it says. What it does when it really runs: tests/service."""

import asyncio
import os
import sys

import pytest

from haft.contracts import Exit, InvalidArguments, ToolFailed
from haft.sources.bash_plugin import Policy, files_of, found_tool, read_reference


class Launcher:
    """Keeps what it was to start, says what it was told to say, and ends as it was told to."""

    def __init__(self, code=0, signal=None, stdout=b"", stderr=b""):
        self.commands, self._exit, self._said = [], Exit(code, signal), (("stdout", stdout), ("stderr", stderr))

    async def run(self, command, sink):
        self.commands.append(command)
        for stream, data in self._said:
            if data:
                sink.output(stream, data)
        return self._exit


class Place:
    def locate(self, path):
        return path


KNOWN = {
    "name": "mine",
    "version": "0.1.0",
    "mode": "positional",
    "description": "Does it.",
    "inputSchema": {"type": "object", "properties": {"a": {"type": "string"}, "b": {"default": False}}},
    "positional": [{"name": "a"}, {"name": "b"}],
    "configKeys": ["user", "region"],
    "digest": "d",
}


@pytest.fixture
def made(tmp_path, context):
    """A tool of a file, and a context whose launcher can be set."""
    script = tmp_path / "mine.bash"
    script.write_text("")

    def make(launcher, policy=None, **changes):
        reference = read_reference(f"bash:{script}", "haft.toml", str(tmp_path))
        (file,) = files_of(reference, str(script), "user", None)
        context.launcher, context.workspace, context.stderr_only = (
            launcher,
            Place(),
            lambda data: context.output("kept", data),
        )
        return found_tool({**KNOWN, **changes}, file, policy or Policy(is_allowed=True)).tool

    return make


def test_the_spec_says_where_it_comes_from_and_what_it_is_made_of(made, tmp_path):
    spec = made(Launcher(), Policy(is_allowed=True, seconds=7.0)).spec
    script = str(tmp_path / "mine.bash")
    assert (spec.name, spec.kind, spec.provenance, spec.origin) == ("mine", "bash-plugin", "user", script)
    assert (spec.timeout, spec.hosting, spec.files) == (7.0, "per-call", (script,))
    assert (spec.preprocesses, spec.previews, spec.explains) == (True, True, True)
    assert spec.meta["plugin"] == {
        "version": "0.1.0",
        "argsMode": "positional",
        "configKeys": ["user", "region"],
        "reference": f"bash:{script}",
    }


def test_each_subcommand_is_bash_with_the_file_and_words_and_never_a_line(made, context, tmp_path):
    launcher = Launcher()
    tool = made(launcher)
    arguments = {"a": "$(touch x); --b", "b": True}

    async def all_of_them():
        await tool.preview(arguments, context)
        await tool.invoke(arguments, context)
        await tool.explain(arguments, context, 7, None)

    asyncio.run(all_of_them())
    words = ["$(touch x); --b", "true"]
    script = str(tmp_path / "mine.bash")
    assert [list(command.argv) for command in launcher.commands] == [
        ["bash", script, "preview", *words],
        ["bash", script, "run", *words],
        ["bash", script, "error", "7", *words],
    ]
    for command in launcher.commands:
        assert (command.env["AGENT_TOOL_PYTHON"], command.stdin, command.cwd) == (sys.executable, b"", ".")
        assert {script, os.path.dirname(script)} & set(command.readable)


def test_json_goes_to_the_stdin_of_every_subcommand(made, context):
    launcher = Launcher()
    tool = made(launcher, mode="json")
    asyncio.run(tool.invoke({"a": "x"}, context))
    asyncio.run(tool.explain({"a": "x"}, context, 1, None))
    assert [list(command.argv[2:]) for command in launcher.commands] == [
        ["run", "--args-json"],
        ["error", "1", "--args-json"],
    ]
    assert [command.stdin for command in launcher.commands] == [b'{"a": "x"}'] * 2


def test_settings_of_the_call_are_stronger_than_configured_ones_and_only_declared_ones_arrive(made, context):
    launcher = Launcher()
    context.config, context.env = {"user": "caller", "other": "x"}, {"EXTRA": "1", "AGENT_TOOL_PYTHON": "no"}
    asyncio.run(made(launcher, Policy(config={"user": "file", "region": 3, "hidden": "x"})).invoke({}, context))
    env = launcher.commands[0].env
    assert {name: value for name, value in env.items() if name.startswith("AGENT_TOOL_CONFIG")} == {
        "AGENT_TOOL_CONFIG_USER": "caller",
        "AGENT_TOOL_CONFIG_REGION": "3",
    }
    assert (env["EXTRA"], env["AGENT_TOOL_PYTHON"]) == ("1", sys.executable)


def test_arguments_are_filled_in_and_what_cannot_be_passed_is_refused(made, context):
    tool = made(Launcher())
    assert asyncio.run(tool.preprocess({"a": "x"}, context)) == {"a": "x", "b": False}
    with pytest.raises(InvalidArguments):
        asyncio.run(tool.preprocess({"a": "x" * 200_000}, context))


def test_stderr_is_kept_and_streamed_only_where_policy_says_so(made, context):
    for streams, stream in ((False, "kept"), (True, "stderr")):
        context.events.clear()
        tool = made(Launcher(stdout=b"out", stderr=b"err"), Policy(stream_stderr=streams))
        answer = asyncio.run(tool.invoke({}, context))
        assert (answer.exit_code, answer.failure) == (0, None)
        assert context.events == [("stdout", b"out"), (stream, b"err")]


def test_the_default_text_of_a_failure_has_name_code_and_the_line_that_tells(made, context):
    failed = asyncio.run(made(Launcher(3, stderr=b"much\n" * 5000 + b"the end\n")).invoke({}, context))
    assert failed.exit_code == 3
    assert failed.failure.code == "tool-failed"
    assert failed.failure.message == "`mine` exited 3: the end"
    killed = asyncio.run(made(Launcher(137, 9)).invoke({}, context))
    assert (killed.exit_code, killed.failure.message) == (137, "`mine` was ended by signal 9")


def test_a_hook_counts_when_it_exits_0_and_says_something(made, context):
    def explained(launcher, code=1, timed_out=None):
        return asyncio.run(made(launcher).explain({}, context, code, timed_out))

    assert explained(Launcher(stdout=b"so\n")) == "so\n"
    assert explained(Launcher(1, stdout=b"so\n")) is None
    assert explained(Launcher(stdout=b" \n")) is None
    nobody = Launcher(stdout=b"so\n")
    assert explained(nobody, code=None) is None, "what never ran has not failed"
    assert nobody.commands == []
    late = Launcher(stdout=b"so\n")
    assert explained(late, code=None, timed_out=1.5) == "so\n"
    (command,) = late.commands
    assert command.argv[2:] == ["error", "124"]
    assert command.env["AGENT_TOOL_TIMED_OUT"] == "1"
    assert command.env["AGENT_TOOL_TIMEOUT_SECONDS"] == "1.5"


def test_a_preview_that_fails_is_empty(made, context):
    assert asyncio.run(made(Launcher(stdout=b"would do\n")).preview({}, context)) == "would do\n"
    assert asyncio.run(made(Launcher(1, stdout=b"would do\n")).preview({}, context)) == ""


def test_a_file_that_was_changed_on_the_way_is_not_run(made, context, tmp_path):
    launcher = Launcher()
    tool = made(launcher)
    (tmp_path / "mine.bash").write_text("rm -rf .")
    with pytest.raises(ToolFailed, match="has changed since the call started"):
        asyncio.run(tool.invoke({}, context))
    assert launcher.commands == []
