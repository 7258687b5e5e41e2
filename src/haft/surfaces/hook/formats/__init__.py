"""The forms in which agents talk to their hooks: one module for each agent."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Final

from haft.surfaces.hook.events import Format

_NAMES: Final = ("claude-code", "codex", "gemini", "opencode", "cursor", "vscode", "antigravity")


class _Formats(Mapping[str, Format]):
    """The forms by agent. The module of an agent is imported when that agent first calls its hook."""

    def __getitem__(self, agent: str) -> Format:
        if agent not in _NAMES:
            raise KeyError(agent)
        name = agent.replace("-", "_")
        found: Format = getattr(import_module(f"{__name__}.{name}"), name.upper())
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(_NAMES)

    def __len__(self) -> int:
        return len(_NAMES)


FORMATS: Final[Mapping[str, Format]] = _Formats()
