"""Compares what a call did with what its scenario expects. Collects every mismatch; none stops the comparison."""

from __future__ import annotations

import fnmatch
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from haft.testing.crashes import crash_of
from haft.testing.scenarios.masks import masked_like, masked_value
from haft.testing.scenarios.scenario import UNSET, Expected, ExpectedFile, Mismatch, ProgramCall, TextMatch
from haft.testing.scenarios.snapshots import FoundFile, differences, read_file
from haft.values import dataclass, replace

_ABSENT: Final = "(no such file)"
_MOST_SHOWN: Final = 20_000


@dataclass(frozen=True)
class Observed:
    """What a call did."""

    outcome: Mapping[str, Any]
    """The outcome as JSON."""
    workspace: str
    before: Mapping[str, FoundFile]
    after: Mapping[str, FoundFile]
    calls: Sequence[Mapping[str, Any]] = ()
    """The recorded calls of stubs, in their order: `program`, `args`, `stdin`, `cwd`, `env`."""
    asked: int = 0
    """How many approvals were asked for."""
    unused: int = 0
    """How many answers to approval requests are left."""
    problems: Sequence[str] = ()
    """Why the recorded calls do not hold, in sentences."""
    broken_promise: str | None = None
    """In what the result breaks the output schema of the tool."""
    is_repository: bool = False
    """Whether the workspace was a git repository before the call, whose `.git` every call of git changes."""


def mismatches(expected: Expected, observed: Observed) -> tuple[Mismatch, ...]:
    """Everything that is not as expected."""
    return (
        *_outcome(expected, observed),
        *_texts(expected, observed),
        *_result(expected, observed),
        *_promise(observed),
        *_files(expected, observed),
        *_other_changes(expected, observed),
        *_calls(expected, observed),
        *_children(expected, observed),
        *_decision(expected, observed),
        *(Mismatch("programs", None, None, f"Program stubs: {problem}") for problem in observed.problems),
    )


def _differs(path: str, what: str, expected: Any, actual: Any, note: str = "") -> Mismatch:
    """A mismatch in the form that test harnesses print."""
    message = f"{what} mismatch:\nExpected: {_shown(expected)}\nActual: {_shown(actual)}"
    return Mismatch(path, expected, actual, message, note)


def _shown(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}… ({len(text):,} characters)"


# The outcome.


def _outcome(expected: Expected, observed: Observed) -> Iterator[Mismatch]:
    outcome = observed.outcome
    error = outcome.get("error") or {}
    status = expected.status or ("done" if expected.error is None else "error")
    if outcome["status"] != status:
        reason = f" ({error['code']}: {error['message']})" if error else ""
        yield Mismatch(
            "expect.status",
            status,
            outcome["status"],
            f"Status mismatch:\nExpected: {status}\nActual: {outcome['status']}{reason}",
        )
    elif expected.error is not None and error.get("code") != expected.error:
        reason = f" ({error['message']})" if error else ""
        code = error.get("code")
        yield Mismatch(
            "expect.error",
            expected.error,
            code,
            f"Error code mismatch:\nExpected: {expected.error}\nActual: {code}{reason}",
        )
    if expected.exit is not None and outcome["exitCode"] != expected.exit:
        actual = outcome["exitCode"]
        shown = "none, because the tool is no program or was not started" if actual is None else actual
        message = f"Exit code mismatch:\nExpected: {expected.exit}\nActual: {shown}"
        yield Mismatch("expect.exit", expected.exit, actual, message)
    crash = crash_of(outcome)
    if expected.crashes is not None and expected.crashes != (crash is not None):
        message = "The tool did not crash" if crash is None else f"The tool crashed: {crash}"
        yield Mismatch("expect.crashes", expected.crashes, crash is not None, message)
    if expected.asked is not None and observed.asked != expected.asked:
        yield _differs("expect.asked", "Number of approval requests", expected.asked, observed.asked)
    if observed.unused:
        answers = f"{observed.unused} answers" if observed.unused > 1 else "1 answer"
        message = f"{answers} to approval requests {'were' if observed.unused > 1 else 'was'} not used"
        yield Mismatch("approve", observed.asked + observed.unused, observed.asked, message)


def _texts(expected: Expected, observed: Observed) -> Iterator[Mismatch]:
    outcome = observed.outcome
    error = outcome.get("error") or {}
    for part, match, actual in (
        ("output", expected.output, outcome["output"]),
        ("stderr", expected.stderr, outcome["stderr"]),
        ("message", expected.message, error.get("message", "")),
    ):
        if match is not None:
            title = {"output": "Output", "stderr": "Stderr", "message": "Error message"}[part]
            yield from _text(f"expect.{part}", title, match, actual or "", observed.workspace)


