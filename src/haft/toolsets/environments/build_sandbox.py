"""The sandbox in which haft makes an environment: it can write to one directory, and cannot see the workspace.

Every sandbox hides home directories, scratch directories and haft's own state; this one also hides the workspace.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final

from haft.config import Config
from haft.files import Root
from haft.sandbox import Sandbox, Site, can_be_hidden, is_below, needed

MOST_BYTES: Final = 20_000_000_000
MOST_FILE_BYTES: Final = 5_000_000_000
MOST_FILES: Final = 500_000


@contextlib.contextmanager
def sandbox_around(
    ground: str, workspace: str, state_home: str, config: Config, env: Mapping[str, str]
) -> Iterator[Sandbox]:
    """A sandbox that can write only in `ground`. Packages may be larger than the write limit of a call."""
    limits = replace(
        config.limits,
        cpu_seconds=0.0,
        max_written_bytes=MOST_BYTES,
        max_written_file_bytes=MOST_FILE_BYTES,
        max_changed_files=MOST_FILES,
    )
    sandbox = _Elsewhere(ground, state_home, env, Root(ground).open_directory, limits, config.sandbox_mode)
    sandbox.unseen = workspace
    try:
        yield sandbox
    finally:
        sandbox.close()


class _Elsewhere(Sandbox):
    unseen: str
    """Another path to hide."""

    @property
    def site(self) -> Site:
        site = replace(super().site, caches=())
        place = self.unseen
        if not can_be_hidden(place) or is_below(place, site.hidden) or is_below(site.workspace, (place,)):
            return site
        show = [(os.path.realpath(path), path) for path in needed(site.workspace) if is_below(path, (place,))]
        if any(path == place for _source, path in show):
            return site  # Python itself is the workspace.
        return replace(site, hide=(*site.hide, (place, 0o700)), show=(*site.show, *dict.fromkeys(show)))

    def close(self) -> None:
        """Close without keeping anything but the environment."""
        super().close()
        for kept, _target in super().site.caches:
            shutil.rmtree(os.path.dirname(kept), ignore_errors=True)
