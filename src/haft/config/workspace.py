"""Which directory a call works in."""

from __future__ import annotations

import os
from collections.abc import Callable

from haft.config.locations import WORKSPACE_FILES
from haft.config.ownership import BROUGHT, Stranger, brings_something, stranger_in
from haft.contracts import BadConfig
from haft.files import secrets_of_root

MARKS = (*WORKSPACE_FILES, ".git")
KERNELS = ("/dev", "/proc", "/sys")


def find_workspace(
    start: str, state_home: str, passed_over: Callable[[Stranger], None] = lambda _stranger: None
) -> str:
    """The nearest directory from `start` upward that is marked as a workspace, else `start`. `/`, the home directory
    and the state home are never taken by themselves. A workspace in which others put something, or could have, counts
    only if the person trusted it; each one is told to `passed_over`."""
    refused = {os.path.realpath(path) for path in ("/", os.path.expanduser("~"), state_home)}
    start = os.path.abspath(start)
    here, found, strangers = start, None, []
    while found is None:
        if os.path.realpath(here) not in refused and any(os.path.lexists(os.path.join(here, mark)) for mark in MARKS):
            stranger = _stranger(here, state_home)
            if stranger is None:
                found = here
            else:
                strangers.append(stranger)
        above = os.path.dirname(here)
        if above == here:
            break
        here = above
    for stranger in strangers:
        if found is not None or stranger.workspace != start:
            passed_over(stranger)
    if found is not None:
        return found
    if os.path.realpath(start) in refused:
        raise BadConfig(f"{start} is not taken as a workspace by itself", hint="name it: `-w DIR`")
    if brings_something(start) and (stranger := _stranger(start, state_home)) is not None:
        raise BadConfig(stranger.sentence(), hint=stranger.remedy())
    return start


def _stranger(workspace: str, state_home: str) -> Stranger | None:
    """Why a workspace does not count; None where it does."""
    stranger = stranger_in(workspace, (*BROUGHT, ".git"))
    if stranger is None:
        return None
    from haft.config.trusting import is_chosen

    return None if is_chosen(state_home, workspace) else stranger


def check_workspace(path: str, state_home: str) -> str:
    """A directory that was named, as an absolute path."""
    path = os.path.abspath(os.path.expanduser(path))
    if not os.path.isdir(path):
        raise BadConfig(f"the workspace {path} is not a directory")
    inside = os.path.realpath(state_home) + os.sep
    if inside.startswith(os.path.realpath(path).rstrip(os.sep) + os.sep):
        raise BadConfig(
            f"the workspace {path} contains the state home {state_home}: a tool could rewrite its own record",
            hint="set HAFT_HOME to a directory outside the workspace",
        )
    of_kernel = next((each for each in KERNELS if (os.path.realpath(path) + os.sep).startswith(each + os.sep)), None)
    if of_kernel is not None:
        raise BadConfig(
            f"the workspace {path} lies in {of_kernel}, of which each call has its own", hint="take another directory"
        )
    masked = next(
        (each for each in secrets_of_root() if (os.path.realpath(path) + os.sep).startswith(each + os.sep)), None
    )
    if masked is not None:
        raise BadConfig(
            f"the workspace {path} lies in {masked}, which is masked from tools that root runs",
            hint="take another directory, or run haft as another user",
        )
    if (os.path.realpath(path) + os.sep).startswith(inside):
        raise BadConfig(
            f"the workspace {path} lies in the state home {state_home}, which no call can see",
            hint="take another directory, or set HAFT_HOME",
        )
    return path
