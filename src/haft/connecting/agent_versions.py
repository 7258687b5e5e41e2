"""Finds the installed version of an agent without running the agent, and says what an old version means for the hooks.
The examination and `haft connect` use it."""

from __future__ import annotations

import itertools
import json
import os
import shutil
from collections.abc import Iterator, Mapping
from typing import Final

from haft.connecting.agents.agent import Agent
from haft.lazy import regex

_VERSION: Final = regex(r"\d+(?:\.\d+)+")
_MOST_BYTES: Final = 1_000_000
_LEVELS: Final = 4
"""How many folders above a program can have the package.json of its package."""


def installed_version(agent: Agent, env: Mapping[str, str]) -> str | None:
    """The version of the agent that PATH leads to; None if it cannot be seen. Reads the package.json of the agent's
    package, or the path to which its installer links the program."""
    for name in agent.executables:
        found = shutil.which(name, path=env.get("PATH"))
        if found is not None:
            program = os.path.realpath(found)
            return _of_package(agent, program) or _in_path(agent, program)
    return None


def is_too_old(agent: Agent, version: str | None) -> bool:
    """Whether this version is known, and lets calls pass whose hook fails, although newer ones deny them."""
    blocking = None if agent.hooks is None else agent.hooks.blocking
    return blocking is not None and version is not None and _numbers(version) < _numbers(blocking.since)


def failures_that_pass(agent: Agent, version: str | None) -> tuple[str, ...]:
    """The failures of a hook after which this version of the agent lets a call pass, in words for people."""
    facts = agent.hooks
    if facts is None:
        return ()
    return facts.passes if facts.blocking is None or not is_too_old(agent, version) else facts.blocking.passes_before


def too_old_sentence(agent: Agent, version: str | None) -> str | None:
    """What is wrong with hooks in this version; None if nothing is known to be wrong."""
    if agent.hooks is None or agent.hooks.blocking is None or not is_too_old(agent, version):
        return None
    setting = agent.hooks.blocking.setting
    return f"{agent.title} {version} ignores `{setting}`: if haft's hook fails to start, calls pass"


def needed_version(agent: Agent) -> str | None:
    """The first version of the agent in which a failing hook denies the call; None if it does not depend on that."""
    return None if agent.hooks is None or agent.hooks.blocking is None else agent.hooks.blocking.since


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))


def _of_package(agent: Agent, program: str) -> str | None:
    if agent.package is None:
        return None
    for path in _package_files(agent.package, program):
        try:
            with open(path, encoding="utf-8") as file:
                about = json.loads(file.read(_MOST_BYTES))
        except (OSError, ValueError, RecursionError):
            continue
        if isinstance(about, dict) and f"{about.get('name')}-".startswith(f"{agent.package}-"):
            found = _VERSION.match(str(about.get("version")))
            return None if found is None else found[0]
    return None


def _package_files(package: str, program: str) -> Iterator[str]:
    folder = os.path.dirname(program)
    yield os.path.join(folder, "node_modules", package, "package.json")
    for _ in range(_LEVELS):
        yield os.path.join(folder, "package.json")
        folder = os.path.dirname(folder)


def _in_path(agent: Agent, program: str) -> str | None:
    words = program.split("/")
    after = (word for folder, word in itertools.pairwise(words) if folder in agent.version_folders)
    return next((word for word in after if _VERSION.fullmatch(word)), None)
