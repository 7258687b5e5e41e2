"""The outcome of a run: the value that callers get, and its JSON form."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from haft.contracts.change import NO_CHANGES, Changes
from haft.contracts.confinement import NO_CONFINEMENT, Confinement
from haft.contracts.connections import Connection
from haft.contracts.decision import Decision
from haft.contracts.errors import EXIT_CODES, Failure
from haft.contracts.events import iso_time
from haft.contracts.limits import LimitsApplied
from haft.contracts.model_answer import MODEL_CHARS, PAGER, ModelAnswer, answer_for_model
from haft.contracts.names import RunId, ThreadId, ToolName
from haft.contracts.ports import EndedChild
from haft.contracts.states import Status
from haft.values import dataclass

NO_LIMITS = LimitsApplied()
UNAUDITED_FIELDS: Final = ("output", "stderr", "result", "truncated", "notes", "content")
"""The fields of the JSON form that the audit log does not have."""


def _own_form(value: Any) -> Any:
    return value.to_json()


def _start(text: str, length: int) -> str:
    return text if len(text) <= length else f"{text[:length]}…"


@dataclass(frozen=True)
class Outcome:
    """The outcome of a run. Its output is bounded; the whole output is stored separately, by the run's id."""

    run_id: RunId
    tool: ToolName
    status: Status
    who: str
    thread: ThreadId
    parent: RunId | None = None
    output: str = ""
    """stdout and stderr in the order in which they came, or the text that the tool returned. Of a long output, only the
    beginning and the end."""
    stderr: str = ""
    exit_code: int | None = None
    result: Any = None
    error: Failure | None = None
    truncated: bool = False
    output_bytes: int = 0
    started_at: float = 0.0
    duration: float = 0.0
    """Seconds from the call to the end of its run, including the time that it waited."""
    changes: Changes = NO_CHANGES
    decision: Decision | None = None
    limits: LimitsApplied = NO_LIMITS
    sandbox: Confinement = NO_CONFINEMENT
    ended_children: tuple[EndedChild, ...] = ()
    """Processes that still ran when the call ended, and were ended with it."""
    connections: tuple[Connection, ...] = ()
    """The network connections of a call whose network is decided by host. The JSON form has them in `sandbox`."""
    notes: tuple[str, ...] = ()
    """Texts for the person about problems that did not make the call fail. Each says what the person can type against
    the problem."""
    content: tuple[Mapping[str, Any], ...] = ()
    """Images, sound, resources and links that the tool returned, in the form in which MCP writes content blocks."""
    cached: bool = False
    """Whether the answer comes from the cache, so that the tool did not run."""

    def __repr__(self) -> str:
        """How the call ended and what it wrote, in so few characters that pytest shows all of them for
        `assert outcome.ok`."""
        facts = [f"Outcome of {_start(self.tool, 40)}: {self.status}"]
        if self.error is not None:
            message = " ".join(self.error.message.split())
            facts.append(f"{self.error.code}: {_start(message, 70)}")
        facts.append(f"output {_start(repr(self.output), 60)}" if self.output else "no output")
        return f"<{', '.join(facts)}>"

    @property
    def ok(self) -> bool:
        return self.status == "done"

    @property
    def process_exit_code(self) -> int:
        """The exit code of `haft tools use`."""
        return 0 if self.error is None else EXIT_CODES.get(self.error.code, 1)

    def for_model(self, max_chars: int = MODEL_CHARS, *, pager: str = PAGER) -> ModelAnswer:
        """The outcome as a model reads it: at most `max_chars` characters of text that say how the call ended and what
        it wrote, and images and the like. `pager` says how the model reads the rest of a long output; `{run}` in it
        stands for the run."""
        return answer_for_model(self, max_chars, pager)

    def to_json(self) -> dict[str, Any]:
        """The JSON form of an outcome, as commands print it and as haft stores it with the run."""
        facts = self.facts(_own_form)
        facts["error"] = None if self.error is None else self.error.to_json()
        facts["startedAt"] = iso_time(self.started_at)
        facts["durationMs"] = round(self.duration * 1000)
        facts["endedChildren"] = [child.to_json() for child in self.ended_children]
        facts["notes"] = list(self.notes)
        facts["content"] = [dict(block) for block in self.content]
        return facts

    def facts(self, form: Callable[[Any], Any]) -> dict[str, Any]:
        """The fields of the JSON form, before encoding. `form` converts values that many outcomes share, such as
        `limits`."""
        return {
            "run": self.run_id,
            "tool": self.tool,
            "status": self.status,
            "output": self.output,
            "stderr": self.stderr,
            "exitCode": self.exit_code,
            "result": self.result,
            "error": self.error,
            "truncated": self.truncated,
            "outputBytes": self.output_bytes,
            "startedAt": self.started_at,
            "durationMs": round(self.duration * 1000, 3),
            "who": self.who,
            "thread": self.thread,
            "parent": self.parent,
            "cached": self.cached,
            "changes": self.changes.to_json() if self.changes.files else form(self.changes),
            "decision": None if self.decision is None else form(self.decision),
            "limits": form(self.limits),
            "sandbox": self._sandbox_json() if self.connections else form(self.sandbox),
            "endedChildren": self.ended_children,
            "notes": self.notes,
            "content": self.content,
        }

    def _sandbox_json(self) -> dict[str, Any]:
        return {**self.sandbox.to_json(), "connections": [each.to_json() for each in self.connections]}


OUTCOME_FIELDS: Final = tuple(Outcome(RunId(""), ToolName(""), "done", "", ThreadId("")).to_json())
"""The names of the fields in the JSON form, in their order."""
