"""Which directory a call works in."""

from __future__ import annotations

import os

from haft.contracts import BadConfig
from haft.service.standing import WORKSPACE_FILES

MARKS = (*WORKSPACE_FILES, ".git")


def find_workspace(start: str, state_home: str) -> str:
    """The nearest directory from `start` upward that is marked as one, else `start`. `/`, the home directory and
    the state home are never taken by themselves."""
    refused = {os.path.realpath(path) for path in ("/", os.path.expanduser("~"), state_home)}
    start = os.path.abspath(start)
    here = start
    while True:
        if os.path.realpath(here) not in refused and any(os.path.lexists(os.path.join(here, mark)) for mark in MARKS):
            return here
        above = os.path.dirname(here)
        if above == here:
            break
        here = above
    if os.path.realpath(start) in refused:
        raise BadConfig(f"{start} is not taken as a workspace by itself", hint="name it: `-w DIR`")
    return start


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
    if (os.path.realpath(path) + os.sep).startswith(inside):
        raise BadConfig(
            f"the workspace {path} lies in the state home {state_home}, which no call can see",
            hint="take another directory, or set HAFT_HOME",
        )
    return path
