"""Merges texts with `git merge-file`. git runs in an empty directory with copies of the files, in a sandbox in which it
can only read: neither the configuration of a repository nor attributes of the workspace count."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from typing import Final

from haft.changes import MergedText, Texts
from haft.contracts import Command, Limits, ToolFailed
from haft.files import Root, shown
from haft.sandbox import Mode, Sandbox
from haft.sources import run_briefly, stderr_summary

SECONDS: Final = 30.0
_MOST_CONFLICTS: Final = 127
"""`git merge-file` exits with the number of conflicts, at most this one. Higher codes are errors."""
_ENVIRONMENT: Final = {
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_TERMINAL_PROMPT": "0",
}
_SIDES: Final = ("ours", "base", "theirs")


async def merge_texts(
    texts: Sequence[Texts], run: str, state_home: str, env: Mapping[str, str], limits: Limits, mode: Mode
) -> list[MergedText]:
    """The merge of each file that both the run and somebody else have changed. Raises `ToolFailed` if git is missing or
    fails."""
    if not texts:
        return []
    folder = os.path.realpath(tempfile.mkdtemp(prefix="haft-merge-"))
    sandbox = Sandbox(folder, state_home, env, Root(folder).open_directory, limits, mode)
    try:
        return [await _merge(each, run, folder, sandbox) for each in texts]
    finally:
        sandbox.close()
        for kept, _target in sandbox.site.caches:  # The sandbox keeps a directory for each workspace.
            shutil.rmtree(os.path.dirname(kept), ignore_errors=True)
        shutil.rmtree(folder, ignore_errors=True)


async def _merge(texts: Texts, run: str, folder: str, sandbox: Sandbox) -> MergedText:
    for name, content in zip(_SIDES, (texts.ours, texts.base, texts.theirs), strict=True):
        with open(os.path.join(folder, name), "wb") as file:
            file.write(content)
    labels = [word for label in ("workspace", "before", run) for word in ("-L", label)]
    command = Command(
        ["git", "merge-file", "-p", "--diff3", *labels, *_SIDES],
        env={**_ENVIRONMENT, "GIT_CEILING_DIRECTORIES": os.path.dirname(folder)},
    )
    output = await run_briefly(command, sandbox.launcher("read-only"), seconds=SECONDS)
    code = output.exit_code
    if output.start_failure is not None:
        cure = "install git" if output.start_failure.startswith("`git`") else None
        raise ToolFailed(f"the files could not be merged: {output.start_failure}", hint=cure)
    if output.is_too_long or output.timed_out or code is None or code > _MOST_CONFLICTS:
        why = "it printed too much" if output.is_too_long else stderr_summary(output.stderr) or "git failed"
        raise ToolFailed(f"{shown(texts.path)} could not be merged: {why}")
    return MergedText(texts.path, output.stdout, is_clean=code == 0)
