"""Makes scenarios from plain data, in the three forms in which people write them.

- haft's own form, with `expect`.
- The form of a test harness: `arguments`, `initialFiles`, `processesSetup`, `environment`, `workingDirectory`, and
  `expectedFiles` and `expectedProcessCalls` as lists.
- Mixtures of both: for example `tool`, `args`, `files` and `expectedFiles`.

Each word of the second form stands for one word of the first. A scenario that says the same thing twice, in both forms,
is an error. Tables of `cases` share all other parts of a scenario.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal

from haft.contracts import BadConfig, BadUsage, near_miss
from haft.testing import faults, parts
from haft.testing.parts import (
    answers,
    boolean,
    decision,
    error_code,
    fault,
    json_table,
    json_value,
    number,
    table,
    text,
    text_match,
    texts,
    whole_number,
)
from haft.testing.reading.file_parts import expected_files, given_files
from haft.testing.reading.mcp_parts import mcp_servers
from haft.testing.reading.program_parts import expected_calls, programs
from haft.testing.scenarios.scenario import PYTHON, UNSET, Expected, GivenFile, Location, Scenario
from haft.values import replace

_OTHER_NAMES: Final = {
    "arguments": "args",
    "initialFiles": "files",
    "processesSetup": "programs",
    "environment": "env",
    "workingDirectory": "cwd",
    "expectedFiles": "expect.files",
    "expectedProcessCalls": "expect.programs",
}
_KEYS: Final = (
    *("name", "tool", "load", "args", "files", "git", "programs", "mcp", "env", "approve", "cwd", "config", "settings"),
    *("grant", "network", "unguarded", "timeout", "clock", "fault", "expect", "cases"),
)
_EXPECT_KEYS: Final = (
    *("status", "error", "message", "output", "stderr", "result", "exit", "files", "only_changed", "programs"),
    *("decision", "asked", "children", "crashes"),
)
_STATUSES: Final = ("done", "error", "rejected-by-user", "cancelled")
_HARNESS_WORKSPACE: Final = "/test-workspace"
"""The path that harnesses write for the workspace."""
_WHOLE: Final = frozenset({"args", "config", "result", "programs"})
"""Parts that a case replaces as a whole; other tables are merged key by key."""


def scenarios_from(data: Any, *, directory: str = ".", name: str = "", at: Location | None = None) -> list[Scenario]:
    """The scenarios in plain data, one for each case. Relative paths of tools begin at `directory`. Raises `BadUsage`
    that names the place and the mistake."""
    at = at or Location(PYTHON)
    if not isinstance(data, Mapping):
        raise _wrong(at, "", "a scenario must be a table with the key `tool`")
    shared = _own_words(data, at, "")
    cases = shared.pop("cases", None)
    own_name = shared.pop("name", None)
    base = name if own_name is None else text(_within(at, "name"), own_name)
    if cases is None:
        return [_scenario(shared, base, directory, at)]
    if not isinstance(cases, Sequence) or isinstance(cases, str) or not cases:
        raise _wrong(at, "cases", "must be a list of at least one table")
    made = []
    lines = _lines_of_cases(at)
    for index, case in enumerate(cases):
        where = f"cases.{index}"
        if not isinstance(case, Mapping):
            raise _wrong(at, where, "each case must be a table")
        words = _own_words(case, at, where)
        if "cases" in words:
            raise _wrong(at, f"{where}.cases", "a case cannot have cases of its own")
        title = words.pop("name", None)
        title = str(index + 1) if title is None else text(_within(at, f"{where}.name"), title)
        full = f"{base}: {title}" if base else title
        whole = _without_removed_files(_merged(shared, words), shared)
        made.append(replace(_scenario(whole, full, directory, _case_location(at, where, lines)), case=index))
    counts = Counter(each.name for each in made)
    if twice := next((each for each, count in counts.items() if count > 1), None):
        raise _wrong(at, "cases", f"two cases have the name {twice!r}; give each its own")
    return made


def _own_words(data: Mapping[Any, Any], at: Location, where: str) -> dict[str, Any]:
    """The data in haft's own words, without changing any value."""
    found: dict[str, Any] = {}
    written: dict[str, Any] = {}
    expect: dict[str, Any] = {}
    for key, value in data.items():
        path = f"{where}.{key}".lstrip(".")
        name = _OTHER_NAMES.get(key, key) if isinstance(key, str) else str(key)
        if name.startswith("expect."):
            expect[name.removeprefix("expect.")] = (key, value)
            continue
        if name not in _KEYS:
            near = near_miss(name, (*_KEYS, *_OTHER_NAMES))
            raise _wrong(at, path, f"a scenario has no `{name}`" + (f"; did you mean `{near}`?" if near else ""))
        if name in found:
            raise _wrong(at, path, f"`{key}` says again what `{written[name]}` says; keep one of them")
        found[name], written[name] = value, key
    if expect:
        own = found.get("expect", {})
        if not isinstance(own, Mapping):
            raise _wrong(at, f"{where}.expect".lstrip("."), "must be a table")
        for part, (key, value) in expect.items():
            if part in own:
                path = f"{where}.{key}".lstrip(".")
                raise _wrong(at, path, f"`{key}` says again what `expect.{part}` says; keep one of them")
            own = {**own, part: value}
        found["expect"] = own
    return found


