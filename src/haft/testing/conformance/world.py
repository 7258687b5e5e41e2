"""Where a source is checked: a workspace with the tool of its case, a state home, and a launcher in the sandbox."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import AsyncIterator, Iterator, Mapping
from pathlib import Path
from typing import Any

from haft.config import load_config
from haft.contracts import DescribeLauncher, DiscoveredTool, ToolSpec
from haft.service import ToolService
from haft.sources import ToolSource
from haft.storage import StateHome
from haft.testing.calls.world import PASSED
from haft.testing.conformance.case import SourceCase
from haft.toolsets import Format, Host, format_named, probe_launcher, with_format


class CaseWorld:
    """A workspace in which the tool of a case was written."""

    def __init__(self, case: SourceCase, root: str) -> None:
        self.case = case
        self.workspace = Path(root, "workspace")
        self.home = StateHome(os.path.join(root, "state"))
        for path in (self.workspace, Path(root, "home")):
            path.mkdir()
        self.env = {
            **{name: os.environ[name] for name in PASSED if name in os.environ},
            "HOME": os.path.join(root, "home"),
            "XDG_CONFIG_HOME": os.path.join(root, "home", ".config"),
            "AMP_TOOLBOX": "",
            **case.env,
        }
        case.write(self.workspace)

    @property
    def path(self) -> str:
        """The absolute path of the tool."""
        return str(self.workspace / (self.case.path or ""))

    @property
    def settings(self) -> Mapping[str, Any]:
        return {name: self._placed(value) for name, value in self.case.settings.items()}

    def _placed(self, value: Any) -> Any:
        if isinstance(value, str):
            return value.replace("<workspace>", str(self.workspace))
        if isinstance(value, Mapping):
            return {key: self._placed(each) for key, each in value.items()}
        return [self._placed(each) for each in value] if isinstance(value, list | tuple) else value

    @contextlib.asynccontextmanager
    async def listing(self) -> AsyncIterator[OpenedSource]:
        """The source alone, without a service that refreshes it by itself."""
        async with contextlib.AsyncExitStack() as stack:
            sessions = None
            if self.case.has_sessions:
                sessions = (await stack.enter_async_context(self.service())).discovery.sessions
            config = load_config(str(self.workspace), self.env, self.settings, trust_home=self.home.path)
            launcher = stack.enter_context(probe_launcher(str(self.workspace), self.home, config))
            line = self._line()
            host = Host(str(self.workspace), self.home, self.env, sessions, None)
            host.configure(config)
            source = line.open(host)
            stack.push_async_callback(_close_quietly, source)
            yield OpenedSource(self, source, launcher, takes_any_file=line.takes_any_file)

    def _line(self) -> Format:
        """The line of the source in the table of formats."""
        with _in_table(self.case):
            return format_named(self.case.source)

    @contextlib.asynccontextmanager
    async def service(self) -> AsyncIterator[ToolService]:
        """A whole service that approves every call."""
        with _in_table(self.case):
            async with ToolService.open(
                self.workspace,
                home=self.home.path,
                environ=self.env,
                approver=lambda _request: True,
                settings=self.settings,
                installed=False,
            ) as service:
                yield service


class OpenedSource:
    """A source under check."""

    def __init__(
        self,
        world: CaseWorld,
        source: ToolSource,
        launcher: DescribeLauncher,
        *,
        takes_any_file: bool,
    ) -> None:
        self.world = world
        self.source = source
        self.launcher = launcher
        self.takes_any_file = takes_any_file
        """Whether the source recognizes every file, because it comes last."""
        self.case = world.case

    async def refreshed(self) -> list[DiscoveredTool]:
        """All tools after a refresh; for a source that answers late, also after `find_unlisted`."""
        found = await self._refreshed_once()
        if self.case.answers_late and self.tool_in(found) is None:
            await self.source.find_unlisted(self.case.tool)
            found = await self._refreshed_once()
        return found

    async def _refreshed_once(self) -> list[DiscoveredTool]:
        found = await self.source.refresh(self.launcher, lambda _done, _all: None)
        return list(self.source.find() if found is None else found)

    def tool_in(self, found: list[DiscoveredTool]) -> DiscoveredTool | None:
        """The tool of the case, if it is ready."""
        named = (each for each in found if each.spec.name == self.case.tool and each.state == "ready")
        return next(named, None)

    async def spec(self) -> ToolSpec | None:
        found = self.tool_in(await self.refreshed())
        return None if found is None else found.spec


async def _close_quietly(source: ToolSource) -> None:
    """Close a source after a check. Only the check `closes` is about errors of `close`."""
    with contextlib.suppress(Exception):
        await source.close()


@contextlib.contextmanager
def new_world(case: SourceCase) -> Iterator[CaseWorld]:
    """A world that is removed afterwards."""
    with tempfile.TemporaryDirectory(prefix="haft-conformance-", ignore_cleanup_errors=True) as root:
        yield CaseWorld(case, os.path.realpath(root))


def _in_table(case: SourceCase) -> contextlib.AbstractContextManager[None]:
    """Add the source of a case to the table of formats, unless it is haft's own."""
    return contextlib.nullcontext() if case.opened is None else with_format(Format(case.source, case.opened))
