"""What a template's calls run in, as far as it is known without starting anything."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass

from haft.config import load_config
from haft.contracts import CallError
from haft.files import Root
from haft.storage import StateHome
from haft.toolsets import TemplateEnvironments, why_cold


@dataclass(frozen=True, slots=True)
class TemplateStanding:
    """What a template's calls run in."""

    environment: str | None
    """The environment, if there is one that is current."""
    cold: str | None
    """Why it is started anew for each call, as far as anybody found out."""


def template_environments(workspace: str, home: StateHome) -> TemplateEnvironments:
    """The environments of the templates of a workspace: looked at, or made."""
    config = load_config(workspace, os.environ, trust_home=home.path)
    return TemplateEnvironments(config, home.path, os.environ, workspace)


def template_standing(folder: str, environments: TemplateEnvironments, home: StateHome) -> TemplateStanding:
    """What is known of a template that lies in a folder. Nothing is started."""
    found = environments.current(folder)
    if found is None:
        return TemplateStanding(None, None)
    try:
        with open(os.path.join(folder, "tool.py"), "rb") as file:
            version = f"{hashlib.sha256(file.read()).hexdigest()} {found.mark}"
    except OSError:
        return TemplateStanding(found.root, None)
    return TemplateStanding(found.root, why_cold(home.path, folder, version))


def really_inside(path: str, workspace: str) -> str | None:
    """Where a path of a workspace really lies; None where that is outside of it."""
    root = Root(workspace)
    try:
        return os.path.join(root.root, root.locate(path))
    except CallError:
        return None
