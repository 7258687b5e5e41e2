"""The source of Python plugins in one workspace: their descriptions and tools."""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, get_args

from haft.contracts import (
    NO_GRANTS,
    Answer,
    BadConfig,
    Definitions,
    DescribeLauncher,
    DiscoveredTool,
    Effects,
    RunId,
    Secrets,
    Session,
    SessionLauncher,
    TaskSupport,
    ToolContext,
    ToolName,
    ToolSpec,
    clean_tool_name,
    is_tool_name,
)
from haft.schema import validator_for, why_too_large
from haft.sources.bash_plugin.tool import Policy
from haft.sources.describing_source import DescribingSource
from haft.sources.description_cache import FAIR_SECONDS, CacheEntry
from haft.sources.port import ProgressCallback
from haft.sources.python_plugin.entries import PluginEntry

if TYPE_CHECKING:
    from haft.sources.python_plugin.worker import PluginWorker

MOST_TOOLS: Final = 200


@dataclass(frozen=True, slots=True)
class PluginTool:
    """A tool of a plugin class. One process carries out all its calls and keeps the plugin's state."""

    spec: ToolSpec
    worker: PluginWorker

    @property
    def session(self) -> Session | None:
        return self.worker.session

    @property
    def busy_with(self) -> RunId | None:
        """The run of the call that the plugin's process is carrying out; None if it is idle."""
        return self.worker.busy_with

    async def started(self) -> Session:
        """The plugin's process, which is started if it does not run."""
        return await self.worker.started()

    @property
    def secrets(self) -> Secrets:
        return self.worker.policy.secrets

    async def preprocess(self, arguments: dict[str, Any], context: ToolContext) -> dict[str, Any]:
        return arguments

    async def invoke(self, arguments: dict[str, Any], context: ToolContext) -> Answer:
        return await self.worker.call(self.spec.meta["plugin"]["tool"], arguments, context)

    def alone(self) -> PluginToolAlone:
        """The same tool with its own process for each call."""
        return PluginToolAlone(self.spec, self.worker)


@dataclass(frozen=True, slots=True)
class PluginToolAlone:
    """A tool of a plugin that keeps no state. Each call has its own process."""

    spec: ToolSpec
    worker: PluginWorker

    @property
    def secrets(self) -> Secrets:
        return self.worker.policy.secrets

    async def preprocess(self, arguments: dict[str, Any], context: ToolContext) -> dict[str, Any]:
        return arguments

    async def invoke(self, arguments: dict[str, Any], context: ToolContext) -> Answer:
        return await self.worker.call_alone(self.spec.meta["plugin"]["tool"], arguments, context)


@dataclass(frozen=True, slots=True)
class FunctionTool:
    """A `@tool` function of a file. Each call has its own process."""

    spec: ToolSpec
    path: str
    function: str

    async def preprocess(self, arguments: dict[str, Any], context: ToolContext) -> dict[str, Any]:
        return arguments

    async def invoke(self, arguments: dict[str, Any], context: ToolContext) -> Answer:
        from haft.sources.python.function_location import FunctionLocation
        from haft.sources.python.isolated import run_in_worker

        location = FunctionLocation(self.function, "", "file", self.path)
        return await run_in_worker(self.spec.name, location, {"arguments": arguments}, context)


