"""The staging folder: a hidden folder beside the skills, in which an install prepares them. Also cleans up after an
interrupted install.

A process locks the staging folder that it uses, and the lock ends with the process. So if another process can lock a
staging folder, nobody uses this folder.
"""

from __future__ import annotations

import logging
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Final

from haft.contracts import StorageFailed
from haft.files import locked
from haft.sources.skills import is_skill_name

STAGING: Final = ".haft-install-"
"""The beginning of the name of a staging folder."""
OLD: Final = "old"
"""The folder in a staging folder for skills that are being replaced."""
_PATIENCE: Final = 10.0
_DIRECTORY: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def restore_interrupted(place: str) -> None:
    """Restore the skills that an interrupted install had moved away, and remove its staging folder."""
    with suppress(OSError):
        for name in os.listdir(place):
            if name.startswith(STAGING):
                _restore(os.path.join(place, name), place)


def _restore(staging: str, place: str) -> None:
    """Move the replaced skills back from one staging folder, and remove this folder. Follows no links, because a cloned
    workspace could contain a staging folder with links."""
    with suppress(OSError, TimeoutError), ExitStack() as stack:
        above = os.open(staging, _DIRECTORY)
        stack.callback(os.close, above)
        stack.enter_context(locked(above, 0))  # Fails if another process uses the folder.
        with suppress(FileNotFoundError):
            old = os.open(OLD, _DIRECTORY, dir_fd=above)
            stack.callback(os.close, old)
            for name in filter(is_skill_name, os.listdir(old)):
                if not os.path.lexists(os.path.join(place, name)):
                    os.rename(name, os.path.join(place, name), src_dir_fd=old)
        _remove(staging)


@contextmanager
def staging_in(place: str) -> Iterator[str]:
    """A hidden folder beside the skills, locked while it is used and then removed."""
    try:
        staging = tempfile.mkdtemp(prefix=STAGING, dir=place)
        os.chmod(staging, stat.S_IRWXU)
        descriptor = os.open(staging, _DIRECTORY)
    except OSError as error:
        raise StorageFailed(f"nothing can be installed in {place}", error) from error
    try:
        with locked(descriptor, _PATIENCE):
            yield staging
    finally:
        os.close(descriptor)
        _remove(staging)


def _remove(staging: str) -> None:
    shutil.rmtree(staging, ignore_errors=True)
    if os.path.lexists(staging):
        logging.getLogger("haft").warning("%s could not be removed: remove it yourself", staging)
