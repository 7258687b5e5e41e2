"""The context that a tool gets for one call: its workspace, its launcher, and ways to report while it works."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from haft.contracts import (
    EndedChild,
    Launcher,
    Limits,
    Question,
    QuestionAnswer,
    QuestionMethod,
    RunId,
    Secrets,
    Stream,
    ThreadId,
    Workspace,
)
from haft.pipeline import nesting
from haft.pipeline.questions import Questions
from haft.pipeline.run import ProgramLog, Run


class CallContext:
    """The `ToolContext` of one call. Everything that the tool reports goes to the run."""

    __slots__ = ("_call", "_launcher", "_launcher_for", "_limits", "_questions", "_run", "_workspace", "cancelled")

    def __init__(
        self,
        run: Run,
        workspace: Workspace,
        launcher_for: Callable[[Run], Launcher],
        limits: Limits,
        call: Callable[..., Run],
        questions: Questions | None = None,
    ) -> None:
        """`call` is the method of the service that makes a call. Without `questions`, nobody can be asked."""
        self._questions = questions
        self._call = call
        self._run = run
        self._limits = limits
        self._launcher_for = launcher_for
        self._launcher: Launcher | None = None
        self._workspace = workspace
        self.cancelled = False

    @property
    def workspace(self) -> Workspace:
        return self._run.workspace or self._workspace

    @property
    def launcher(self) -> Launcher:
        if self._launcher is None:
            self._launcher = self._launcher_for(self._run)
        return self._launcher

    def cancel(self) -> None:
        """Mark the call as cancelled, so that functions that check `cancelled` can stop early."""
        self.cancelled = True

    @property
    def run(self) -> RunId:
        return self._run.call.run

    @property
    def thread(self) -> ThreadId:
        return self._run.call.thread

    @property
    def who(self) -> str:
        return self._run.call.who

    @property
    def limits(self) -> Limits:
        return self._limits

    @property
    def cwd(self) -> str:
        return self._run.call.cwd

    @property
    def env(self) -> Mapping[str, str]:
        return self._run.call.env

    @property
    def config(self) -> Mapping[str, Any]:
        return self._run.call.config

    @property
    def secrets(self) -> Secrets:
        return self._run.call.secrets

    @property
    def works_in_layer(self) -> bool:
        return self._run.transaction is not None and self._run.tool.spec.delegates

    @property
    def elapsed(self) -> float:
        return 0.0 if self._run.deadline is None else self._run.deadline.elapsed

    @property
    def stays_open(self) -> bool:
        return self._run.pausing is not None and self._run.pausing.stays_open

    @property
    def chain(self) -> tuple[RunId, ...]:
        return tuple(each.id for each in nesting.callers(self._run))

    def call(self, name: str, arguments: Mapping[str, Any] | None = None, *, timeout: float | None = None) -> Run:
        """Call another tool as part of this call. Await the run for its outcome."""
        return self._call(name, arguments, timeout=timeout, parent=self._run.id)

    async def ask(self, *questions: Question) -> list[QuestionAnswer]:
        if self._questions is None or self._run.outcome is not None:
            return [QuestionAnswer("cancel") for _ in questions]
        return await self._questions.ask(self._run, questions)

    def can_ask(self, method: QuestionMethod = "elicitation/create") -> bool:
        return self._questions is not None and self._questions.can_ask(self._run, method)

    def progress(self, message: str = "", *, fraction: float | None = None, **facts: Any) -> None:
        if self._run.outcome is None:
            self._run.emit("progress", {"message": message, "fraction": fraction, **facts})

    def output(self, stream: Stream, data: bytes) -> None:
        if self._run.outcome is None:
            self._run.output(stream, data)

    def stderr_only(self, data: bytes, stream: Stream = "stderr") -> None:
        if self._run.outcome is None:
            self._run.stderr_only(data, stream)

    def program_log(self, text: str, *, is_shared: bool) -> None:
        if self._run.outcome is None:
            self._run.program_log = ProgramLog(self.secrets.masked_text(text), is_shared)

    def processes_ended(self, children: Sequence[EndedChild]) -> None:
        self._run.processes_ended(children)
