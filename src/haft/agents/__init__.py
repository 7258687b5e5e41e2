"""Sub-agents: their types, and what a model is told about them.

`service/assembly` makes the tool `task` from this package. A type comes from haft (`builtin_types`), from configuration
or from a Markdown file. Nothing here decides about a call, or starts a process.
"""

from typing import TYPE_CHECKING

from haft.lazy import face

if TYPE_CHECKING:
    from haft.agents.agent_type import BUDGET_KEYS, AgentType, ListedType, TaskIsolation
    from haft.agents.builtin_types import BUILTIN_TYPES, DEFAULT_TYPE, EXPLORE, READING_TOOLS, WORK
else:
    __getattr__ = face(
        __name__,
        {
            "agent_type": "AgentType BUDGET_KEYS ListedType TaskIsolation",
            "builtin_types": "BUILTIN_TYPES DEFAULT_TYPE EXPLORE READING_TOOLS WORK",
        },
    )
