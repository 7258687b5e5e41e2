"""The tool `task`: a sub-agent works on a task with its own, narrower set of tools, and reports.

Its work is done only by calls, each of which is decided, recorded and undone like any other. So the tool itself needs
no approval. `task_performer` does the work, and is imported with the first task.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, cast

from haft.agents.builtin_types import DEFAULT_TYPE
from haft.agents.ports import NAME, TaskContext, TaskHost, TaskOptions
from haft.contracts import DELEGATES, Answer, HaftError, RunId, ToolContext, ToolSpec
from haft.files import digest_of

if TYPE_CHECKING:
    from haft.agents.task_performer import TaskPerformer

DESCRIPTION: Final = (
    "Delegate a self-contained task to a sub-agent, which works with its own set of tools and reports at the end. The "
    "sub-agent sees nothing of your conversation: say in `prompt` everything that it must know and what to report."
)


class Task:
    """The tool. It can be listed before it has a host."""

    def __init__(self, described: Sequence[tuple[str, str]] = ()) -> None:
        """`described` are the names and descriptions of the types that can be used."""
        self._described = described
        self.host: Callable[[], TaskHost] | None = None
        self._performer: TaskPerformer | None = None
        self.options: dict[RunId, TaskOptions] = {}
        """By the id of a run that is about to start."""

    @cached_property
    def spec(self) -> ToolSpec:
        kinds = "".join(f"\n- `{name}`: {' '.join(what.split())}" for name, what in self._described)
        about = f"The type of sub-agent:{kinds}" if kinds else "The type of sub-agent."
        agent: dict[str, Any] = {"type": "string", "description": about}
        schema = {
            "type": "object",
            "properties": {
                "prompt": {"type": "string", "minLength": 1, "description": "The task, and what to report."},
                "context": {"type": "string", "description": "Facts that the sub-agent needs. It takes them as data."},
                "agent": {**agent, "default": DEFAULT_TYPE},
            },
            "required": ["prompt"],
            "additionalProperties": False,
        }
        definition = json.dumps([NAME, DESCRIPTION, schema], sort_keys=True).encode()
        return ToolSpec(
            name=NAME,
            kind="builtin",
            description=DESCRIPTION,
            input_schema=schema,
            provenance="builtin",
            origin=__name__,
            digest=digest_of(definition),
            reads=(),
            writes=(),
            meta={DELEGATES: True, "noDeadline": True},
            trial_in_layer=True,
            resumes=True,
        )

    async def preprocess(self, arguments: dict[str, Any], context: ToolContext) -> dict[str, Any]:
        return arguments

    def wants_trial(self, arguments: Mapping[str, Any]) -> bool:
        """Whether the sub-agent works in a layer of its own, because its type or a setting says so."""
        if self.host is None:
            return False
        host = self.host()
        try:
            kind = host.type_named(str(arguments.get("agent") or DEFAULT_TYPE))
        except HaftError:
            return False  # The call will fail.
        return (kind.isolation or host.settings.isolation) == "layer"

    async def invoke(self, arguments: dict[str, Any], context: ToolContext) -> Answer:
        if self._performer is None:
            from haft.agents.task_performer import TaskPerformer

            assert self.host is not None
            self._performer = TaskPerformer(self.host())
        options = self.options.pop(context.run, None) or TaskOptions()
        return await self._performer.perform(arguments, cast("TaskContext", context), options)
