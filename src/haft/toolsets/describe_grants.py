"""The grants of a tool while haft describes it: those that a rule gives to all calls of the tool.

If a rule allows every call of a tool, haft describes the tool with the network, variables and files that these calls
get. As for calls, the rule holds only for the file that a person approved under the tool's name, or that first ran
under the rule. If there is no such file yet, a file of the workspace gets no grants, and a file of the user gets the
grants only if no other file has the same tool name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from haft.contracts import NO_GRANTS, Grants
from haft.files import leads_inside
from haft.policy import Pins, grants_for_all_calls, is_unchanged
from haft.storage import StateHome, open_stores

if TYPE_CHECKING:
    from haft.config import Config
    from haft.policy import Rule
    from haft.sources import DescribedFile


def _of_describing(grants: Grants) -> Grants:
    """The part of `grants` that applies while haft describes a tool: everything except `write`."""
    return Grants(network=grants.network, env=grants.env, read=grants.read)


class DescribeGrants:
    """The grants that the tools of one workspace have while haft describes them. Not thread-safe."""

    def __init__(self, config: Config, home: StateHome, workspace: str) -> None:
        self._config = config
        self._workspace = workspace
        self._rules: tuple[Rule, ...] | None = None
        self._stores = open_stores(home)
        self._connection = self._stores.connect()

    def __call__(self, claim: DescribedFile) -> Grants:
        """The grants of a file. Rules are matched with the tool name that the file last had, else the name under which
        it was approved, else the name that it would get."""
        if self._rules is None:
            rules = self._config.rules
            self._rules = rules if any(_of_describing(rule.grant) != NO_GRANTS for rule in rules) else ()
        if not self._rules:
            return NO_GRANTS

        name = claim.last_name or self._agreed_name(claim.path) or claim.listed_name
        granted = _of_describing(grants_for_all_calls((name,), claim.kind, self._rules))
        if granted == NO_GRANTS or claim.is_taken(name) or not self._is_agreed(name, claim):
            return NO_GRANTS
        return granted

    def _agreed_name(self, path: str) -> str | None:
        """The tool name under which a file was approved; None if it was approved under no name, or under several."""
        pins = self._pins()
        held = [] if pins is None else pins.containing(path)
        found = [tool for tool, pin in held if pin.definition.get("origin") == path]
        return found[0] if len(found) == 1 else None

    def _is_agreed(self, name: str, claim: DescribedFile) -> bool:
        """Whether the approved tool of this name is this file with this content. If no tool of this name is approved
        yet: whether the file lies outside the workspace."""
        pins = self._pins()
        pin = None if pins is None else pins.of(name)
        if pin is not None:
            return pin.definition["origin"] == claim.path and is_unchanged(pin)
        return claim.provenance != "workspace" and not leads_inside(claim.path, self._workspace)

    def _pins(self) -> Pins | None:
        return Pins(self._connection, self._workspace) if self._stores.exists() else None

    def close(self) -> None:
        self._connection.close()
