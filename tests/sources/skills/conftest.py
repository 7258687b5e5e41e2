"""A workspace, a home and folders of skills in both."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from haft.sources.skills import Skills

TEXT = "---\nname: {name}\ndescription: {description}\n---\n\n# {name}\n\nDo it well.\n"


@dataclass
class Kept:
    """Definitions as they are kept from one process to the next."""

    groups: dict[str, dict[str, Any]] = field(default_factory=dict)
    saved: int = 0

    def load(self, group):
        return dict(self.groups.get(group, {}))

    def save(self, group, known):
        self.saved += 1
        self.groups[group] = dict(known)


@dataclass
class Place:
    workspace: Path
    home: Path
    kept: Kept

    def skills(self, **options):
        return Skills(str(self.workspace), env={"HOME": str(self.home)}, **options)

    def make(self, path, text=None, description="Use it for tests."):
        """A skill's folder, from `~/…` or from the workspace."""
        folder = self.home / path[2:] if path.startswith("~/") else self.workspace / path
        folder.mkdir(parents=True, exist_ok=True)
        if text is None:
            text = TEXT.format(name=folder.name, description=description)
        (folder / "SKILL.md").write_bytes(text if isinstance(text, bytes) else text.encode())
        return folder

    def own(self, **options):
        """What was found, but for what ships."""
        return [skill for skill in self.skills(**options).found() if skill.provenance != "builtin"]


@pytest.fixture
def place(tmp_path):
    workspace, home = tmp_path / "workspace", tmp_path / "home"
    workspace.mkdir()
    home.mkdir()
    return Place(workspace, home, Kept())
