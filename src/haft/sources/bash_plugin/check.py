"""Checks one bash tool plugin: whether the output of `bash FILE schema` meets the contract."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final

from haft.contracts import BadUsage, Command, Launcher
from haft.schema import shortened
from haft.sources.amp_toolbox.start_command import readable_paths
from haft.sources.bash_plugin.discover import DESCRIPTOR
from haft.sources.brief_run import run_briefly
from haft.sources.checks.behaviour import check_behaviour
from haft.sources.checks.definition import check_definition, quoted_list
from haft.sources.checks.files import check_file, check_first_line, inspect_file
from haft.sources.checks.findings import Finding, Report
from haft.sources.skills.skill import lies_in

KIND: Final = "bash-plugin"
MODES: Final = ("flags", "positional", "json")


async def check_plugin(path: str, launcher: Launcher, reserved: Collection[str] = ()) -> Report:
    """Inspect the file, run its `schema`, and check the output. The file needs no run bit, because haft starts bash
    with the file as its argument."""
    inspected = inspect_file(path)
    if isinstance(inspected, Finding):
        return Report(path, KIND, None, [inspected])
    found = [*check_file(inspected), *check_first_line(inspected)]
    if any(finding.code in ("bom-shebang", "crlf-shebang") for finding in found):
        return Report(path, KIND, None, found)
    absolute = os.path.abspath(path)
    env = {"AGENT_TOOL_PYTHON": sys.executable}
    command = Command(["bash", absolute, "schema"], env=env, readable=tuple(readable_paths(absolute)))
    output = await run_briefly(command, launcher)
    found += check_behaviour(output, "schema")
    schema: Any = None
    if (
        output.start_failure is None
        and not output.timed_out
        and not output.is_too_long
        and (output.stdout.strip() or not output.exit_code)
    ):
        try:
            schema = json.loads(output.stdout)
        except (ValueError, RecursionError) as error:
            found.append(_no_json(output.stdout, error))
        else:
            found += check_contract(schema, os.path.splitext(os.path.basename(path))[0], reserved)
    name = schema.get("id") if isinstance(schema, Mapping) else None
    return Report(path, KIND, name if isinstance(name, str) else None, found)


def _no_json(stdout: bytes, error: Exception) -> Finding:
    what = (
        f"`schema` does not print JSON: {shortened(str(error), 200)}" if stdout.strip() else "`schema` prints nothing"
    )
    return Finding("describe-form", what, "print one JSON object and nothing else to stdout")


def check_contract(schema: Any, stem: str, reserved: Collection[str]) -> Iterator[Finding]:
    """Check the output of `schema`. `stem` is the file's name without its ending."""
    if not isinstance(schema, Mapping):
        yield Finding("describe-form", "`schema` does not print a JSON object", "print one JSON object")
        return
    for field in ("id", "version"):
        if not isinstance(schema.get(field), str) or not schema[field].strip():
            yield Finding("plugin-schema", f"`{field}` is missing or not a text", f'add `"{field}": "…"`')
    yield from _check_keys(schema)
    tools = schema.get("tools")
    if not isinstance(tools, list):
        yield Finding("plugin-schema", "`tools` is missing or not a list", 'add `"tools": [{…}]`')
        return
    if len(tools) != 1:
        yield Finding("plugin-one-tool", f"it has {len(tools)} tools", "one file is one tool: write another file")
    for tool in tools[:1]:
        yield from _check_tool(schema, tool, stem, reserved)


def _check_keys(schema: Mapping[str, Any]) -> Iterator[Finding]:
    mode = schema.get("args_mode")
    if mode not in MODES:
        problem = "is missing" if mode is None else f"is {shortened(repr(mode), 60)}"
        yield Finding("plugin-args-mode", f"`args_mode` {problem}", f"it is one of {', '.join(MODES)}")
    keys = schema.get("config_keys", [])
    if not isinstance(keys, list) or not all(isinstance(key, str) and key for key in keys):
        yield Finding("plugin-config-keys", "`config_keys` is not a list of names", 'write `"config_keys": ["…"]`')


def _check_tool(schema: Mapping[str, Any], tool: Any, stem: str, reserved: Collection[str]) -> Iterator[Finding]:
    function = tool.get("function") if isinstance(tool, Mapping) and tool.get("type") == "function" else None
    if not isinstance(function, Mapping):
        form = '{"type": "function", "function": {"name": …, "description": …, "parameters": …}}'
        yield Finding("plugin-schema", "the tool is not a function", f"write `{form}`")
        return
    name, parameters = function.get("name"), function.get("parameters")
    if not isinstance(name, str) or not name:
        yield Finding("no-name", "the function has no `name`", "give it the plugin's `id`")
        return
    if isinstance(schema.get("id"), str) and schema["id"] != name:
        own_id = shortened(schema["id"], 60)
        yield Finding("plugin-id", f"the `id` is `{own_id}` and the function `{shortened(name, 60)}`", "use one name")
    elif name != stem:
        yield Finding(
            "name-differs", f"it is called `{shortened(name, 80)}` and its file `{stem}`", "call both the same"
        )
    if not isinstance(parameters, Mapping):
        yield Finding("plugin-schema", "the function has no `parameters`", 'add `"parameters": {"type": "object"}`')
        parameters = {}
    description = function.get("description", "")
    yield from check_definition(name, description if isinstance(description, str) else "", parameters, reserved)
    if schema.get("args_mode") == "positional":
        yield from _check_positional(schema.get("positional"), parameters.get("properties", {}))


def _check_positional(places: Any, properties: Any) -> Iterator[Finding]:
    if not isinstance(places, list) or not all(
        isinstance(place, Mapping) and isinstance(place.get("name"), str) for place in places
    ):
        yield Finding(
            "plugin-positional", '`positional` is not a list of `{"name": …}`', "name the parameters in order"
        )
        return
    names = [place["name"] for place in places]
    known = list(properties) if isinstance(properties, Mapping) else []
    if strangers := [name for name in names if name not in known]:
        yield Finding(
            "plugin-positional", f"`positional` names no parameter: {quoted_list(strangers)}", "use their names"
        )
    if missing := [name for name in known if name not in names]:
        yield Finding("plugin-positional", f"`positional` has no place for: {quoted_list(missing)}", "add them")
    if len(set(names)) < len(names):
        yield Finding("duplicate-parameter-names", "`positional` names a parameter twice", "name each once")


def files_to_check(folder: str) -> Iterator[str]:
    """The paths of the bash tools that a plugin's descriptor names. Raises `BadUsage` if one lies outside the folder,
    or if the descriptor cannot be read."""
    descriptor = os.path.join(folder, DESCRIPTOR)
    inspected = inspect_file(descriptor)
    if isinstance(inspected, Finding):
        raise BadUsage(f"`{descriptor}` cannot be read: {inspected.message}", hint=inspected.hint)
    try:
        content = json.loads(inspected.content)
        inside = os.path.join(folder, str(content.get("subdirectory", "")))
        files = [os.path.join(inside, each["file"]) for each in content.get("bash_tools", [])]
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise BadUsage(
            f"`{descriptor}` cannot be read: {error}", hint='write {"bash_tools": [{"file": "my_tool.bash"}]}'
        ) from error
    for file in files:
        if "\0" in file:
            raise BadUsage(f"`{descriptor}` names a file with a NUL character in its name")
        if not lies_in(os.path.abspath(file), os.path.abspath(folder)) or not lies_in(
            os.path.realpath(file), os.path.realpath(folder)
        ):
            raise BadUsage(f"`{descriptor}` names a file outside of its folder: `{file}`")
        yield file
