"""The program of a plugin's worker process: loads the plugin once, lists its tools, and carries out one call after
another.

The process runs in the sandbox from the start. The plugin's state lasts as long as the process.
"""

from __future__ import annotations

import contextlib
import inspect
import io
import json
import os
import sys
from collections.abc import Mapping
from typing import Any, NoReturn

from haft.contracts import Question, QuestionMethod, ToolResult
from haft.sources.python.failures import sentence_of, traceback_of
from haft.sources.python.frames import FrameWriter
from haft.sources.python.host_calls import HostInput, ask_through_host, call_through_host, own_input
from haft.sources.python.results import answer_from, to_json


def main(request: Mapping[str, Any]) -> NoReturn:
    """Load the plugin, then answer calls until the input ends."""
    writer = FrameWriter(bytes.fromhex(request["marker"]), os.dup(1))
    requests = HostInput(own_input())
    _unbuffer_streams(writer)
    try:
        tools = _Functions(request) if request["functions"] else _Plugin(request)
        writer.message({"ready": tools.described()})
    except BaseException as error:  # importing runs foreign code, and that may even exit
        writer.stderr(traceback_of(error).encode("utf-8", "replace"))
        writer.message({"failed": sentence_of(error)})
        os._exit(1)
    if request["describe"]:
        os._exit(0)
    while line := requests.next_request():
        writer.message({"answer": _answered(tools, json.loads(line), request["root"], writer, requests)})
        if request["once"]:
            break
    os._exit(0)


def _unbuffer_streams(writer: FrameWriter) -> None:
    """Make the plugin's prints appear at once, and keep its stderr in order with the answers."""
    sys.stdout = io.TextIOWrapper(io.FileIO(1, "w"), "utf-8", "replace", write_through=True)

    class Errors(io.RawIOBase):
        def writable(self) -> bool:
            return True

        def write(self, data: Any) -> int:
            written = bytes(memoryview(data))
            writer.stderr(written)
            return len(written)

    sys.stderr = io.TextIOWrapper(Errors(), "utf-8", "backslashreplace", write_through=True)


class PluginContext:
    """The `context` argument of a plugin's `execute_tool`. With it, the plugin calls other tools and reports
    progress."""

    def __init__(self, facts: Mapping[str, Any], writer: FrameWriter, answers: HostInput) -> None:
        self.run: str = facts["run"]
        self.thread: str = facts["thread"]
        self.who: str = facts["who"]
        self.chain = tuple(facts["chain"])
        self._can_ask = facts["canAsk"]
        self._writer = writer
        self._answers = answers

    def call(self, name: str, arguments: Mapping[str, Any] | None = None, *, timeout: float | None = None) -> Any:
        return call_through_host(self._writer, self._answers, name, arguments, timeout)

    def ask(self, *questions: Question) -> Any:
        return ask_through_host(self._writer, self._answers, questions)

    def can_ask(self, method: QuestionMethod = "elicitation/create") -> bool:
        return method in self._can_ask

    def progress(self, message: str = "", *, fraction: float | None = None, **facts: Any) -> None:
        self._writer.message({"progress": {"message": message, "fraction": fraction, "facts": to_json(facts)}})


def _answered(
    tools: _Plugin | _Functions, call: Mapping[str, Any], root: str, writer: FrameWriter, answers: HostInput
) -> dict[str, Any]:
    try:
        os.chdir(os.path.join(root, call["cwd"]))
        value = tools.call(call["tool"], call["arguments"], PluginContext(call["context"], writer, answers))
        if isinstance(value, ToolResult):
            answer = answer_from(value)
            failure = None if answer.failure is None else answer.failure.message
            return {"result": answer.result, "failure": failure, "text": answer.text, "content": list(answer.content)}
        return {"result": to_json(value), "failure": None}
    except BaseException as error:
        sys.stderr.write(traceback_of(error))
        return {"result": None, "failure": sentence_of(error)}
    finally:
        with contextlib.suppress(OSError):
            os.chdir(root)  # From the root, the process follows the layer that is mounted over the workspace.


