"""What a tool may have when it is asked what it is: what a rule grants to all its calls, once it may be called so.

A rule that allows every call of a tool lets it describe itself with the network, variables and files that these calls
get. As with calls, the rule holds for the file that somebody agreed to, or that first ran under the rule; a file that a
workspace brings, and nobody has agreed to, is given nothing by a rule that was written for another of the same name.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from haft.contracts import NO_GRANTS, Grants, Provenance
from haft.storage import StateHome

if TYPE_CHECKING:
    from haft.policy.rules.rule import Rule
    from haft.service.config import Config
    from haft.storage import Database


def _of_describing(grants: Grants) -> Grants:
    """The part of it that describing may use: nothing is written then."""
    return Grants(network=grants.network, env=grants.env, read=grants.read)


class DescribeGrants:
    """For the tools of one workspace. Use it from one thread."""

    def __init__(self, config: Config, home: StateHome, workspace: str) -> None:
        self._config = config
        self._home = home
        self._workspace = workspace
        self._rules: tuple[Rule, ...] | None = None
        self._database: Database | None = None

    def __call__(self, names: Sequence[str], kind: str, path: str, provenance: Provenance) -> Grants:
        """What the file at `path` is given, which is or may be known by these names."""
        if self._rules is None:
            rules = self._config.rules
            self._rules = rules if any(_of_describing(rule.grant) != NO_GRANTS for rule in rules) else ()
        if not self._rules:
            return NO_GRANTS
        from haft.policy.rules.standing import granted_to

        held = self._held(path)
        is_agreed = any(held.values()) if held else provenance != "workspace"
        return _of_describing(granted_to([*names, *held], kind, self._rules)) if is_agreed else NO_GRANTS

    def _held(self, path: str) -> dict[str, bool]:
        """The tools under whose names a file was agreed to, each with whether all its files are still as they were."""
        from haft.policy.approval import Pins
        from haft.policy.approval.pins import is_unchanged
        from haft.storage import Database

        if self._database is None:
            if not os.path.exists(self._home.database):
                return {}
            self._database = Database(self._home.database)
        return {tool: is_unchanged(pin) for tool, pin in Pins(self._database, self._workspace).holding(path)}

    def close(self) -> None:
        if self._database is not None:
            self._database.close()
            self._database = None
