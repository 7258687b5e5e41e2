"""Checks the Markdown files and the tables of the configuration that define types of sub-agents."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from haft.agents import (
    AgentType,
    ListedType,
    TypeTables,
    allowed_tools,
    parse_definition,
    read_file,
    type_of_file,
    types_in_tables,
    unknown_key_notes,
)
from haft.contracts import BadUsage, Listing
from haft.sources.checks import Finding, Report, check_description, hidden_in_source
from haft.values import replace

KIND: Final = "agent"
_NO_PROMPT: Final = "it has no system prompt, so it gets the default one"


def agent_files(words: Sequence[str], places: Iterable[str]) -> list[str]:
    """The files to check: those that `words` name, and those in the folders that they name; without words, those in
    `places`. Raises `BadUsage` if there is no such file."""
    found: list[str] = []
    for word in words:
        path = os.path.expanduser(word)
        if not os.path.lexists(path):
            raise BadUsage(f"`{word}` does not exist", hint="name a Markdown file, or a folder with such files")
        found += _in_folder(path) if os.path.isdir(path) else [path]
    for place in () if words else places:
        found += _in_folder(place)
    return list(dict.fromkeys(map(os.path.abspath, found)))


def check_agent(path: str, workspace: str, listings: Sequence[Listing]) -> Report:
    """Check one file. `listings` are the tools of the workspace."""
    file = read_file(path, workspace)
    listed = type_of_file(file)
    if listed.type is None:
        return Report(path, KIND, None, [_definition_problem(listed)])
    text = file.data.decode("utf-8", "replace")
    found = [*_check_type(listed.type, parse_definition(file.data).keys, listings, text)]
    if listed.name != file.stem:
        what = f"its name is `{listed.name}` and its file is `{file.stem}.md`"
        found.append(Finding("agent-name", what, "give both the same name", _line(text, "name")))
    if not listed.type.prompt:
        found.append(Finding("agent-prompt", _NO_PROMPT, "write the prompt below the front matter"))
    found += [*check_description(listed.type.description), *hidden_in_source(text)]
    return Report(path, KIND, listed.name, found)


def check_agent_tables(named: TypeTables, listings: Sequence[Listing]) -> Iterator[Report]:
    """Check each type that one place of the configuration defines."""
    for (name, table), listed in zip(named.tables.items(), types_in_tables(named), strict=True):
        target = f"{named.source}: subagents.types.{name}"
        if listed.type is None:
            yield Report(target, KIND, None, [_definition_problem(listed)])
            continue
        found = [*_check_type(listed.type, {key: each for key, each in table.items() if key != "prompt"}, listings)]
        if not listed.type.prompt:
            found.append(Finding("agent-prompt", _NO_PROMPT, "write the prompt as `prompt`"))
        text = f"{listed.type.description}\n{listed.type.prompt}"
        hidden = (replace(each, line=None) for each in hidden_in_source(text))
        yield Report(target, KIND, listed.name, [*found, *check_description(listed.type.description), *hidden])


def _definition_problem(listed: ListedType) -> Finding:
    problem, _mark, cure = (listed.problem or "").partition("; ")
    return Finding("agent-definition", problem, cure or None)


def _check_type(
    agent: AgentType, keys: Mapping[str, Any], listings: Sequence[Listing], text: str = ""
) -> Iterator[Finding]:
    """Check the keys and the tools of a type. `text` is the file in which the lines of the keys are found."""
    unknown = unknown_key_notes(keys)
    for key, note in unknown.items():
        yield Finding("agent-unknown-key", note, line=_line(text, key))
    for note in agent.notes:
        if note not in unknown.values():
            yield Finding("agent-ignored", note)
    yield from _check_tools(agent, listings)


def _check_tools(agent: AgentType, listings: Sequence[Listing]) -> Iterator[Finding]:
    allowed = allowed_tools(agent, listings)
    for name, reason in allowed.left_out:
        what, _mark, cure = reason.partition("; ")
        yield Finding("agent-tool", f"it does not get `{name}`: {what}", cure or None)
    if not allowed.names:
        yield Finding("agent-no-tools", "it has no tools", "name tools that exist, or leave out `tools`")


def _line(text: str, key: str) -> int | None:
    lines = enumerate(text.splitlines(), 1)
    return next((number for number, line in lines if line.lstrip("\"'").startswith(key)), None)


def _in_folder(folder: str) -> list[str]:
    try:
        names = sorted(os.listdir(folder))
    except OSError:
        return []
    return [os.path.join(folder, name) for name in names if name.endswith(".md") and not name.startswith(".")]
