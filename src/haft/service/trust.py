"""Trust in the configuration of a workspace: shows what trusting the configuration would change, and saves that a
person trusts it.

`look` reads the file once, so that the person sees exactly the bytes whose digest `trust` saves.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from haft.agents import TypeFile, type_of_file
from haft.config import (
    WORKSPACE_FILES,
    ConfigFile,
    ForeignFile,
    Ignored,
    check_workspace,
    configured,
    foreign_file_in,
    is_configured,
    is_trusted,
    is_workspace_trusted,
    newly_ignored,
    revoke,
    since_trusted,
    text_to_keep,
    trust,
    trusted_agents,
    trusted_text,
    was_trusted,
    workspace_config,
)
from haft.contracts import BadConfig, BadUsage, Principal
from haft.files import digest_of
from haft.service.agent_types import find_agent_types
from haft.service.providers import revoke_file, trust_of_file
from haft.storage import StateHome
from haft.toolsets import WORKSPACE_FILE


@dataclass(frozen=True, slots=True)
class Proposal:
    """What a person would trust in a workspace: its haft.toml and its types of sub-agents as they are now, or the
    workspace itself if it has no haft.toml."""

    workspace: str
    file: ConfigFile | None
    stranger: ForeignFile | None
    """The owner of the workspace, if it belongs to another user."""
    widens: Sequence[Ignored]
    """The settings that count only if the person trusts the file."""
    kept_out: Sequence[Ignored]
    """The settings that do not count even then, because the person's own settings forbid them."""
    file_counts: bool
    """Whether all of the file, and the workspace's owner, count already."""
    has_trusted_agents: bool = False
    """Whether files with types of sub-agents are trusted already."""
    agents: Sequence[TypeFile] = ()
    """The files with types of sub-agents that wait for trust."""

    @property
    def counts(self) -> bool:
        """Whether nothing waits for trust."""
        return self.file_counts and not self.agents

    @property
    def what(self) -> str:
        """The path of the file to trust; the path of the workspace if there is no file."""
        return self.workspace if self.file is None or self.file_counts else self.file.path


@dataclass(frozen=True, slots=True)
class TrustChange:
    """How a proposal differs from what was trusted before."""

    difference: Sequence[str]
    """The lines of a diff; empty if nothing was trusted, or the earlier text is not stored any more."""
    new: Sequence[Ignored]
    was_trusted: bool


class TrustFacade:
    """The trust in one workspace."""

    def __init__(self, workspace: str, home: StateHome) -> None:
        self._workspace = workspace
        self._state_home = home
        self._home = home.path

    def look(self) -> Proposal:
        """The file or workspace that a person can trust. Raises `BadUsage` if there is nothing to trust, and
        `BadConfig` if haft could not use the file."""
        workspace, home = check_workspace(self._workspace, self._home), self._home
        file, stranger = workspace_config(workspace), foreign_file_in(workspace)
        agents = _waiting_agents(workspace, home, file)
        has_trusted_agents = bool(trusted_agents(home, workspace))
        if file is None and stranger is None and not agents and not has_trusted_agents:
            hint = None
            if find_agent_types(
                workspace, home, configured(workspace, None, os.environ, trusted=False)
            ).waiting_files():
                hint = "it has types of sub-agents, but sub-agents are not enabled: set `subagents.enabled`"
            if os.path.lexists(os.path.join(workspace, WORKSPACE_FILE)):
                hint = (
                    f"its {WORKSPACE_FILE} names MCP servers: `haft providers trust NAME` lets one of them start, and "
                    "`haft providers list` shows them"
                )
            what = f"there is no {' or '.join(WORKSPACE_FILES)} in {workspace}: there is nothing to trust"
            raise BadUsage(what, hint=hint)
        widens: Sequence[Ignored] = ()
        kept_out: Sequence[Ignored] = ()
        if file is not None:
            untrusted = configured(workspace, file, os.environ, trusted=False)
            _require_sound(untrusted)
            with contextlib.suppress(BadConfig):  # `trust` will raise this error.
                kept_out = configured(workspace, file, os.environ, trusted=True).ignored
            names = {(one.name, one.source) for one in kept_out}
            widens = [one for one in untrusted.ignored if (one.name, one.source) not in names]
        counts = file is None or not widens or is_trusted(home, workspace, file)
        counts = counts and (stranger is None or is_workspace_trusted(home, workspace))
        return Proposal(workspace, file, stranger, widens, kept_out, counts, has_trusted_agents, agents)

    def since_trusted(self, proposal: Proposal) -> TrustChange:
        """How the proposal differs from the text that the person trusted before."""
        file, workspace = proposal.file, proposal.workspace
        change = None
        if file is not None:
            change = since_trusted(trusted_text(self._home, workspace, file), file, os.environ)
        difference = () if change is None else change.difference
        new = newly_ignored(proposal.widens, change if difference else None, os.environ)
        return TrustChange(difference, new, was_trusted(self._home, workspace))

    def trust(self, proposal: Proposal, principal: Principal) -> str | None:
        """Trust the proposal as it was shown. Returns the digest of the trusted file; None if the proposal has no file.
        Raises `NeedsPerson` if the principal is an agent."""
        principal.must_be_person("trust")
        file = proposal.file
        if file is not None:
            _require_sound(configured(proposal.workspace, file, os.environ, trusted=True))
        text = None if file is None else text_to_keep(file, os.environ)
        agents = trusted_agents(self._home, proposal.workspace)
        agents |= {one.inside: digest_of(one.data) for one in proposal.agents if one.inside is not None}
        digest = trust(self._home, proposal.workspace, file, principal.who, text, agents)
        if file is not None and any(one.name == "providers" for one in proposal.widens):
            trust_of_file(proposal.workspace, self._state_home, file.path, principal.who)
        return digest

    def revoke(self) -> bool:
        """End the trust in the workspace. Returns False if the workspace was not trusted."""
        was_trusted = revoke(self._home, self._workspace)
        if was_trusted and is_configured(self._workspace, os.environ):
            with contextlib.suppress(BadConfig):  # Without a file that can be used, no server starts.
                revoke_file(self._workspace, self._state_home)
        return was_trusted


def _waiting_agents(workspace: str, home: str, file: ConfigFile | None) -> Sequence[TypeFile]:
    """The files with types of sub-agents that wait for trust; none while sub-agents are off."""
    try:
        config = configured(workspace, file, os.environ, trusted=True)
    except BadConfig:  # `look` raises this error, or `trust`.
        return ()
    if not config.values["subagents.enabled"]:
        return ()
    return [one for one in find_agent_types(workspace, home, config).waiting_files() if type_of_file(one).is_usable]


def _require_sound(config: Any) -> None:
    """Raise errors of the configuration now, because once the file is trusted, they would stop every command."""
    _ = config.rules, config.enablement
