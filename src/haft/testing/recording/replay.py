"""Replays the draft of a scenario, and weakens those expectations that differ from run to run.

A text that differs from replay to replay is weakened: if it differs only in times, the placeholder `<time>` stands for
them; else only those lines are expected that all runs have. A text that is the same in two replays, but differs from
the run, is refused, and so is a replay that ends differently or changes other files: the scenario would lack something
that the call needs.

A secret is masked in the scenario, so the tool gets the mark in its place. Where the tool prints the mark, the replay's
text is expected. Where the mark changes the text in another way, this text is weakened too. So no secret that only the
run had, and that haft did not recognize, can be left in an expectation.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from typing import Any, Final

from haft.contracts import MARK, BadUsage, ToolFailed
from haft.lazy import regex
from haft.testing.reading import scenarios_from
from haft.testing.recording.drafting import Draft
from haft.testing.recording.secret_finder import PLACEHOLDER
from haft.testing.running import run_scenario
from haft.testing.scenarios import Mismatch, Scenario
from haft.testing.scenarios.masks import without_changing_times, without_times
from haft.values import replace

_TEXTS: Final = ("expect.output", "expect.stderr", "expect.message", "expect.files.")
_MOST_ROUNDS: Final = 4
_MOST_MARKS: Final = 100
_MARKS: Final = regex(f"{re.escape(MARK)}|{PLACEHOLDER}")
_HASH: Final = regex(r"\b[0-9a-f]{7,64}\b")
_GIT: Final = regex(r"(^|/)\.git[/ ]")
_MUCH: Final = 1_000
_LEAST: Final = 3
"""How many characters a line must have to be looked for anywhere in a text. A shorter one must be a whole line."""


class NotReproducible(ToolFailed):
    """A replay of the recorded run did something else than the run."""

    def __init__(self, run: str, mismatches: tuple[Mismatch, ...], *, git: bool = False) -> None:
        found = "\n".join(each.message for each in mismatches if not _is_in_git(each))
        if any(map(_is_in_git, mismatches)):
            found += "\nfiles of git changed that the run did not change"
        own = "; the replay had a git repository of its own, without the history of the workspace"
        super().__init__(
            f"{run} cannot be recorded, because a replay of it did something else. In the replay:\n{found.strip()}",
            hint="`--files GLOB` adds files of the workspace that the tool reads; no scenario was written" + own * git,
        )


async def confirmed(draft: Draft, run: str, folder: str, name: str, *, in_repository: bool) -> Draft:
    """The draft, weakened so that its replay passes. `in_repository` says that the workspace of the run is a git
    repository: the draft then gets one if its replay is more like the run with it. Raises `NotReproducible`."""
    found: tuple[Mismatch, ...] = ()
    for number in range(_MOST_ROUNDS):
        result = await run_scenario(scenario_of(draft, folder, name))
        if result.skipped is not None:
            raise BadUsage(f"{run} cannot be replayed on this machine: {result.skipped}")
        found = result.mismatches
        if found and in_repository and number == 0:
            found = await _with_repository(draft, found, folder, name)
        if not found:
            return draft
        git = "git" in draft.data
        if not all(map(_is_text, found)):
            raise NotReproducible(run, found, git=git)
        second = {each.path: each for each in (await run_scenario(scenario_of(draft, folder, name))).mismatches}
        for each in found:
            other = second.get(each.path)
            is_same = other is not None and other.actual == each.actual
            may_differ = _is_time(each) or _has_secret(each) or (in_repository and _is_hash(each))
            if is_same and not may_differ:
                raise NotReproducible(run, (each,), git=git)
            _weaken(draft, each, each.expected if other is None else other.actual)
    raise NotReproducible(run, found, git="git" in draft.data)


async def _with_repository(draft: Draft, found: tuple[Mismatch, ...], folder: str, name: str) -> tuple[Mismatch, ...]:
    """The mismatches of a replay in a git repository, which the draft then gets, if they are less than those found. The
    files are committed there, or none of them is."""
    data = {key: value for key, value in draft.data.items() if key not in ("files", "git", "expect")}
    files, expect = draft.data.get("files", {}), {"expect": draft.data["expect"]}
    given = {"files": files} if files else {}
    tries = [] if "git" in draft.data else [{**data, **given, "git": True, **expect}]
    tries += [{**data, "git": {"uncommitted": files}, **expect}] if files else []
    for each in tries:
        result = await run_scenario(scenario_of(replace(draft, data=each), folder, name))
        if result.skipped is None and _distance(result.mismatches) < _distance(found):
            draft.data, found = each, result.mismatches
    return found


def _distance(mismatches: tuple[Mismatch, ...]) -> int:
    """How much a replay differs from the run: in lines without times and hashes."""
    count = 0
    for each in mismatches:
        if _is_text(each) and isinstance(each.expected, str) and isinstance(each.actual, str):
            one, other = (Counter(_plain(text).splitlines()) for text in (each.expected, each.actual))
            count += (one - other).total() + (other - one).total()
        else:
            count += _MUCH
    return count


def scenario_of(draft: Draft, folder: str, name: str) -> Scenario:
    """The scenario of a draft, as if it were read from a file in `folder`."""
    return scenarios_from(draft.data, directory=folder, name=name)[0]


def _is_in_git(mismatch: Mismatch) -> bool:
    """Whether a file below a `.git` changed unexpectedly."""
    return mismatch.path == "expect.only_changed" and _GIT.search(str(mismatch.actual)) is not None


def _plain(text: str) -> str:
    return _HASH.sub("<hash>", without_times(text))


def _is_hash(mismatch: Mismatch) -> bool:
    """Whether a text differs only in hashes of git, and in times."""
    is_text = isinstance(mismatch.expected, str) and isinstance(mismatch.actual, str)
    return is_text and mismatch.path != "expect.result" and _plain(mismatch.expected) == _plain(mismatch.actual)


def _is_text(mismatch: Mismatch) -> bool:
    is_text = isinstance(mismatch.expected, str) and isinstance(mismatch.actual, str)
    return mismatch.path == "expect.result" or (
        is_text and mismatch.path.startswith(_TEXTS) and not mismatch.path.endswith(".mode")
    )


def _has_secret(mismatch: Mismatch) -> bool:
    """Whether the text of the run or of the replay has a masked secret."""
    texts = (mismatch.expected, mismatch.actual)
    return any(isinstance(each, str) and _MARKS.search(each) for each in texts)


def _is_masked_form(actual: str, expected: str) -> bool:
    """Whether a text is another one with marks in place of some of its parts."""
    parts = _MARKS.split(actual)
    if not 1 < len(parts) <= _MOST_MARKS:
        return False
    at = 0
    for part in parts:
        found = expected.find(part, at)
        if found < 0:
            return False
        at = found + len(part)
    return expected.startswith(parts[0]) and expected.endswith(parts[-1])


def _is_time(mismatch: Mismatch) -> bool:
    """Whether a text differs only in times."""
    if not isinstance(mismatch.expected, str) or mismatch.path == "expect.result":
        return False
    return without_times(mismatch.expected) == without_times(mismatch.actual)


def _weaken(draft: Draft, mismatch: Mismatch, third: Any) -> None:
    """Weaken an expectation so that it holds for the run, for the mismatch of a replay, and for a third text."""
    expect = draft.data["expect"]
    part = mismatch.path.removeprefix("expect.").removesuffix(".contains").removesuffix(".matches")
    if part == "result":
        del expect["result"]
        draft.notes.append("the result differs from run to run, and is left out")
        return
    is_file = part.startswith("files.")
    table, key = (expect["files"], part.removeprefix("files.")) if is_file else (expect, part)
    held = table[key]
    what = f"the file {key}" if is_file else {"output": "the output", "stderr": "stderr"}.get(key, "the message")
    if mismatch.path.endswith(".contains"):
        weaker: Any = _without(held, mismatch.expected)
    elif mismatch.path.endswith(".matches"):  # The short lines come in another order.
        weaker = {key: each for key, each in held.items() if key != "matches"} or None
    else:
        weaker = None if isinstance(held, Mapping) and "base64" in held else _weaker(mismatch, third)
    if weaker is None:
        draft.notes.append(f"{what} differs from run to run, and is not compared")
    elif not isinstance(weaker, str):
        draft.notes.append(f"{what} differs from run to run: only lines that are always the same are compared")
    elif weaker == mismatch.actual and _is_hash(mismatch) and not _is_time(mismatch):
        draft.notes.append(f"hashes of commits in {what} are those of the replay")
    elif _MARKS.search(weaker):
        draft.notes.append(f"secrets are masked in {what}")
    else:
        draft.notes.append(f"times in {what} are not compared")
    if not is_file:
        if weaker is None:
            del table[key]
        else:
            table[key] = weaker
        return
    mode = {"mode": held["mode"]} if isinstance(held, Mapping) and "mode" in held else {}
    text = {"content": weaker} if isinstance(weaker, str) else weaker or {"kind": "file"}
    table[key] = weaker if isinstance(weaker, str) and not mode else {**text, **mode}


def _without(held: Mapping[str, Any], line: str) -> dict[str, Any] | None:
    """An expectation of lines without one of them; None if none is left."""
    lines = [each for each in held["contains"] if each != line]
    rest = {key: each for key, each in held.items() if key != "contains"}
    return {**rest, "contains": lines} if lines else rest or None


def _weaker(mismatch: Mismatch, third: Any) -> Any:
    """What always holds of a text that differs: the text without times, or some of its lines; None if nothing does."""
    if mismatch.actual == third and _is_masked_form(mismatch.actual, mismatch.expected):
        return mismatch.actual
    if mismatch.actual == third and not _is_time(mismatch) and _is_hash(mismatch):
        return mismatch.actual
    timeless = without_changing_times(mismatch.expected, (mismatch.actual, third))
    if timeless is not None:
        return timeless
    there = set(mismatch.actual.splitlines()) & set(third.splitlines())
    lines = [each for each in dict.fromkeys(mismatch.expected.splitlines()) if each in there and each.strip()]
    long = [each for each in lines if len(each.strip()) >= _LEAST]
    short = [each for each in lines if each not in long]
    found: dict[str, Any] = {"contains": long} if long else {}
    if short:
        found["matches"] = "(?ms)" + ".*".join(f"^{re.escape(each)}$" for each in short)
    return found or None
