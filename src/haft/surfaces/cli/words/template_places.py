"""Finds the directories of templates for `haft templates`: the configured ones, or `./templates` if none is
configured."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from haft.contracts import BadUsage
from haft.service import lies_in
from haft.surfaces.cli.globals import Globals
from haft.surfaces.cli.place import tell_ignored, tell_what_is_logged, workspace_of
from haft.surfaces.text.home import state_home

if TYPE_CHECKING:
    from haft.service import Config, TemplateEnvironments, TemplateState

DEFAULT: Final = "templates"
_PATHS: Final = "templates.paths"


@dataclass(frozen=True, slots=True)
class Directory:
    """A configured directory. It contains templates, or is a template itself."""

    path: str
    is_bound: bool
    """Whether the directory must be inside the workspace, because the configuration file that names it is not
    trusted."""


@dataclass(frozen=True, slots=True)
class Places:
    """The directories of templates of a workspace."""

    workspace: str
    configured: tuple[Directory, ...]
    """The configured directories, in the order of the configuration."""
    instances: tuple[tuple[str, str], ...] = ()
    """The tools of `templates.instances`: the name and the template folder of each."""

    def instances_of(self, folder: str) -> list[str]:
        """The names of the configured tools (`templates.instances`) that use the template in a folder."""
        real = os.path.realpath(folder)
        return [name for name, of in self.instances if os.path.realpath(of) == real]

    @property
    def default(self) -> Directory:
        return Directory(os.path.join(self.workspace, DEFAULT), is_bound=True)

    @property
    def directories(self) -> list[str]:
        """The directories in which haft looks for templates."""
        root = os.path.realpath(self.workspace)
        found = [each for each in self.configured or (self.default,) if os.path.isdir(each.path)]
        return [each.path for each in found if not each.is_bound or lies_in(os.path.realpath(each.path), root)]

    def is_configured(self, place: str) -> bool:
        return os.path.realpath(place) in (os.path.realpath(each.path) for each in self.configured)

    def target(self, given: str | None) -> str:
        """The directory for new templates: `given`, else the first configured directory that is not a template itself,
        else the default."""
        from haft.authoring.studio import is_template_folder

        if given is not None:
            if not given:
                raise BadUsage("`--to` is empty", hint="`--to .` is the current directory")
            return os.path.abspath(os.path.expanduser(given))
        wanted = next((each for each in self.configured if not is_template_folder(each.path)), self.default)
        return _inside(wanted.path, self.workspace) if wanted.is_bound else wanted.path


def _inside(path: str, workspace: str) -> str:
    """The real path of a directory. Raises `BadUsage` if it is outside of the workspace."""
    from haft.service import really_inside

    found = really_inside(path, workspace)
    if found is None:
        raise BadUsage(
            f"{path} is outside of the workspace: nothing was installed", hint="`--to DIR` gives the directory"
        )
    return found


def places_of(options: Globals) -> Places:
    """The directories of templates of the workspace."""
    from haft.service import check_workspace, load_config

    home = state_home()
    workspace = check_workspace(workspace_of(options), home.path)
    config = load_config(workspace, os.environ, trust_home=home.path)
    tell_ignored(config, options)
    tell_what_is_logged(options)
    root = os.path.realpath(workspace)
    return Places(workspace, tuple(dict.fromkeys(_written(config, root))), tuple(_instances(config, root)))


def environments_of(options: Globals) -> TemplateEnvironments:
    """The environments of the templates, to inspect or build them."""
    from haft.service import template_environments

    return template_environments(workspace_of(options), state_home())


def state_of_template(folder: str, options: Globals, environments: TemplateEnvironments | None = None) -> TemplateState:
    """The state of the template in a folder, as far as it is known without starting a process."""
    from haft.service import template_state

    return template_state(folder, environments or environments_of(options), state_home())


def is_own(folder: str, options: Globals) -> bool:
    """Whether a template belongs to the person, that is, whether it is outside of the workspace."""
    return not lies_in(os.path.realpath(folder), os.path.realpath(workspace_of(options)))


def _instances(config: Config, workspace: str) -> Iterator[tuple[str, str]]:
    for source, entries in config.lists.get("templates.instances", ()):
        base = os.path.dirname(source) if os.path.isabs(source) else workspace
        for entry in entries:
            instance: Any = entry
            yield instance["name"], os.path.normpath(os.path.join(base, os.path.expanduser(instance["template"])))


def _written(config: Config, workspace: str) -> Iterator[Directory]:
    for source, paths in config.lists.get(_PATHS, ()):
        is_file = os.path.isabs(source)
        base = os.path.dirname(source) if is_file else workspace
        is_bound = is_file and os.path.realpath(base) == workspace and not config.trusted
        for path in paths:
            yield Directory(os.path.normpath(os.path.join(base, os.path.expanduser(path))), is_bound)