class PythonPlugins(DescribingSource[PluginEntry]):
    """The source of Python plugins."""

    name = "python-plugin"

    def __init__(
        self,
        entries: Callable[[], Sequence[PluginEntry]],
        is_entry_current: Callable[[PluginEntry], bool],
        definitions: Definitions,
        policy: Policy,
        root: str,
        sessions: SessionLauncher | None,
        why_disabled: Callable[[PluginEntry], str | None] = lambda _entry: None,
    ) -> None:
        """`entries` returns all plugins as they are now, and `is_entry_current` says whether one of them has not
        changed since."""
        super().__init__(entries, definitions, why_disabled)
        self._is_entry_current = is_entry_current
        self._policy = policy
        self._root = root
        self._sessions = sessions
        self._workers: dict[PluginEntry, PluginWorker] = {}

    async def refresh(
        self, launcher: DescribeLauncher, progress: ProgressCallback, *, retry_name: str | None = None
    ) -> Iterable[DiscoveredTool] | None:
        for entry in self._outdated():
            # A busy worker is ended by a later refresh: saving a file must not end a call.
            if not self._workers[entry].is_busy:
                await self._workers.pop(entry).end()
        return await super().refresh(launcher, progress, retry_name=retry_name)

    def due(self) -> bool:
        return bool(self._outdated()) or super().due()

    def _outdated(self) -> list[PluginEntry]:
        """The old entries of changed or removed plugins that still have a worker. No new call goes to these workers."""
        return [one for one in self._workers if one not in self._seen]

    def places(self) -> Iterable[str]:
        for each in self._seen:
            yield from (each.path, *each.files) if each.folder is not None else sys.path
            yield from {os.path.dirname(file) for file in each.files}

    def is_current(self, spec: ToolSpec) -> bool:
        seen = [one for one in self._seen if one.path == spec.origin]
        return bool(seen) and all(map(self._is_entry_current, seen))

    async def describe(self, file: PluginEntry, launcher: DescribeLauncher, seconds: float) -> CacheEntry:
        from haft.sources.brief_run import run_briefly, stderr_summary
        from haft.sources.python.frames import new_marker
        from haft.sources.python_plugin.worker import WorkerListener, request_of, worker_command

        marker = new_marker()
        request = request_of(file, marker, self._policy, self._root, describe=True)
        output = await run_briefly(worker_command(file, request), launcher, seconds=seconds)
        listener = WorkerListener(marker)
        listener.output("stdout", output.stdout)
        known: CacheEntry = {"identity": file.identity}
        ready = next((one["ready"] for one in listener.messages if isinstance(one.get("ready"), list)), None)
        if ready is not None and not output.is_too_long:
            return {**known, "tools": self._policy.secrets.masked(ready[:MOST_TOOLS])}
        failed = next((str(one["failed"]) for one in listener.messages if "failed" in one), None)
        stderr = self._policy.secrets.masked_bytes(output.stderr)
        if output.start_failure is not None:
            known["problem"] = f"it could not be described: {output.start_failure}"
        elif output.timed_out:
            known["problem"] = f"it did not list its tools within {seconds:.2g} s"
        elif output.is_too_long:
            known["problem"] = "it printed too much when it listed its tools"
        else:
            known["problem"] = f"it could not be loaded: {failed or stderr_summary(stderr) or 'it printed no reason'}"
            known["needsConfig"] = any(why in (failed or "") for why in self._policy.unset.values())
        known["problem"] = self._policy.secrets.masked_text(known["problem"])
        known["passing"] = output.is_machine_fault or (output.timed_out and seconds < FAIR_SECONDS)
        return known

    def tools_of(self, file: PluginEntry, known: Mapping[str, Any]) -> Iterator[DiscoveredTool]:
        for schema in known["tools"]:
            yield self._tool(file, schema)

    def undescribed_spec(self, file: PluginEntry, known: Mapping[str, Any]) -> ToolSpec:
        return _bare(file)

    def cure(self, spec: ToolSpec) -> str:
        return f"it comes from {spec.origin}: fix it there"

    async def close(self) -> None:
        """End the workers of all plugins."""
        for worker in self._workers.values():
            await worker.end()
        self._workers.clear()

    def _tool(self, each: PluginEntry, schema: Any) -> DiscoveredTool:
        try:
            spec = _spec(each, schema)
        except ValueError as error:
            return DiscoveredTool(_bare(each), None, "broken", f"{each.path}: {error}")
        except Exception as error:  # A bad description must break only this plugin.
            return DiscoveredTool(
                _bare(each), None, "broken", f"{each.path}: its description cannot be understood ({error!r})"[:300]
            )
        if each.is_functions:
            return DiscoveredTool(spec, FunctionTool(spec, each.path, schema["function"]))
        if each not in self._workers:
            from haft.sources.python_plugin.worker import PluginWorker

            self._workers[each] = PluginWorker(each, self._policy, self._root, self._sessions)
        return DiscoveredTool(spec, PluginTool(spec, self._workers[each]))


def _spec(each: PluginEntry, schema: Any) -> ToolSpec:
    """The spec of a tool that a plugin describes. Raises `ValueError` with a message if the description is wrong."""
    if isinstance(schema, dict) and not each.is_functions and isinstance(schema.get("function"), dict):
        schema = {**schema["function"]}
    if not isinstance(schema, dict) or not isinstance(schema.get("name"), str) or not is_tool_name(schema["name"]):
        raise ValueError("one of its tools has no valid name: use 1 to 64 letters, digits, `_` and `-`")
    name = schema["name"]
    description = schema.get("description", "")
    parameters = schema.get("parameters") or schema.get("input_schema") or schema.get("inputSchema") or {}
    if not isinstance(description, str) or not isinstance(parameters, dict):
        raise ValueError(f"`{name}` needs a text as description, and a JSON Schema as parameters")  # noqa: TRY004  all raise the same
    parameters = {"type": "object", "properties": {}, **parameters}
    if (why := why_too_large(parameters)) is not None:
        raise ValueError(f"the parameters of `{name}` are too complex: {why}")
    try:
        validator_for(parameters)
    except BadConfig as error:
        raise ValueError(f"the parameters of `{name}`: {error.message}") from None
    grants = each.reference.grant
    # The digest includes the grants, because an approval also covers what the process may access.
    reach = [grants.to_json()] if grants != NO_GRANTS else []
    definition = json.dumps([name, description, parameters, *reach], sort_keys=True)
    effects = schema.get("effects")
    timeout = schema.get("timeout")
    if timeout is not None and not (isinstance(timeout, int | float) and timeout > 0):
        raise ValueError(f"the timeout of `{name}` is not a positive number of seconds")
    if each.is_functions and not isinstance(schema.get("function"), str):
        raise ValueError(f"`{name}` names no function")
    return ToolSpec(
        name=ToolName(name),
        kind="python",
        description=description.strip(),
        input_schema=parameters,
        output_schema=schema.get("outputSchema") if isinstance(schema.get("outputSchema"), dict) else None,
        effects=Effects(**effects) if each.is_functions and isinstance(effects, dict) else Effects(),
        provenance=each.provenance,
        origin=each.path,
        digest=hashlib.sha256(definition.encode()).hexdigest(),
        hosting="per-call" if each.is_functions else "session",
        grants=grants,
        keeps_state=each.reference.keeps_state,
        timeout=timeout if isinstance(timeout, int | float) else None,
        files=each.files,
        meta={
            "plugin": {
                "reference": each.reference.written,
                "tool": name,
                **({} if each.is_functions else {"grant": grants.to_json()}),
            },
            **({"taskSupport": support} if (support := schema.get("taskSupport")) in get_args(TaskSupport) else {}),
        },
    )


def _bare(each: PluginEntry) -> ToolSpec:
    """The spec under which a plugin is listed if haft cannot describe it: without description and parameters."""
    stem = os.path.splitext(os.path.basename(each.path))[0]
    return ToolSpec(
        name=clean_tool_name(stem),
        kind="python",
        description="",
        input_schema={"type": "object", "properties": {}},
        provenance=each.provenance,
        origin=each.path,
        hosting="session",
        meta={"plugin": {"reference": each.reference.written}},
    )
