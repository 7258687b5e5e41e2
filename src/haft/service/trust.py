"""Trusting the configuration that a workspace brings: what it would change, and the word of a person that it counts.

What is shown, digested and kept are the same bytes, read once by `look`.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from haft.config import (
    WORKSPACE_FILES,
    ConfigFile,
    ForeignFile,
    Ignored,
    check_workspace,
    configured,
    foreign_file_in,
    is_trusted,
    is_workspace_trusted,
    newly_ignored,
    revoke,
    since_trusted,
    text_to_keep,
    trust,
    trusted_text,
    was_trusted,
    workspace_config,
)
from haft.contracts import BadConfig, BadUsage, Principal
from haft.storage import StateHome


@dataclass(frozen=True, slots=True)
class Proposal:
    """What there is to trust in a workspace, as it is now."""

    workspace: str
    file: ConfigFile | None
    stranger: ForeignFile | None
    """Whose workspace it is, where it is somebody else's."""
    widens: Sequence[Ignored]
    """What counts once it is trusted."""
    kept_out: Sequence[Ignored]
    """What no trust makes count, because the person's own settings forbid it."""
    counts: bool
    """Whether it counts already."""

    @property
    def what(self) -> str:
        """What is trusted, by its path."""
        return self.workspace if self.file is None else self.file.path


@dataclass(frozen=True, slots=True)
class TrustChange:
    """How a proposal differs from what was trusted before."""

    difference: Sequence[str]
    """Lines; none where nothing was trusted, or that is not known any more."""
    new: Sequence[Ignored]
    was_trusted: bool


class TrustFacade:
    """Of one workspace."""

    def __init__(self, workspace: str, home: StateHome) -> None:
        self._workspace = workspace
        self._home = home.path

    def look(self) -> Proposal:
        """What there is to trust. `BadUsage` where that is nothing, `BadConfig` where it could not be used."""
        workspace, home = check_workspace(self._workspace, self._home), self._home
        file, stranger = workspace_config(workspace), foreign_file_in(workspace)
        if file is None and stranger is None:
            raise BadUsage(f"there is no {' or '.join(WORKSPACE_FILES)} in {workspace}: there is nothing to trust")
        widens: Sequence[Ignored] = ()
        kept_out: Sequence[Ignored] = ()
        if file is not None:
            untrusted = configured(workspace, file, os.environ, trusted=False)
            _require_sound(untrusted)
            with contextlib.suppress(BadConfig):  # What is wrong with it is said before it is trusted.
                kept_out = configured(workspace, file, os.environ, trusted=True).ignored
            names = {(one.name, one.source) for one in kept_out}
            widens = [one for one in untrusted.ignored if (one.name, one.source) not in names]
        counts = file is None or not widens or is_trusted(home, workspace, file)
        counts = counts and (stranger is None or is_workspace_trusted(home, workspace))
        return Proposal(workspace, file, stranger, widens, kept_out, counts)

    def since_trusted(self, proposal: Proposal) -> TrustChange:
        """How it differs from what a person has read before."""
        file, workspace = proposal.file, proposal.workspace
        change = None
        if file is not None:
            change = since_trusted(trusted_text(self._home, workspace, file), file, os.environ)
        difference = () if change is None else change.difference
        new = newly_ignored(proposal.widens, change if difference else None, os.environ)
        return TrustChange(difference, new, was_trusted(self._home, workspace))

    def trust(self, proposal: Proposal, principal: Principal) -> str | None:
        """Let it count, as it was looked at; the digest of its file. `NeedsPerson` for agents."""
        principal.must_be_person("trust")
        file = proposal.file
        if file is not None:
            _require_sound(configured(proposal.workspace, file, os.environ, trusted=True))
        text = None if file is None else text_to_keep(file, os.environ)
        return trust(self._home, proposal.workspace, file, principal.who, text)

    def revoke(self) -> bool:
        """Trust it no longer; False where it was not trusted."""
        return revoke(self._home, self._workspace)


def _require_sound(config: Any) -> None:
    """What would stop every command afterwards is said before."""
    _ = config.rules, config.enablement
