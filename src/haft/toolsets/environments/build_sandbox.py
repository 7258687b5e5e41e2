"""The sandbox in which haft makes an environment: programs in it can write to one directory, and cannot see the
workspace.

Every sandbox hides home directories, scratch directories and haft's own state; this one also hides the workspace.
"""

from __future__ import annotations

import contextlib
import functools
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from haft.config import Config
from haft.files import Root
from haft.sandbox import Sandbox, Site, Tool, can_be_hidden, is_below, needed, package_index_hosts

MOST_BYTES: Final = 20_000_000_000
MOST_FILE_BYTES: Final = 5_000_000_000
MOST_FILES: Final = 500_000


@contextlib.contextmanager
def sandbox_around(
    ground: str, workspace: str, state_home: str, config: Config, env: Mapping[str, str]
) -> Iterator[BuildSandbox]:
    """A context manager that yields a sandbox in which programs can write only to the directory `ground`. This sandbox
    allows more written bytes than the sandbox of a call, because packages can be large."""
    limits = replace(
        config.limits,
        cpu_seconds=0.0,
        max_written_bytes=MOST_BYTES,
        max_written_file_bytes=MOST_FILE_BYTES,
        max_changed_files=MOST_FILES,
    )
    sandbox = BuildSandbox(ground, state_home, env, Root(ground).open_directory, limits, config.sandbox_mode)
    sandbox.unseen = workspace
    try:
        yield sandbox
    finally:
        sandbox.close()


class BuildSandbox(Sandbox):
    """The sandbox of one build."""

    unseen: str
    """A path to hide, in addition to those that every sandbox hides."""

    def use_indexes(self, env: Mapping[str, str], tools: Sequence[Tool], packages: Sequence[str]) -> None:
        """Say what `@package-indexes` means here: the indexes of `tools`, with the hosts that serve `packages`."""
        self.hosts.package_indexes = functools.partial(
            package_index_hosts, env, self.unseen, self._state_home, tools=tools, packages=packages
        )

    @property
    def site(self) -> Site:
        site = replace(super().site, caches=())
        place = self.unseen
        if not can_be_hidden(place) or is_below(place, site.hidden) or is_below(site.workspace, (place,)):
            return site
        show = [(os.path.realpath(path), path) for path in needed(site.workspace) if is_below(path, (place,))]
        if any(path == place for _source, path in show):
            return site  # Python itself lies at the top of the workspace.
        return replace(site, hide=(*site.hide, (place, 0o700)), show=(*site.show, *dict.fromkeys(show)))

    def close(self) -> None:
        """Close the sandbox, and remove the cache directories that a sandbox for calls would keep."""
        super().close()
        for kept, _target in super().site.caches:
            shutil.rmtree(os.path.dirname(kept), ignore_errors=True)
