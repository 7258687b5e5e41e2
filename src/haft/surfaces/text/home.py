"""Finds the state home for the commands of haft's command line."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from haft.service import StateHome


def state_home() -> StateHome:
    """The state home: `HAFT_HOME`, else the platform's default."""
    from haft.service import StateHome, default_home

    return StateHome(default_home(os.environ))
