"""Checks one toolbox executable: the file, how it describes itself, and the description."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final

from haft.contracts import Launcher, clean_tool_name
from haft.schema import from_words, shortened
from haft.sources.amp_toolbox.describe import fetching_hint, script
from haft.sources.amp_toolbox.describe_action import run_describe
from haft.sources.amp_toolbox.description import NO_DESCRIPTION, Description, Unreadable, read_description
from haft.sources.amp_toolbox.separator import detect_separator
from haft.sources.brief_run import ProgramOutput
from haft.sources.checks.behaviour import check_behaviour
from haft.sources.checks.definition import check_definition, check_schema, no_type, quoted_list
from haft.sources.checks.files import InspectedFile, check_file, check_inside, check_start, inspect_file
from haft.sources.checks.findings import Finding, Report

KIND: Final = "amp-toolbox"
PREFIX: Final = "tb__"
LONGEST_NAME: Final = 60
"""The most characters of a described name. With the prefix, it is as long as a tool name may be."""
_UNSTARTABLE: Final = frozenset(("not-executable", "interpreter-missing", "crlf-shebang", "bom-shebang", "leads-out"))


async def check_executable(
    path: str,
    launcher: Launcher,
    reserved: Collection[str] = (),
    *,
    folder: str | None = None,
    within: str | None = None,
) -> Report:
    """Inspect the file, describe it anew, and check the description. `folder` is the folder of the skill that the file
    belongs to. If the file is a link, it may not lead out of `within`."""
    inspected = inspect_file(path)
    if isinstance(inspected, Finding):
        return Report(path, KIND, None, [inspected])
    found = [*check_inside(path, within), *check_file(inspected), *check_start(inspected)]
    if _UNSTARTABLE & {finding.code for finding in found} or not inspected.content:
        return Report(path, KIND, None, found)
    output = await run_describe(os.path.abspath(path), launcher, folder=folder, from_workspace=within is not None)
    found += check_behaviour(output, fetching=fetching_hint(os.path.abspath(path), from_workspace=within is not None))
    name = None
    if output.start_failure is None and not output.timed_out and not output.is_too_long:
        name, more = _check_output(inspected, output, reserved)
        found += more
    return Report(path, KIND, name, found)


def _check_output(
    inspected: InspectedFile, output: ProgramOutput, reserved: Collection[str]
) -> tuple[str | None, list[Finding]]:
    try:
        described = read_description(output.stdout)
    except Unreadable as error:
        if output.exit_code and not output.stdout.strip():
            return None, []  # Another finding reports the failure already.
        return None, list(_unreadable(error, output.stdout, inspected))
    found = list(_check_described(described, output.stdout.decode("utf-8-sig"), inspected, reserved))
    return PREFIX + clean_tool_name(described.name)[:LONGEST_NAME], found


def _check_described(
    described: Description, text: str, inspected: InspectedFile, reserved: Collection[str]
) -> Iterator[Finding]:
    name, schema = described.name, described.input_schema
    yield from check_definition(name, described.description, schema, reserved, longest=LONGEST_NAME)
    file = os.path.basename(inspected.path)
    if name not in (file, os.path.splitext(file)[0]):
        yield Finding(
            "name-differs", f"it is called `{shortened(name, 80)}` and its file `{file}`", "call both the same"
        )
    lines = _parameter_lines(text) if described.form == "text" else []
    names = [line[0] for line in lines] if described.form == "text" else _json_keys(text)
    twice = [one for one, times in Counter(names).items() if times > 1]
    if twice:
        yield Finding(
            "duplicate-parameter-names", f"described twice: {quoted_list(twice)}", "give each a name of its own"
        )
    if described.form == "text":
        untyped = [name for name, words in lines if _is_untyped(words)]
        if untyped:
            yield no_type(untyped)
        yield from _check_text_form(name, schema, inspected)


def _check_text_form(name: str, schema: Mapping[str, Any], inspected: InspectedFile) -> Iterator[Finding]:
    properties: Mapping[str, Any] = schema.get("properties", {})
    structured = [name for name, one in properties.items() if one.get("type") in ("array", "object")]
    if structured:
        yield Finding(
            "text-with-structures",
            f"a text tool takes {quoted_list(structured)}",
            "describe it in JSON: it then gets JSON",
        )
    detected = detect_separator(script(inspected.path))
    if properties and detected.is_unsure:
        yield Finding(
            "separator-unclear",
            "the script does not show whether it splits its input at `:` or at `=`: haft sends it `key: value`",
            f'if it reads `key=value`, set `"{name}" = "="` in `[toolbox.separator]` of haft.toml; else `": "`',
        )
    if properties and detected.separator == "=":
        yield Finding(
            "equals-input",
            "the script splits its input at `=`: haft sends it `key=value`, other hosts may not",
            "split at the first colon: `while IFS=': ' read -r key value`",
        )


def _parameter_lines(text: str) -> list[tuple[str, str]]:
    """The lines that describe parameters: all except the first `name:` and every `description:`."""
    lines = [line.strip().partition(":") for line in text.splitlines()]
    named = [(key.strip(), words.strip()) for key, colon, words in lines if colon and key.strip()]
    first = next((index for index, (key, _words) in enumerate(named) if key == "name"), None)
    return [one for index, one in enumerate(named) if one[0] != "description" and index != first]


def _is_untyped(words: str) -> bool:
    """Whether the words about a parameter do not begin with a type. The parameter is then a string."""
    return bool(words) and from_words({"it": words})["properties"]["it"].get("description") == words


def _json_keys(text: str) -> list[str]:
    """The keys that occur more than once in one JSON object. The list has each such key twice, however often it
    occurs."""
    found: list[str] = []

    def note(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found.extend(key for key, times in Counter(key for key, _value in pairs).items() if times > 1 for _ in "12")
        return dict(pairs)

    json.loads(text, object_pairs_hook=note)
    return found


def _unreadable(error: Unreadable, stdout: bytes, inspected: InspectedFile) -> Iterator[Finding]:
    text = stdout.decode("utf-8-sig", "replace")
    line = None
    try:
        given = json.loads(text)
    except RecursionError:
        given = None
    except ValueError as wrong:
        given = None
        if isinstance(wrong, json.JSONDecodeError) and text.lstrip().startswith(("{", "[")):
            line = _line_in_source(text.split("\n")[wrong.lineno - 1 : wrong.lineno], inspected)
    yield Finding(_code_of(given, text, error), error.message, error.cure, line)


def _code_of(given: Any, text: str, error: Unreadable) -> str:
    if isinstance(given, Mapping):
        if not isinstance(name := given.get("name"), str) or not name.strip():
            return "no-name"
        if isinstance(schema := given.get("inputSchema"), Mapping):
            return next((finding.code for finding in check_schema(schema)), "describe-form")
        return "schema-error" if error.cure == "fix its `inputSchema`" else "describe-form"
    if error.cure == NO_DESCRIPTION:
        return "no-description"
    says_something = any(line.strip().startswith("description:") for line in text.splitlines())
    return "no-name" if given is None and says_something else "describe-form"


def _line_in_source(said: list[str], inspected: InspectedFile) -> int | None:
    """The number of the line in the script that equals a printed line; None if there is not exactly one such line."""
    wanted = said[0].strip() if said else ""
    lines = [number for number, line in enumerate(inspected.text.splitlines(), 1) if line.strip() == wanted]
    return lines[0] if wanted and len(lines) == 1 else None
