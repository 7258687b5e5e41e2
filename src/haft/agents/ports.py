"""What a task is told besides its arguments, and what it needs from its host: calls, and stored conversations."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Protocol

from haft.contracts import Outcome, Principal, Rights, RunId, ToolContext, ToolName, ToolSpec
from haft.values import dataclass

if TYPE_CHECKING:
    from haft.agents.agent_type import AgentType


NAME: Final = ToolName("task")
GO_ON: Final = "Go on with your task."
"""What a sub-agent is told that goes on, if a person says nothing else."""


@dataclass(frozen=True, slots=True)
class TaskOptions:
    """What the program or the person that starts a task says about it, besides its arguments."""

    resumes: RunId | None = None
    """The task whose conversation goes on."""
    model: str = ""
    """The model, instead of that of the type."""


@dataclass(frozen=True, slots=True)
class ModelCall:
    """A tool call of a model: the model's id for it, and the id of the run that it gets."""

    id: str
    run: RunId
    tool: str
    arguments: Mapping[str, Any]
    resumes: RunId | None = None
    """The run whose conversation goes on, if the tool is `task` and the call is made again."""


@dataclass(frozen=True, slots=True)
class SubagentSettings:
    """The settings of sub-agents that are not those of a type."""

    model: str
    base_url: str
    temperature: float
    output_tokens: int
    isolation: str
    budget: Mapping[str, float]


class TaskContext(ToolContext, Protocol):
    """The context of a task."""

    @property
    def works_in_layer(self) -> bool:
        """Whether the task works in a layer of its own."""
        ...

    @property
    def elapsed(self) -> float:
        """How many seconds the call has been in progress, without the time in which a call that it made waited for a
        person."""
        ...

    @property
    def stays_open(self) -> bool:
        """Whether the host is ending, and the run is not: another host goes on with the call."""
        ...


class LiveCall(Protocol):
    """A call that a task has made."""

    def __await__(self) -> Any: ...

    def cancel(self, by: Principal | None = None) -> bool: ...


class TaskHost(Protocol):
    """The host of tasks. Its calls go through the pipeline like all others."""

    @property
    def settings(self) -> SubagentSettings: ...

    def type_named(self, name: str) -> AgentType:
        """The type that has this name. Raises `BadUsage` if there is none, or it cannot be used."""
        ...

    def model_for(self, kind: AgentType) -> str:
        """The name of the model for a type; empty if none is configured."""
        ...

    def tools_of(self, kind: AgentType, context: ToolContext) -> tuple[Sequence[ToolSpec], Sequence[str]]:
        """The tools of a type that can be called here, and what is to be said about others. Raises `BadUsage` if there
        are none."""
        ...

    def rights_above(self, context: ToolContext) -> tuple[Rights, ...]:
        """The rights of those who started the task that `context` belongs to."""
        ...

    def start_calls(
        self, calls: Sequence[ModelCall], context: ToolContext, thread: str, rights: Rights
    ) -> Sequence[LiveCall]:
        """Make calls at once, as calls of the task that `context` belongs to."""
        ...

    def outcome_before(self, call: ModelCall) -> Awaitable[tuple[ModelCall, Outcome | None]]:
        """The outcome of a call that was made before this host began. If the call has to be made again, the outcome is
        None, and the call is the one to make."""
        ...

    def system_prompt(self, kind: AgentType) -> str: ...

    def read_conversation(self, task: str) -> bytes | None: ...

    def write_conversation(self, task: str, text: bytes) -> Awaitable[None]: ...

    def forget_thread(self, thread: str) -> Awaitable[None]:
        """Forget what a person allowed in the thread of a task that has ended."""
        ...
