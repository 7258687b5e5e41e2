"""What a tool may have when it is asked what it is: what a rule grants to all its calls, once it may be called so.

A rule that allows every call of a tool lets it describe itself with the network, variables and files that these calls
get. As with calls, the rule holds for the file that somebody agreed to, or that first ran under the rule, under that
very name. A file that nobody has agreed to is given something only where it is the user's own and nothing else has the
name; what a workspace brings is given nothing.
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
    """The part of it that describing may use: nothing is written then."""
    return Grants(network=grants.network, env=grants.env, read=grants.read)


class DescribeGrants:
    """For the tools of one workspace. Use it from one thread."""

    def __init__(self, config: Config, home: StateHome, workspace: str) -> None:
        self._config = config
        self._workspace = workspace
        self._rules: tuple[Rule, ...] | None = None
        self._stores = open_stores(home)
        self._connection = self._stores.connect()

    def __call__(self, claim: DescribedFile) -> Grants:
        """What a file is given, under the one name that it has, or was agreed to by, or will have by its own."""
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
        """Of the tool that a file was agreed to as; None where there is none, or several."""
        pins = self._pins()
        held = [] if pins is None else pins.containing(path)
        found = [tool for tool, pin in held if pin.definition.get("origin") == path]
        return found[0] if len(found) == 1 else None

    def _is_agreed(self, name: str, claim: DescribedFile) -> bool:
        """Whether the tool of that name is this file with this content. Where nobody has agreed to one yet, it is the
        user's own."""
        pins = self._pins()
        pin = None if pins is None else pins.of(name)
        if pin is not None:
            return pin.definition["origin"] == claim.path and is_unchanged(pin)
        return claim.provenance != "workspace" and not leads_inside(claim.path, self._workspace)

    def _pins(self) -> Pins | None:
        return Pins(self._connection, self._workspace) if self._stores.exists() else None

    def close(self) -> None:
        self._connection.close()
