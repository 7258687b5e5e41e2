"""The environment of a template and the state of its program, as far as haft knows them without starting a process."""

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
class TemplateState:
    """The environment of a template, and whether its program stays loaded."""

    environment: str | None
    """The path of the environment; None if there is no up-to-date one."""
    cold: str | None
    """Why the warm pool cannot keep the program loaded, so that each call starts it again; None if no reason is
    known."""


def template_environments(workspace: str, home: StateHome) -> TemplateEnvironments:
    """The environments of the templates of a workspace."""
    config = load_config(workspace, os.environ, trust_home=home.path)
    return TemplateEnvironments(config, home.path, os.environ, workspace)


def template_state(folder: str, environments: TemplateEnvironments, home: StateHome) -> TemplateState:
    """The state of the template in a folder. Starts no process."""
    found = environments.current(folder)
    if found is None:
        return TemplateState(None, None)
    try:
        with open(os.path.join(folder, "tool.py"), "rb") as file:
            version = f"{hashlib.sha256(file.read()).hexdigest()} {found.mark}"
    except OSError:
        return TemplateState(found.root, None)
    return TemplateState(found.root, why_cold(home.path, folder, version))


def really_inside(path: str, workspace: str) -> str | None:
    """The real path of `path`, which is relative to the workspace; None if it leads out of the workspace."""
    root = Root(workspace)
    try:
        return os.path.join(root.root, root.locate(path))
    except CallError:
        return None
