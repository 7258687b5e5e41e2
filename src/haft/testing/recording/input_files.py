"""The files that a scenario of a past run needs before its call: those that the run changed, those that its arguments
name, and those that a person asked for."""

from __future__ import annotations

import base64
import fnmatch
import os
import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from haft.contracts import texts_in
from haft.testing.calls import git_of
from haft.testing.recording.past_run import FileState, PastRun, PastRuns
from haft.values import dataclass, field

MOST_FILES: Final = 200
"""How many files an argument, or the patterns of a person, may add."""
USUAL_MODES: Final = (0o644, 0o664, 0o600)
"""Modes that a recording does not name."""
_SKIPPED: Final = frozenset({".git", ".hg", "node_modules", "__pycache__", ".venv", "venv"})


@dataclass
class InputFiles:
    """Files before the call, by their paths in the workspace."""

    files: dict[str, FileState] = field(default_factory=dict)
    asked: set[str] = field(default_factory=set)
    """The paths that a person asked for."""
    notes: list[str] = field(default_factory=list)


def input_files(runs: PastRuns, run: PastRun, globs: Sequence[str]) -> InputFiles:
    """The files before the call, as far as haft knows them. The notes say what is not known."""
    found = InputFiles()
    for changed in run.changed:
        if changed.before is not None:
            found.files[changed.path] = changed.before
    created = {each.path for each in run.changed if each.before is None}
    _collect(found, runs, run, "the arguments", _named(run), created)
    found.asked.update(_matching(run, globs, found.notes))
    _collect(found, runs, run, "--files", iter(sorted(found.asked)), created)
    return found


def _collect(
    found: InputFiles, runs: PastRuns, run: PastRun, what: str, paths: Iterator[str], created: set[str]
) -> None:
    count = 0
    for path in paths:
        if path in found.files or path in created or git_of(path) is not None:
            continue
        state = runs.before(run, path)
        if state is None:
            continue
        if count == MOST_FILES:
            found.notes.append(f"{what}: only the first {MOST_FILES} files are in the scenario")
            return
        count += 1
        if state.changed_since:
            found.notes.append(f"{path} changed after the run; the scenario has its present content")
        if state.kind == "file" and state.content is None:
            found.notes.append(f"{path} is left out, because it is too large or cannot be read")
            continue
        found.files[path] = state


def _named(run: PastRun) -> Iterator[str]:
    """The paths that the arguments name, with the files below them."""
    cwd = str(run.record.record["cwd"] or ".")
    for text in texts_in(run.record.record["arguments"]):
        for word in (text, *_words(text)):
            path = _inside(run.workspace, cwd, word)
            if path is not None and path != "." and _may_exist(run, path):
                yield from _below(run.workspace, path)


def _may_exist(run: PastRun, path: str) -> bool:
    return os.path.lexists(os.path.join(run.workspace, path)) or any(each.path == path for each in run.changed)


def _words(text: str) -> list[str]:
    """The words of a command line; none if the text is not like one."""
    if len(text) > 10_000:
        return []
    lexer = shlex.shlex(text, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    try:
        words = list(lexer)
    except ValueError:
        return []
    return [part for word in words for part in (word, word.partition("=")[2]) if part]


def _inside(workspace: str, cwd: str, word: str) -> str | None:
    """A path relative to the workspace; None if the word cannot be one."""
    if not word or len(word) > 4_096 or "\0" in word or "\n" in word:
        return None
    full = os.path.normpath(os.path.join(workspace, cwd, word))
    if full != workspace and not full.startswith(workspace.rstrip("/") + "/"):
        return None
    return os.path.relpath(full, workspace)


def _below(workspace: str, path: str) -> Iterator[str]:
    full = os.path.join(workspace, path)
    if not os.path.isdir(full) or os.path.islink(full):
        yield path
        return
    is_empty = True
    for at, folders, files in os.walk(full):
        folders[:] = sorted(each for each in folders if each not in _SKIPPED)
        for name in sorted(files):
            is_empty = False
            yield os.path.relpath(os.path.join(at, name), workspace)
    if is_empty:
        yield path


def _matching(run: PastRun, globs: Sequence[str], notes: list[str]) -> Iterator[str]:
    """The files of the workspace that match a pattern. `*` also matches slashes."""
    paths = list(_below(run.workspace, ".")) if globs else []
    for glob in globs:
        found = [path for path in paths if fnmatch.fnmatchcase(path, glob) or path.startswith(f"{glob.rstrip('/')}/")]
        if git_of(glob) is not None:
            notes.append(f"`--files {glob}` adds nothing, because files of git are left out")
        elif not found:
            notes.append(f"`--files {glob}` matches no file; {', '.join(sorted(_SKIPPED))} are left out")
        yield from found


def written_files(files: Mapping[str, FileState]) -> dict[str, Any]:
    """The files as a scenario has them under `files`."""
    found: dict[str, Any] = {}
    for path, state in sorted(files.items()):
        if state.kind == "directory":
            if not any(other.startswith(f"{path}/") for other in files):
                found[f"{path}/"] = None
        elif state.kind == "link":
            found[path] = {"link": state.target}
        else:
            content = encoded(state.content or b"")
            mode = {} if state.mode in USUAL_MODES else {"mode": f"{state.mode:o}"}
            found[path] = {**content, **mode} if mode or "base64" in content else content["content"]
    return found


def encoded(data: bytes) -> dict[str, str]:
    """The content of a file as a text, or as base64 if it is none."""
    try:
        return {"content": data.decode()}
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(data).decode()}
