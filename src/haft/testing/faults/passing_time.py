"""Time that passes while a call waits: the scenario key `clock`.

haft's clock moves forward before each answer of the approver, and when the tool begins. Programs of the tool see the
moved time too, which needs the program `faketime`.
"""

from __future__ import annotations

import asyncio
import contextlib
import shutil
from collections.abc import AsyncIterator, Mapping
from typing import ClassVar

from haft.contracts import ApprovalAnswer, ApprovalRequest, Approver, Command, ToolSpec
from haft.testing.calls.injection import Injection
from haft.values import replace


class PassingTime(Injection):
    """Moves the clock each time that the call waits."""

    NEEDS_PROGRAM: ClassVar[bool] = False

    def __init__(self, seconds: float, environ: Mapping[str, str]) -> None:
        super().__init__({})
        self._seconds = seconds
        self._faketime = shutil.which("faketime", path=environ.get("PATH"))

    def why_not(self, spec: ToolSpec) -> str | None:
        if not spec.has_processes or self._faketime is not None:
            return None
        return f"`faketime` is not installed, so that the programs of `{spec.name}` would not see the moved clock"

    def answering(self, approver: Approver) -> Approver:
        def answer(request: ApprovalRequest) -> bool | ApprovalAnswer:
            self.clock.move(self._seconds)
            answered: bool | ApprovalAnswer = approver(request)  # type: ignore[assignment]  # a scripted one is no coroutine
            return answered

        return answer

    @contextlib.asynccontextmanager
    async def around(self, spec: ToolSpec) -> AsyncIterator[None]:
        self.note(spec)
        self.clock.move(self._seconds)
        await asyncio.sleep(0)  # A deadline that has passed ends the call before the tool begins.
        yield

    def changed(self, command: Command, *, outlives_calls: bool) -> Command:
        if self._faketime is None:
            return command
        ahead = self.clock.ahead if not outlives_calls else self.clock.ahead + self._seconds
        return replace(command, argv=[self._faketime, "-f", f"+{ahead:g}s", *command.argv])
