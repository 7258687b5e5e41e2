"""The source of Python functions that installed packages offer.

This source is not used for functions that a program passes, which go straight into the catalogue, nor for files with
functions, which are plugins.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING

from haft.contracts import DescribeLauncher, DiscoveredTool, ToolSpec
from haft.sources import SourceHost, Target, ToolSource
from haft.toolsets.entry_points import packages_offer_tools

if TYPE_CHECKING:
    from haft.sources import ProgressCallback
    from haft.sources.checks import Report


class InstalledTools(ToolSource):
    """The tools of installed packages. Packages are imported once; restart haft after installing another one."""

    name = "python"

    def __init__(self, _host: SourceHost) -> None:
        self._found: list[DiscoveredTool] | None = None

    def find(self) -> Iterable[DiscoveredTool]:
        if self._found is None:
            self._found = []
            if packages_offer_tools():
                from haft.sources.python import installed_tools

                tools, broken = installed_tools()
                self._found = [DiscoveredTool(tool.spec, tool) for tool in tools]
                self._found += [DiscoveredTool(one.spec, None, "broken", one.reason) for one in broken]
        return self._found

    async def refresh(
        self, launcher: DescribeLauncher, told: ProgressCallback, *, retry_name: str | None = None
    ) -> None:
        return None

    def recognizes(self, path: str) -> bool:
        if not path.endswith(".py"):
            return False
        from haft.sources.checks import Finding, inspect_file
        from haft.sources.python import is_python_tools

        inspected = inspect_file(path)
        return not isinstance(inspected, Finding) and is_python_tools(inspected)

    async def check(self, target: Target, launcher: DescribeLauncher, reserved: Collection[str]) -> Sequence[Report]:
        from haft.sources.python import check_python

        return check_python(target.path, reserved)

    def cure(self, spec: ToolSpec) -> str:
        return f"it comes from {spec.origin}: fix or uninstall that package"
