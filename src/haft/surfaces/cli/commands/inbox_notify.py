"""`haft inbox --watch --notify`: tells the desktop that calls need approval. Arguments of calls, and the reasons, which
quote them, are shown only if the person asked for that: a desktop shows notifications also on a locked screen."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final, Literal

from haft.contracts import HaftError
from haft.service import DesktopNotifier
from haft.surfaces.cli.screen.printing import warn
from haft.surfaces.text.json_text import to_json_text
from haft.surfaces.text.terminal import one_line

if TYPE_CHECKING:
    from haft.service import Waiting

Detail = Literal["names", "arguments"]
MOST_SINGLE: Final = 3
"""How many new calls get a notification each. More of them share one."""


class InboxNotifications:
    """Notifications about new requests. If the desktop shows none, one line says so, and nothing else happens."""

    def __init__(self, detail: Detail, environ: Mapping[str, str]) -> None:
        self._has_arguments = detail == "arguments"
        self._notifier: DesktopNotifier | None = None
        try:
            self._notifier = DesktopNotifier(environ)
        except HaftError as error:
            _tell(error)

    def show(self, new: Sequence[Waiting]) -> None:
        """Show a notification for each of these requests, or one for all if they are many."""
        if len(new) > MOST_SINGLE:
            self._show(f"haft: {len(new)} calls need approval", "`haft inbox` lists them")
            return
        for waiting in new:
            tool = one_line(str(waiting.shown.get("tool", "")))
            where = one_line(os.path.basename(waiting.workspace) or waiting.workspace)
            text = f"{one_line(waiting.who)} in {where}"
            if self._has_arguments:
                text = f"{text}: {one_line(to_json_text(waiting.shown.get('arguments', {})))}"
            self._show(f"haft: {tool} needs approval", text)

    def _show(self, title: str, text: str) -> None:
        if self._notifier is None:
            return
        try:
            self._notifier.show(title, text)
        except HaftError as error:
            self._notifier = None
            _tell(error)


def _tell(error: HaftError) -> None:
    warn(error.message if error.hint is None else f"{error.message} ({error.hint})")