def _text(path: str, what: str, match: TextMatch, actual: str, workspace: str) -> Iterator[Mismatch]:
    if match.equals is not None:
        found = masked_like(match.equals, actual, workspace)
        if found != match.equals:
            yield _differs(path, what, match.equals, found)
    for each in match.contains:
        found = masked_like(each, actual, workspace)
        if each not in found:
            message = f"{what} mismatch:\nExpected: a text that contains {_quoted(each)}\nActual: {_shown(found)}"
            yield Mismatch(f"{path}.contains", each, found, message)
    if match.matches is not None:
        found = masked_like(match.matches, actual, workspace)
        if not re.search(match.matches, found):
            wanted = f"a text that matches the regular expression {match.matches}"
            message = f"{what} mismatch:\nExpected: {wanted}\nActual: {_shown(found)}"
            yield Mismatch(f"{path}.matches", match.matches, found, message)


def _named(path: str) -> str:
    """The name of a file on one line: a tool may have chosen it."""
    return path if path.isprintable() else _quoted(path)


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _result(expected: Expected, observed: Observed) -> Iterator[Mismatch]:
    if expected.result is UNSET:
        return
    actual = masked_value(expected.result, observed.outcome["result"], observed.workspace)
    if not _same(expected.result, actual):
        yield _differs("expect.result", "Result", _dumped(expected.result), _dumped(actual))


def _same(one: Any, other: Any) -> bool:
    """Whether two JSON values are equal; unlike in Python, true is not 1."""
    return _dumped(one) == _dumped(other) or (
        isinstance(one, int | float) and not isinstance(one, bool) and not isinstance(other, bool) and one == other
    )


def _dumped(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True, indent=2)


# Files.


def _promise(observed: Observed) -> Iterator[Mismatch]:
    if observed.broken_promise is not None:
        message = f"The result breaks the output schema of the tool: {observed.broken_promise}"
        yield Mismatch("expect.result", "a result that fits the output schema", observed.outcome["result"], message)


def _files(expected: Expected, observed: Observed) -> Iterator[Mismatch]:
    for path, file in expected.files.items():
        yield from _file(f"expect.files.{path}", path, file, observed)


def _file(at: str, path: str, expected: ExpectedFile, observed: Observed) -> Iterator[Mismatch]:
    found = observed.after.get(path)
    if not expected.exists:
        if found is not None:
            message = f"File {_named(path)} mismatch:\nExpected: {_ABSENT}\nActual: a {found.kind} that exists"
            yield Mismatch(at, None, found.kind, message)
        return
    if found is None:
        wanted = "a file that exists"
        if isinstance(expected.content, TextMatch) and expected.content.equals is not None:
            wanted = expected.content.equals
        elif expected.kind is not None:
            wanted = f"a {expected.kind} that exists"
        message = f"File {_named(path)} content mismatch:\nExpected: {wanted}\nActual: {_ABSENT}"
        note = "`files` has names; only `only_changed` has patterns." if any(each in path for each in "*?[") else ""
        yield Mismatch(at, wanted, None, message, note)
        return
    if expected.kind is not None and found.kind != expected.kind:
        yield _differs(at, f"File {_named(path)} kind", expected.kind, found.kind)
        return
    if expected.target is not None and found.target != expected.target:
        yield _differs(at, f"Link {_named(path)} target", expected.target, found.target)
    before = observed.before.get(path)
    if expected.mode is not None and found.mode != expected.mode:
        note = "The call made the file." if before is None else f"Before the call: {before.mode:o}"
        yield _differs(f"{at}.mode", f"File {_named(path)} mode", f"{expected.mode:o}", f"{found.mode:o}", note)
    if expected.content is not None:
        did = "made" if before is None else "did not change" if before.digest == found.digest else "changed"
        for each in _content(
            at, path, expected.content, read_file(observed.workspace, path) or b"", observed.workspace
        ):
            yield replace(each, note=f"The call {did} the file.")


def _content(at: str, path: str, expected: TextMatch | bytes, data: bytes, workspace: str) -> Iterator[Mismatch]:
    if isinstance(expected, bytes):
        if data != expected:
            yield _differs(at, f"File {_named(path)} content", _bytes(expected), _bytes(data))
        return
    actual = data.decode("utf-8", "surrogateescape")
    yield from _text(at, f"File {_named(path)} content", expected, actual, workspace)


def _bytes(data: bytes) -> str:
    return f"{len(data)} bytes: {data[:64].hex(' ')}{' …' if len(data) > 64 else ''}"


