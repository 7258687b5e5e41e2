"""The variables of an agent, for the service that runs its commands.

One resident serves agents of several terminals, whose variables differ: an activated environment, another PATH. So the
resident opens a service for each workspace and each set of variables that makes a difference.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Final

from haft.contracts import ALWAYS_PASSED, NETWORK_VARIABLES

_OWN: Final = "HAFT_"
"""Variables of haft's settings count as the resident has them: a message over its socket does not change settings."""
_MATTER: Final = frozenset((*ALWAYS_PASSED, "VIRTUAL_ENV", "CONDA_PREFIX", "XDG_CONFIG_HOME", *NETWORK_VARIABLES))
_DO_NOT_MATTER: Final = frozenset(("TERM", "TMPDIR", "SHELL"))


def environment_of(variables: Mapping[str, str]) -> dict[str, str]:
    """The variables for a service that acts for an agent with these variables."""
    own = {name: value for name, value in os.environ.items() if name.startswith(_OWN)}
    return {**{name: value for name, value in variables.items() if not name.startswith(_OWN)}, **own}


def environment_key(variables: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """A value that is equal for two agents if one service can serve both."""
    return tuple(
        sorted(
            (name, value)
            for name, value in variables.items()
            if (name.upper() in _MATTER and name not in _DO_NOT_MATTER) or name.startswith("LC_")
        )
    )
