"""The source of bash plugins in one workspace: their files, cache entries and tools."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from haft.contracts import (
    Command,
    Definitions,
    DescribeLauncher,
    DiscoveredTool,
    Launcher,
    State,
    ToolSpec,
    clean_tool_name,
)
from haft.sources.amp_toolbox.start_command import readable_paths
from haft.sources.bash_plugin.discover import PluginFile
from haft.sources.bash_plugin.tool import BashPluginTool, Policy, spec_of
from haft.sources.describing_source import DescribingSource
from haft.sources.description_cache import FAIR_SECONDS, CacheEntry, GrantsFor, no_grants

NOT_ALLOWED: Final = "bash tools are not allowed: set `plugin_policy.allow_bash_tools = true`"


class BashPlugins(DescribingSource[PluginFile]):
    """The source of bash plugins."""

    name = "bash-plugin"

    def __init__(
        self,
        files: Callable[[], Sequence[PluginFile]],
        definitions: Definitions,
        policy: Policy,
        why_disabled: Callable[[PluginFile], str | None] = lambda _file: None,
        granted: GrantsFor = no_grants,
    ) -> None:
        super().__init__(files, definitions, why_disabled, granted)
        self.policy = policy

    async def describe(self, file: PluginFile, launcher: DescribeLauncher, seconds: float) -> CacheEntry:
        return await describe(file, launcher, seconds)

    def tools_of(self, file: PluginFile, known: Mapping[str, Any]) -> Iterator[DiscoveredTool]:
        yield found_tool(known, file, self.policy)

    def undescribed_spec(self, file: PluginFile, known: Mapping[str, Any]) -> ToolSpec:
        stem = os.path.splitext(os.path.basename(file.path))[0]
        return ToolSpec(
            name=clean_tool_name(stem),
            kind="bash-plugin",
            description="",
            input_schema={"type": "object", "properties": {}},
            provenance=file.provenance,
            origin=file.path,
            hosting="per-call",
            meta={"plugin": {"reference": file.reference.written}},
        )

    def why_not(self, each: PluginFile) -> tuple[State, str] | None:
        if each.problem is None and not self.policy.is_allowed:
            return "disabled", NOT_ALLOWED
        return super().why_not(each)


def found_tool(known: Mapping[str, Any], each: PluginFile, policy: Policy) -> DiscoveredTool:
    """The tool that a cache entry describes, or why it cannot be called yet."""
    spec = spec_of(known, each, policy)
    unset = [policy.unset[key] for key in known["configKeys"] if key in policy.unset and each.takes_config]
    if unset:
        return DiscoveredTool(spec, None, "needs-config", "; ".join(unset))
    return DiscoveredTool(spec, BashPluginTool(spec, each, known, policy))


async def describe(file: PluginFile, launcher: Launcher, seconds: float) -> CacheEntry:
    """Run the plugin with the argument `schema`, and return the cache entry made from what the plugin printed."""
    from haft.sources.bash_plugin.schema import BadSchema, read_schema
    from haft.sources.brief_run import run_briefly, stderr_summary

    command = Command(
        ["bash", file.path, "schema"],
        env={"AGENT_TOOL_PYTHON": sys.executable},
        readable=tuple(readable_paths(file.path, file.folder, from_workspace=file.provenance == "workspace")),
    )
    output = await run_briefly(command, launcher, seconds=seconds)
    known: CacheEntry = {"identity": file.identity}
    again = f"`haft tools check {file.path}` describes it again"
    try:
        if output.start_failure is not None:
            raise BadSchema(f"its `schema` could not be run: {output.start_failure}", again)
        if output.is_too_long:
            raise BadSchema("its `schema` printed too much", "print one JSON object")
        if output.timed_out:
            raise BadSchema(f"it did not print its schema within {seconds:.2g} s", again)
        if output.exit_code != 0:
            raise BadSchema(f"`schema` exited {output.exit_code}", "print the schema and exit 0")
        return known | read_schema(output.stdout)
    except BadSchema as error:
        stderr = f"; stderr: {stderr_summary(output.stderr)}" if output.stderr.strip() else ""
        known["problem"] = f"{error.message}; {error.cure}{stderr}"
        known["passing"] = output.is_machine_fault or (output.timed_out and seconds < FAIR_SECONDS)
    return known
