"""Sandbox: where it happens.

What this machine can do, the walls of one call, its environment, and the launcher that starts commands behind them. The
mounts and namespaces themselves are made by the helper program; this room says which. It decides nothing: profile and
grants come with the decision.
"""

from haft.sandbox.abilities import Abilities
from haft.sandbox.sandbox import IN_PROCESS, Mode, Sandbox
from haft.sandbox.terms import OWN_PLACES

__all__ = ["IN_PROCESS", "OWN_PLACES", "Abilities", "Mode", "Sandbox"]
