"""The table of formats: one line each. And what their sources are opened with.

A format is a folder in `sources/` whose source fills the port `ToolSource`, and a line here. Where what is configured
must be made out first, a module of this package does that. Nothing of a format is imported before its tools are wanted.
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import cached_property
from importlib import import_module
from typing import TYPE_CHECKING, Any

from haft.config import load_config
from haft.contracts import NO_GRANTS, Grants, Listing, SessionLauncher
from haft.sources.skills import Activations, Skills
from haft.storage import DefinitionCache, StateHome
from haft.values import dataclass
from haft.version import __version__

if TYPE_CHECKING:
    from haft.config import Config
    from haft.registry import Catalogue
    from haft.sources import DescribedFile, SourceHost, ToolSource
    from haft.toolsets.describe_grants import DescribeGrants
    from haft.toolsets.origins import Elsewhere


@dataclass(frozen=True, slots=True)
class Format:
    """A line of the table."""

    name: str
    opened: str | Callable[[SourceHost], ToolSource]
    """Gives the source, from a `Host`; or where that lies, as `module:name`."""
    settings: tuple[str, ...] = ()
    """Where none of these is set, there are no tools of it; without any, there may always be some."""
    each: str | None = None
    """The setting of which each entry is a tool: one that lacks a variable is listed as needing it."""
    is_builtin: bool = False
    """Whether its tools have their names before those that a program hands over."""
    needs_workspace: bool = True
    takes_any_file: bool = False
    """Whether a file that no format recognizes is taken for one of its own."""

    def open(self, host: Host) -> ToolSource:
        opened = self.opened
        if isinstance(opened, str):
            module, _colon, name = opened.partition(":")
            opened = getattr(import_module(module), name)
        source: ToolSource = opened(host)
        return source


FORMATS: tuple[Format, ...] = (
    Format("skill", "haft.toolsets.skills:SkillSource", is_builtin=True),
    Format("python", "haft.toolsets.installed:InstalledTools", needs_workspace=False),
    Format("amp-toolbox", "haft.toolsets.toolboxes:ToolboxSource", takes_any_file=True),
    Format(
        "agent-studio",
        "haft.toolsets.templates:TemplateSource",
        settings=("templates.paths", "templates.instances"),
        each="templates.instances",
    ),
    Format("bash-plugin", "haft.toolsets.plugins:BashPluginSource", settings=("plugins",), each="plugins"),
    Format("python-plugin", "haft.toolsets.plugins:PythonPluginSource", settings=("plugins",)),
    Format("cli", "haft.toolsets.command_lines:CommandLineSource", settings=("cli",), each="cli"),
)
"""All formats, in the order in which their tools are given names."""


class Host:
    """What the sources of one workspace are opened with."""

    def __init__(
        self,
        workspace: str,
        home: StateHome,
        env: Mapping[str, str],
        sessions: SessionLauncher | None,
        elsewhere: Callable[[str], tuple[Elsewhere, Catalogue]] | None,
    ) -> None:
        """`elsewhere` opens another workspace, where executables are taken for the tools that they stand for."""
        self.workspace = os.path.realpath(workspace)
        self.home = home
        self.state_home = home.path
        self.env = env
        self.sessions = sessions
        self.elsewhere = elsewhere
        self.definitions = DefinitionCache(home.definitions, __version__)
        self.skills = Skills(self.workspace, self.definitions, env)
        self.activations = Activations(home.path, self.workspace)
        self.catalogue: Catalogue | None = None
        """What the tools are put into, once there is one."""
        self.renew: Callable[[], Awaitable[None]] = _nobody
        self._config: Config | None = None
        self._grants: DescribeGrants | None = None

    def configure(self, config: Config) -> None:
        self._config = config
        self.definitions.context = confinement_of(config)

    @property
    def is_configured(self) -> bool:
        return self._config is not None

    @cached_property
    def config(self) -> Config:
        """The settings in force; read now where nobody handed them over."""
        return self._config or load_config(self.workspace, self.env, trust_home=self.state_home)

    @property
    def settings(self) -> Mapping[str, Any]:
        return {} if self._config is None else self._config.values

    def granted(self, claim: DescribedFile) -> Grants:
        """What rules let a file have when it is asked what it is."""
        if not self.settings.get("permissions"):
            return NO_GRANTS
        if self._grants is None:
            from haft.toolsets.describe_grants import DescribeGrants

            self._grants = DescribeGrants(self.config, self.home, self.workspace)
        return self._grants(claim)

    def listed(self, thread: str | None) -> Sequence[Listing]:
        """All tools, as they are listed in a thread."""
        return () if self.catalogue is None else self.catalogue.listings(all=True, thread=thread)

    def close(self) -> None:
        if self._grants is not None:
            self._grants.close()


def place_of(path: str, source: str, workspace: str) -> str:
    """A path as it was written in a file of settings, or said by a caller."""
    base = os.path.dirname(source) if os.path.isabs(source) else workspace
    return os.path.normpath(os.path.join(base, os.path.expanduser(path)))


def confinement_of(config: Config) -> str:
    """What configuration says of how programs are confined that are asked what they are; nothing by default."""
    grants = [
        one["grant"] for each in config.rule_sets if each.counting is None for one in each.tables if "grant" in one
    ]
    said = [config.sandbox_mode, grants]
    return "" if said == ["auto", []] else repr(said)


async def _nobody() -> None:
    """Where no service is open, nobody waits for tools to join."""