def _loaded(request: Mapping[str, Any]) -> Any:
    """The module of the plugin."""
    import importlib
    import importlib.util

    # From here on, bytecode files are not read, because they may differ from the source.
    sys.pycache_prefix = "/nonexistent"
    if request["folder"] is None:
        return importlib.import_module(request["path"])
    sys.path.insert(0, request["folder"])
    name = os.path.relpath(request["path"], request["folder"]).removesuffix(".py").replace(os.sep, ".")
    if all(part.isidentifier() for part in name.split(".")):
        return importlib.import_module(name)
    spec = importlib.util.spec_from_file_location("haft_plugin", request["path"])
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Settings(dict[str, Any]):
    """The values of `[config]`. If a value comes from an environment variable that is not set, reading the value raises
    an error that says so."""

    def __init__(self, values: Mapping[str, Any], unset: Mapping[str, str]) -> None:
        super().__init__(values)
        self._unset = unset

    def __missing__(self, name: str) -> Any:
        raise LookupError(self._unset[name]) if name in self._unset else KeyError(name)

    def get(self, name: str, default: Any = None) -> Any:
        return self[name] if name in self or name in self._unset else default


class _Plugin:
    """An object with `init`, `prepare`, `get_tool_schemas` and `execute_tool`, each sync or async."""

    def __init__(self, request: Mapping[str, Any]) -> None:
        import asyncio

        self._loop = asyncio.new_event_loop()
        asyncio.set_event_loop(self._loop)
        self._plugin = self._made(_loaded(request), request["class"])
        self._takes_context = "context" in inspect.signature(self._plugin.execute_tool).parameters
        init = getattr(self._plugin, "init", None)
        self._state = None if init is None else self._done(init(Settings(request["config"], request["unset"])))
        prepare = getattr(self._plugin, "prepare", None)
        if prepare is not None:
            takes = len(inspect.signature(prepare).parameters)
            prepared = self._done(prepare(self._state) if takes else prepare())
            self._state = self._state if prepared is None else prepared

    @staticmethod
    def _made(module: Any, name: str | None) -> Any:
        if name is not None:
            found = getattr(module, name, None)
            if found is None:
                raise LookupError(f"there is no `{name}` in {module.__file__}")
        else:
            classes = [
                one
                for one in vars(module).values()
                if inspect.isclass(one) and one.__module__ == module.__name__ and hasattr(one, "execute_tool")
            ]
            if len(classes) > 1:
                names = ", ".join(one.__name__ for one in classes)
                raise LookupError(
                    f"there are several plugins, {names}: name one, as in `plugin.py:{names.split(',')[0]}`"
                )
            found = classes[0] if classes else module
        made = found() if inspect.isclass(found) else found
        for method in ("get_tool_schemas", "execute_tool"):
            if not callable(getattr(made, method, None)):
                raise LookupError(f"{module.__file__} has no plugin: nothing in it has `{method}`")  # noqa: TRY004
        return made

    def _done(self, value: Any) -> Any:
        return self._loop.run_until_complete(value) if inspect.isawaitable(value) else value

    def described(self) -> list[Any]:
        """The descriptions of the plugin's tools."""
        return [to_json(schema) for schema in self._done(self._plugin.get_tool_schemas(self._state))]

    def call(self, tool: str, arguments: Any, context: PluginContext) -> Any:
        given = {"context": context} if self._takes_context else {}
        return self._done(self._plugin.execute_tool(tool, arguments, self._state, **given))


class _Functions:
    """A file of `@tool` functions. This class only describes the functions: each call of a function runs in its own
    process."""

    def __init__(self, request: Mapping[str, Any]) -> None:
        from haft.sources.python import PythonTool
        from haft.sources.python.function_location import FunctionLocation, load

        module = load(FunctionLocation("", "", "file", request["path"]))
        self._tools = {name: one for name, one in vars(module).items() if isinstance(one, PythonTool)}
        if not self._tools:
            raise LookupError(f"{request['path']} has no function with `@tool`")

    def described(self) -> list[Any]:
        """The descriptions of the tools, each with the name of its function."""
        return [
            {
                "name": tool.spec.name,
                "description": tool.spec.description,
                "parameters": dict(tool.spec.input_schema),
                "outputSchema": tool.spec.output_schema,
                "effects": tool.spec.effects.to_json(),
                "timeout": tool.spec.timeout,
                "taskSupport": tool.spec.meta.get("taskSupport"),
                "function": name,
            }
            for name, tool in self._tools.items()
        ]

    def call(self, tool: str, arguments: Any, context: PluginContext) -> Any:
        raise NotImplementedError