def _other_changes(expected: Expected, observed: Observed) -> Iterator[Mismatch]:
    if expected.only_changed == "any":
        return
    patterns = expected.only_changed or ()
    allowed = (*patterns, *expected.files)
    ignored = observed.is_repository and not any(f"{each}/".startswith(".git/") for each in patterns)
    names = "`expect.files` does not name it"
    if expected.only_changed is not None:
        names = "neither `expect.only_changed` nor `expect.files` names it"
    for path, what in differences(observed.before, observed.after).items():
        if ignored and path.partition("/")[0] == ".git":
            continue
        if path in expected.files or any(_covers(each, path) for each in patterns):
            continue
        if observed.after.get(path, observed.before.get(path)).kind == "directory" and _has_allowed(path, allowed):  # type: ignore[union-attr]
            continue
        wanted = "unchanged" if path in observed.before else "no such file"
        message = f"File {_named(path)} mismatch:\nExpected: {wanted}, because {names}\nActual: {what}"
        before, after = observed.before.get(path), observed.after.get(path)
        old, new = "" if before is None else before.text, None if after is None else after.text
        change = (old, new) if what in ("created", "changed") and old is not None and new is not None else None
        note = "" if new != "" else "The file is empty now." if path in observed.before else "The file is empty."
        yield Mismatch("expect.only_changed", "unchanged", f"{_named(path)} {what}", message, note, change)


def _covers(pattern: str, path: str) -> bool:
    """Whether a path, or a glob pattern, of the scenario names a path. `**` and `*` also match slashes."""
    return path == pattern.rstrip("/") or fnmatch.fnmatchcase(path, pattern)


def _has_allowed(directory: str, allowed: Sequence[str]) -> bool:
    """Whether a directory may appear or vanish because a path inside may."""
    return any(each.startswith(f"{directory}/") for each in allowed)


# Processes, programs and the decision.


def _children(expected: Expected, observed: Observed) -> Iterator[Mismatch]:
    """Processes that a call left behind although it was done. A call that failed may have had no time to end them."""
    left = [each["command"] for each in observed.outcome.get("endedChildren") or ()]
    if left and expected.children == "none" and observed.outcome["status"] == "done":
        actual = "\n".join(left)
        message = f"Processes left behind mismatch:\nExpected: (none)\nActual: {_shown(actual)}"
        yield Mismatch("expect.children", "none", actual, message)


def _calls(expected: Expected, observed: Observed) -> Iterator[Mismatch]:
    if expected.programs is None:
        return
    actual = [_line(each) for each in observed.calls]
    wanted = [_wanted_line(each) for each in expected.programs]
    fits = len(actual) == len(wanted) and all(
        _is_call(one, other) for one, other in zip(expected.programs, observed.calls, strict=True)
    )
    if not fits:
        yield _differs(
            "expect.programs", "Program calls", "\n".join(wanted) or "(no calls)", "\n".join(actual) or "(no calls)"
        )
        return
    for index, (one, other) in enumerate(zip(expected.programs, observed.calls, strict=True)):
        yield from _call(f"expect.programs.{index}", one, other, observed.workspace)


def _is_call(expected: ProgramCall, actual: Mapping[str, Any]) -> bool:
    return expected.program == actual["program"] and (expected.args is None or expected.args == tuple(actual["args"]))


def _call(at: str, expected: ProgramCall, actual: Mapping[str, Any], workspace: str) -> Iterator[Mismatch]:
    name = f"Call of {_line(actual)}"
    if expected.stdin is not None:
        yield from _text(f"{at}.stdin", f"{name}: stdin", expected.stdin, actual["stdin"], workspace)
    if expected.cwd is not None:
        cwd = "." if actual["cwd"] == workspace else actual["cwd"].removeprefix(f"{workspace}/")
        if cwd != expected.cwd.rstrip("/"):
            yield _differs(f"{at}.cwd", f"{name}: working directory", expected.cwd, cwd)
    for key, value in expected.env.items():
        if actual["env"].get(key) != value:
            shown = [each if each is not None else "(not set)" for each in (value, actual["env"].get(key))]
            yield _differs(f"{at}.env.{key}", f"{name}: variable {key}", *shown)


def _line(call: Mapping[str, Any]) -> str:
    return " ".join([_word(call["program"]), *map(_word, call["args"])])


def _wanted_line(call: ProgramCall) -> str:
    return f"{_word(call.program)} …" if call.args is None else " ".join([_word(call.program), *map(_word, call.args)])


def _word(word: str) -> str:
    return word if re.fullmatch(r"[\w@%+=:,./-]+", word) else _quoted(word)


def _decision(expected: Expected, observed: Observed) -> Iterator[Mismatch]:
    actual = observed.outcome.get("decision") or {}
    for key, value in expected.decision.items():
        if actual.get(key) != value:
            yield _differs(f"expect.decision.{key}", f"Decision: {key}", value, actual.get(key))
