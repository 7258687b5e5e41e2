"""Finds the directory in which a call works."""

from __future__ import annotations

import os
from collections.abc import Callable

from haft.config.locations import WORKSPACE_FILES
from haft.config.ownership import EFFECTIVE_FILES, ForeignFile, foreign_file_in, has_effective_files
from haft.contracts import BadConfig
from haft.files import is_repository_top, secrets_of_root

KERNELS = ("/dev", "/proc", "/sys")


def find_workspace(
    start: str, state_home: str, on_skipped: Callable[[ForeignFile], None] = lambda _foreign_file: None
) -> str:
    """The nearest directory from `start` upward that is marked as a workspace; `start` itself if there is none. `/`,
    the home directory and the state home are never chosen implicitly. A workspace in which other users put files, or
    could have, is used only if the person trusted it. Each workspace that is skipped for this reason is reported to
    `on_skipped`."""
    refused = {os.path.realpath(path) for path in ("/", os.path.expanduser("~"), state_home)}
    start = os.path.abspath(start)
    here, found, skipped = start, None, []
    while found is None:
        if os.path.realpath(here) not in refused and _is_marked(here):
            foreign = _foreign_file(here, state_home)
            if foreign is None:
                found = here
            else:
                skipped.append(foreign)
        above = os.path.dirname(here)
        if above == here:
            break
        here = above
    for foreign in skipped:
        if found is not None or foreign.workspace != start:
            on_skipped(foreign)
    if found is not None:
        return found
    if os.path.realpath(start) in refused:
        raise BadConfig(
            f"haft does not use {start} as a workspace unless you name it", hint="name a directory: `-w DIR`"
        )
    if has_effective_files(start) and (foreign := _foreign_file(start, state_home)) is not None:
        raise BadConfig(foreign.sentence(), hint=foreign.hint())
    return start


def _is_marked(directory: str) -> bool:
    return is_repository_top(directory) or any(
        os.path.lexists(os.path.join(directory, name)) for name in WORKSPACE_FILES
    )


def _foreign_file(workspace: str, state_home: str) -> ForeignFile | None:
    """The file of another user that forbids the use of a workspace; None if the workspace may be used."""
    foreign = foreign_file_in(workspace, (*EFFECTIVE_FILES, ".git"))
    if foreign is None:
        return None
    from haft.config.trust_store import is_workspace_trusted

    return None if is_workspace_trusted(state_home, workspace) else foreign


def check_workspace(path: str, state_home: str) -> str:
    """The absolute path of the directory that the person named as the workspace; raises `BadConfig` if this directory
    cannot be a workspace."""
    path = os.path.abspath(os.path.expanduser(path))
    if not os.path.isdir(path):
        raise BadConfig(f"the workspace {path} is not a directory")
    inside = os.path.realpath(state_home) + os.sep
    if inside.startswith(os.path.realpath(path).rstrip(os.sep) + os.sep):
        raise BadConfig(
            f"the workspace {path} contains the state home {state_home}: a tool could rewrite the audit log",
            hint="set HAFT_HOME to a directory outside the workspace",
        )
    of_kernel = next((each for each in KERNELS if (os.path.realpath(path) + os.sep).startswith(each + os.sep)), None)
    if of_kernel is not None:
        raise BadConfig(
            f"the workspace {path} lies in {of_kernel}, and each call has its own {of_kernel}",
            hint="use another directory",
        )
    masked = next(
        (each for each in secrets_of_root() if (os.path.realpath(path) + os.sep).startswith(each + os.sep)), None
    )
    if masked is not None:
        raise BadConfig(
            f"the workspace {path} lies in {masked}, which is hidden from tools that root runs",
            hint="use another directory, or run haft as another user",
        )
    if (os.path.realpath(path) + os.sep).startswith(inside):
        raise BadConfig(
            f"the workspace {path} lies in the state home {state_home}, which no call can see",
            hint="use another directory, or set HAFT_HOME",
        )
    return path
