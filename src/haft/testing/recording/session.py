"""Records every call of a workspace while a person, or an agent, works in it."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from haft.contracts import HaftError
from haft.service import Filter, open_history
from haft.testing.recording.recorder import Recorded, record_run
from haft.values import dataclass

if TYPE_CHECKING:
    from haft.runs import RunRecord
    from haft.service import StateHome

_PAUSE_SECONDS: Final = 0.3
_MOST_AT_ONCE: Final = 200


@dataclass(frozen=True)
class NotRecorded:
    """A call of which there is no scenario."""

    run: str
    tool: str
    why: str


class RecordingSession:
    """The calls of a workspace that begin from now on. Each gets a scenario in a folder."""

    def __init__(
        self,
        home: StateHome,
        workspace: str,
        folder: str,
        *,
        files: Sequence[str] = (),
        programs: Sequence[str] = (),
    ) -> None:
        """`files` and `programs` are for every scenario: see `record_run`."""
        self._home = home
        self._workspace = os.path.abspath(workspace)
        self._folder = os.path.abspath(folder)
        self._files = files
        self._programs = programs
        self._since = time.time()
        self._seen: set[str] = set()
        self._written: set[str] = set()
        os.makedirs(self._folder, exist_ok=True)

    def record(self) -> Iterator[Recorded | NotRecorded]:
        """Record calls as they end. Goes on for ever, until the caller stops to ask for more."""
        while True:
            ended = self._ended()
            for each in ended:
                self._seen.add(each.id)
                yield self._recorded(each)
            if not ended:
                time.sleep(_PAUSE_SECONDS)

    def _ended(self) -> list[RunRecord]:
        """The calls that ended and are not recorded yet, oldest first, without calls that other calls made."""
        history = open_history(self._home)
        if history is None:
            return []
        try:
            wanted = Filter(workspace=self._workspace, since=self._since, is_open=False, limit=_MOST_AT_ONCE)
            found = history.runs(wanted)
        finally:
            history.close()
        return [each for each in reversed(found) if each.parent is None and each.id not in self._seen]

    def _recorded(self, run: RunRecord) -> Recorded | NotRecorded:
        try:
            recording = record_run(
                run.id, self._home, files=self._files, programs=self._programs, folder=self._folder, in_session=True
            )
            recorded = asyncio.run(recording)
        except HaftError as error:
            return NotRecorded(run.id, run.tool, str(error))
        with open(recorded.path, encoding="utf-8") as file:
            text = "".join(line for line in file if not line.startswith("#"))
        if text in self._written:
            os.unlink(recorded.path)
            return NotRecorded(run.id, run.tool, "an equal scenario was recorded before")
        self._written.add(text)
        return recorded
