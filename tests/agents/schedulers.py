"""`at` and `cron`, through which an agent could start a command that is not its child. Tests use them where they are
installed, and start their daemons if they do not run and root runs the tests."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

DAEMONS = {"at": ("atd",), "crontab": ("cron", "crond")}
"""The names of the daemon behind each program."""


def _runs(names: tuple[str, ...]) -> bool:
    for place in Path("/proc").glob("[0-9]*/comm"):
        with contextlib.suppress(OSError):
            if place.read_text().strip() in names:
                return True
    return False


@contextlib.contextmanager
def schedulers() -> Iterator[dict[str, str]]:
    """Why `at` or `crontab` cannot be used here, by name. Nothing of this user's crontab is left. Only one test of the
    machine is in here at a time, because the crontab and the daemons belong to all."""
    missing: dict[str, str] = {}
    with contextlib.ExitStack() as leaving:
        lock = leaving.enter_context(open(Path(tempfile.gettempdir(), f"haft-schedulers-{os.getuid()}"), "a"))
        fcntl.flock(lock, fcntl.LOCK_EX)
        for program, names in DAEMONS.items():
            if shutil.which(program) is None:
                missing[program] = f"{program} is not installed"
            elif not _runs(names):
                daemon = next(filter(None, map(shutil.which, names)), None)
                if daemon is None or os.geteuid() != 0:
                    missing[program] = f"{names[0]} does not run here"
                    continue
                started = subprocess.Popen(
                    [daemon, "-f"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, start_new_session=True
                )
                leaving.callback(started.wait)
                leaving.callback(started.terminate)
        if "crontab" not in missing:
            if subprocess.run(["crontab", "-l"], capture_output=True).stdout:
                missing["crontab"] = "this user has a crontab, which the test would replace"
            else:
                leaving.callback(subprocess.run, ["crontab", "-r"], capture_output=True)
        yield missing
