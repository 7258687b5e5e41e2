"""Notifications on the desktop of the person: `haft inbox --watch --notify` shows one when a call needs approval.

They are shown by the programs that desktops have for this, `notify-send` or `osascript`. These programs run outside the
sandbox, so they get texts only as arguments that cannot be options, and never as code.
"""

from __future__ import annotations

import html
import os
import shutil
import sys
from collections.abc import Mapping
from typing import Final

from haft.contracts import BadConfig
from haft.processes import run_blocking

SECONDS: Final = 5.0
LONGEST: Final = 300
_PASSED: Final = (
    "DBUS_SESSION_BUS_ADDRESS",
    "DISPLAY",
    "HOME",
    "LANG",
    "WAYLAND_DISPLAY",
    "XAUTHORITY",
    "XDG_RUNTIME_DIR",
)
_SCRIPT: Final = ("on run argv", "display notification (item 2 of argv) with title (item 1 of argv)", "end run")


class DesktopNotifier:
    """Shows notifications. Raises `BadConfig` if this machine or session cannot show any."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._env = {name: environ[name] for name in _PASSED if name in environ}
        path = environ.get("PATH", os.defpath)
        name = "osascript" if sys.platform == "darwin" else "notify-send"
        found = shutil.which(name, path=path)
        if found is None:
            hint = None if name == "osascript" else "the package is called libnotify-bin, or libnotify"
            raise BadConfig(f"there are no desktop notifications: `{name}` is not installed", hint=hint)
        if name == "notify-send" and not self._has_session():
            raise BadConfig("there are no desktop notifications: this process does not belong to a desktop session")
        self._program = found

    def _has_session(self) -> bool:
        runtime = self._env.get("XDG_RUNTIME_DIR")
        has_bus = runtime is not None and os.path.exists(os.path.join(runtime, "bus"))
        return "DBUS_SESSION_BUS_ADDRESS" in self._env or has_bus

    def show(self, title: str, text: str) -> None:
        """Show a notification. Raises `BadConfig` if that fails. Blocks until the desktop has it."""
        title, text = title[:LONGEST], text[:LONGEST]
        if sys.platform == "darwin":
            words = [word for line in _SCRIPT for word in ("-e", line)]
            argv = [self._program, *words, title, text]
        else:
            argv = [self._program, "--app-name=haft", "--", title, html.escape(text, quote=False)]
        try:
            ended = run_blocking(argv, cwd="/", env=self._env, seconds=SECONDS)
        except OSError as error:
            raise BadConfig(f"the desktop did not show a notification: {error}") from error
        if ended.code != 0:
            said = " ".join(ended.stderr.split())[:LONGEST]
            raise BadConfig(f"the desktop did not show a notification: {said or f'exit status {ended.code}'}")
