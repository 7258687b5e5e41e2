"""The table of formats, with one line for each, and the host object that their sources get.

A format is a folder in `sources/` with a `ToolSource`, and a line in this table. If the settings of a format must be
prepared for its source, a module of this package does that. Modules of a format are imported only when its tools are
needed.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
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
    """One format: a line of the table."""

    name: str
    opened: str | Callable[[SourceHost], ToolSource]
    """The function that makes the source from a `Host`; or where to import this function from, as `module:name`."""
    settings: tuple[str, ...] = ()
    """The format has tools only if one of these settings is set. If this is empty, the format may always have tools."""
    each: str | None = None
    """The setting in which each entry is a tool, if there is one. If an entry uses a variable that is not set, its tool
    is listed with a message that says so."""
    is_builtin: bool = False
    """Whether the tools of this format get their names before the tools that a program passes to `ToolService.open`."""
    needs_workspace: bool = True
    takes_any_file: bool = False
    """Whether this format handles files that no other format recognizes."""

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
    Format("mcp", "haft.toolsets.providers.source:ProviderSource"),
    Format("cli", "haft.toolsets.command_lines:CommandLineSource", settings=("cli",), each="cli"),
)
"""All formats, in the order in which their tools get names."""


def format_named(name: str) -> Format:
    """The format with this name."""
    return next(each for each in FORMATS if each.name == name)


@contextlib.contextmanager
def with_format(line: Format) -> Iterator[None]:
    """Add a format for a while, so that its source can be checked."""
    global FORMATS
    before = FORMATS
    FORMATS = (*before, line)
    try:
        yield
    finally:
        FORMATS = before


class Host:
    """The object that each source of a workspace gets when it is opened. It holds what the sources share: paths,
    settings, caches and the catalogue."""

    def __init__(
        self,
        workspace: str,
        home: StateHome,
        env: Mapping[str, str],
        sessions: SessionLauncher | None,
        elsewhere: Callable[[str], tuple[Elsewhere, Catalogue]] | None,
    ) -> None:
        """`elsewhere` opens another workspace, to find the tools that exported executables stand for."""
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
        """The catalogue of the host; None before it is made."""
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
        """The settings in force. They are read at the first use, unless `configure` has set them."""
        return self._config or load_config(self.workspace, self.env, trust_home=self.state_home)

    @property
    def settings(self) -> Mapping[str, Any]:
        return {} if self._config is None else self._config.values

    def granted(self, claim: DescribedFile) -> Grants:
        """The grants that a file has while haft describes it."""
        if not self.settings.get("permissions"):
            return NO_GRANTS
        if self._grants is None:
            from haft.toolsets.describe_grants import DescribeGrants

            self._grants = DescribeGrants(self.config, self.home, self.workspace)
        return self._grants(claim)

    def listed(self, thread: str | None) -> Sequence[Listing]:
        """All tools, with the state that each has in `thread`."""
        return () if self.catalogue is None else self.catalogue.listings(all=True, thread=thread)

    def close(self) -> None:
        if self._grants is not None:
            self._grants.close()


def place_of(path: str, source: str, workspace: str) -> str:
    """The absolute path of `path`. `source` is where `path` was configured: if it is a configuration file, a relative
    path begins at the directory of this file; if not, at the workspace."""
    base = os.path.dirname(source) if os.path.isabs(source) else workspace
    return os.path.normpath(os.path.join(base, os.path.expanduser(path)))


def confinement_of(config: Config) -> str:
    """The settings that change how programs are confined while haft describes tools, as one text; empty if all of them
    have their defaults."""
    grants = [
        one["grant"] for each in config.rule_sets if each.counting is None for one in each.tables if "grant" in one
    ]
    said = [config.sandbox_mode, grants]
    return "" if said == ["auto", []] else repr(said)


async def _nobody() -> None:
    """Do nothing: without an open service, nobody waits for new tools."""
