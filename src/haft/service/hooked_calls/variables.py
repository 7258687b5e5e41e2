"""The variables of an agent, for the service that runs its commands.

One resident serves agents of several terminals, whose variables differ: an activated environment, another PATH. So the
resident opens a service for each workspace and each set of variables that makes a difference.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Final

_OWN: Final = "HAFT_"
"""Variables of haft's settings count as the resident has them: a message over its socket does not change settings."""
_MATTER: Final = frozenset(("PATH", "VIRTUAL_ENV", "CONDA_PREFIX", "TZ"))
"""Those that start.py also sends with a hook, besides those of the language."""


def environment_of(variables: Mapping[str, str]) -> dict[str, str]:
    """The variables for a service that acts for an agent with these variables: the agent's, as far as they make a
    difference, and else those of this process. If an agent names no PATH, it does not say its variables at all."""
    if "PATH" not in variables:
        return dict(os.environ)
    rest = {name: value for name, value in os.environ.items() if name.startswith(_OWN) or not _matters(name)}
    return {**rest, **{name: value for name, value in variables.items() if _matters(name)}}


def environment_key(variables: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """A value that is equal for two agents if one service can serve both."""
    return tuple(sorted((name, value) for name, value in variables.items() if _matters(name)))


def _matters(name: str) -> bool:
    return name in _MATTER or name.startswith(("LANG", "LC_"))