def _merged(shared: Mapping[str, Any], case: Mapping[str, Any]) -> dict[str, Any]:
    """What all cases share, with what one case says instead."""
    merged = dict(shared)
    for key, value in case.items():
        before = merged.get(key)
        if isinstance(before, Mapping) and isinstance(value, Mapping) and key not in _WHOLE:
            value = _merged(before, value)
        merged[key] = value
    return merged


def _without_removed_files(whole: dict[str, Any], shared: Mapping[str, Any]) -> dict[str, Any]:
    """A scenario without the shared files that are null in its case."""
    files, given = whole.get("files"), shared.get("files")
    if isinstance(files, Mapping) and isinstance(given, Mapping):
        kept = {path: each for path, each in files.items() if each is not None or given.get(path) is None}
        return {**whole, "files": kept}
    return whole


def _lines_of_cases(at: Location) -> dict[str, dict[str, int]]:
    """The lines of the parts of each case, by the place of the case; under "" those of the parts that all share."""
    found: dict[str, dict[str, int]] = {"": {}}
    for key, line in at.keys.items():
        if not key.startswith("cases"):
            found[""][key] = line
        elif len(words := key.split(".", 2)) == 3:
            found.setdefault(".".join(words[:2]), {})[words[2]] = line
    return found


def _case_location(at: Location, where: str, lines: Mapping[str, Mapping[str, int]]) -> Location:
    """Where a case is written: its own lines, and for all other parts those of the whole scenario."""
    return Location(at.path, at.line_of(where), {**lines[""], **lines.get(where, {})})


def _scenario(data: Mapping[str, Any], name: str, directory: str, at: Location) -> Scenario:
    def within(key: str) -> Where:
        return _within(at, key)

    if "tool" not in data:
        raise _wrong(at, "", "a scenario needs `tool`: the name of a tool, or its path")
    expect = data.get("expect", {})
    if not isinstance(expect, Mapping):
        raise _wrong(at, "expect", "must be a table")
    kind, options = fault(within("fault"), data.get("fault"))
    if kind is not None and (wrong := faults.wrong_option(kind, options)) is not None:
        raise _wrong(at, "fault", f"of the kind {kind} {wrong}")
    if kind is not None and data.get("clock") is not None:
        raise _wrong(at, "clock", "and `fault` cannot both be in a scenario; make two cases")
    tool = parts.name(within("tool"), data["tool"])
    if not tool:
        raise _wrong(at, "tool", "must not be empty")
    git, uncommitted = _repository(within("git"), data.get("git", False))
    return Scenario(
        tool=tool,
        args=json_table(within("args"), data.get("args", {})),
        name=name,
        directory=directory,
        load=texts(within("load"), data.get("load", ())),
        files=given_files(within("files"), data.get("files", {})),
        git=git,
        uncommitted=uncommitted,
        programs=programs(within("programs"), data.get("programs", {})),
        mcp=mcp_servers(within("mcp"), data.get("mcp", {})),
        env={
            key: parts.name(within(f"env.{key}"), value)
            for key, value in table(within("env"), data.get("env", {})).items()
        },
        approve=answers(within("approve"), data.get("approve", "all")),
        cwd=_cwd(within("cwd"), data.get("cwd")),
        config=json_table(within("config"), data.get("config", {})),
        settings=_settings(within("settings"), data.get("settings", {})),
        grant=json_table(within("grant"), data.get("grant", {})),
        network=boolean(within("network"), data.get("network", False)),
        unguarded=boolean(within("unguarded"), data.get("unguarded", False)),
        timeout=number(within("timeout"), data.get("timeout")),
        clock=number(within("clock"), data.get("clock")),
        fault=kind,
        fault_options=options,
        expect=_expected(expect, at),
        location=at,
    )


