"""The source of the built-in tool `skill`, with which agents read skills. The tools in skills come from the module
`toolboxes`."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING

from haft.contracts import DescribeLauncher, DiscoveredTool
from haft.sources import Target, ToolSource
from haft.sources.skills import SKILL_FILE, TOOL_FOLDERS, SkillTool
from haft.toolsets.formats import Host

if TYPE_CHECKING:
    from haft.sources import ProgressCallback
    from haft.sources.checks import Report


class SkillSource(ToolSource):
    """The `skill` tool for one workspace and its user."""

    name = "skill"

    def __init__(self, host: Host) -> None:
        self._skills = host.skills
        self._tool = SkillTool(host.skills, host.activations, lambda: host.renew(), host.listed)

    def find(self) -> Iterable[DiscoveredTool]:
        return [DiscoveredTool(self._tool.spec, self._tool)]

    async def refresh(
        self, launcher: DescribeLauncher, told: ProgressCallback, *, retry_name: str | None = None
    ) -> Iterable[DiscoveredTool]:
        import asyncio

        await asyncio.to_thread(self._skills.found)
        return self.find()

    def places(self) -> Iterable[str]:
        yield from (place for place, _provenance in self._skills.places())
        yield from (skill.folder for skill in self._skills.last_found())

    def recognizes(self, path: str) -> bool:
        return os.path.lexists(os.path.join(path, SKILL_FILE))

    def targets(self, path: str) -> Iterable[Target]:
        inner = (os.path.join(path, name) for name in TOOL_FOLDERS)
        yield Target(path, self.name, holds=tuple(each for each in inner if os.path.isdir(each)))

    async def check(self, target: Target, launcher: DescribeLauncher, reserved: Collection[str]) -> Sequence[Report]:
        from haft.sources.skills import check_skill

        return [check_skill(target.path)]