def _expected(data: Mapping[str, Any], at: Location) -> Expected:
    def within(key: str) -> Where:
        return _within(at, f"expect.{key}")

    for key in data:
        if key not in _EXPECT_KEYS:
            near = near_miss(str(key), _EXPECT_KEYS)
            hint = f"; did you mean `{near}`?" if near else f"; there are {', '.join(_EXPECT_KEYS)}"
            raise _wrong(at, f"expect.{key}", f"`expect` has no `{key}`{hint}")
    error = error_code(within("error"), data.get("error"))
    status = None if data.get("status") is None else text(within("status"), data["status"])
    if status is not None and status not in _STATUSES:
        raise _wrong(at, "expect.status", f"must be one of {', '.join(_STATUSES)}, not {status!r}")
    changed = data.get("only_changed")
    return Expected(
        status=status,
        error=error,
        message=text_match(within("message"), data.get("message")),
        output=text_match(within("output"), data.get("output")),
        stderr=text_match(within("stderr"), data.get("stderr")),
        result=json_value(within("result"), data["result"]) if "result" in data else UNSET,
        exit=whole_number(within("exit"), data.get("exit")),
        files=expected_files(within("files"), data.get("files", {})),
        only_changed="any" if changed == "any" else None if changed is None else texts(within("only_changed"), changed),
        programs=expected_calls(within("programs"), data.get("programs")),
        decision=decision(within("decision"), data.get("decision", {})),
        asked=whole_number(within("asked"), data.get("asked")),
        crashes=None if data.get("crashes") is None else boolean(within("crashes"), data["crashes"]),
        children=_children(within("children"), data.get("children", "none")),
    )


def _repository(where: Where, value: Any) -> tuple[bool, Mapping[str, GivenFile]]:
    """Whether the workspace is a git repository, and the files that are not committed."""
    if not isinstance(value, Mapping):
        return boolean(where, value), {}
    if set(value) != {"uncommitted"}:
        raise where.wrong("must be true, false or a table with the key `uncommitted`")
    return True, given_files(where / "uncommitted", value["uncommitted"])


def _children(where: Where, value: Any) -> Literal["none", "any"]:
    if value == "none":
        return "none"
    if value == "any":
        return "any"
    raise where.wrong(f"must be `none` or `any`, not {value!r}")


def _settings(where: Where, value: Any) -> dict[str, Any]:
    """Settings by their dotted names."""
    from haft.config import from_caller

    found = _dotted(json_table(where, value))
    for name, each in found.items():
        try:
            tuple(from_caller({name: each}))
        except BadConfig as error:
            _source, _colon, wrong = error.message.partition(": ")
            raise (where / name).wrong(f"`settings`: {wrong}" + (f"; {error.hint}" if error.hint else "")) from error
    return found


def _dotted(settings: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Settings by their dotted names. Tables of a configuration file become dotted names where haft has such names."""
    from haft.config import SETTINGS

    names = [each.name for each in SETTINGS]

    found: dict[str, Any] = {}
    for key, value in settings.items():
        name = f"{prefix}{key}"
        if isinstance(value, Mapping) and name not in names and any(each.startswith(f"{name}.") for each in names):
            found.update(_dotted(value, f"{name}."))
        else:
            found[name] = value
    return found


def _cwd(where: Where, value: Any) -> str | None:
    """A working directory relative to the workspace."""
    if value is None:
        return None
    path = parts.name(where, value)
    if path == _HARNESS_WORKSPACE or path.startswith(f"{_HARNESS_WORKSPACE}/"):
        path = path.removeprefix(_HARNESS_WORKSPACE).lstrip("/") or "."
    if path.startswith("/"):
        raise where.wrong(f"must be relative to the workspace, or begin with {_HARNESS_WORKSPACE}")
    return path


class Where:
    """The place of one part of a scenario, for messages."""

    def __init__(self, at: Location, path: str) -> None:
        self._at = at
        self._path = path

    def __truediv__(self, key: object) -> Where:
        return Where(self._at, f"{self._path}.{key}")

    def wrong(self, message: str) -> BadUsage:
        return _wrong(self._at, self._path, message)


def _within(at: Location, path: str) -> Where:
    return Where(at, path)


def _wrong(at: Location, path: str, message: str) -> BadUsage:
    where = "" if at.path == PYTHON else f"{at.path}:{at.line_of(path)}: "
    named = f"`{path}` {message}" if path and not message.startswith(("`", "a ", "each ", "two ")) else message
    return BadUsage(f"{where}{named}", hint="docs/guides/testing-tools.md shows the form of a scenario")
