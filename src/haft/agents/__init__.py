"""Sub-agents: their types, and what a model is told about them.

`service/assembly` makes the tool `task` from this package. A type comes from haft (`builtin_types`), from configuration
or from a Markdown file (`types`). Nothing here decides about a call, or starts a process.
"""

from typing import TYPE_CHECKING

from haft.lazy import face

if TYPE_CHECKING:
    from haft.agents.agent_type import BUDGET_KEYS, AgentType, ListedType, TaskIsolation
    from haft.agents.builtin_types import BUILTIN_TYPES, DEFAULT_TYPE, EXPLORE, READING_TOOLS, WORK
    from haft.agents.front_matter import Definition, parse_definition
    from haft.agents.model_names import ChosenModel, chosen_model
    from haft.agents.ports import GO_ON, ModelCall, SubagentSettings, TaskHost, TaskOptions
    from haft.agents.prompts import DEFAULT_PROMPT, system_prompt
    from haft.agents.task import Task
    from haft.agents.tool_names import AllowedTools, allowed_tools, unknown_reason
    from haft.agents.type_files import TypeFile, read_file
    from haft.agents.type_reader import unknown_key_notes
    from haft.agents.types import AgentTypes, TypeTables, type_of_file, types_in_tables
else:
    __getattr__ = face(
        __name__,
        {
            "agent_type": "AgentType BUDGET_KEYS ListedType TaskIsolation",
            "builtin_types": "BUILTIN_TYPES DEFAULT_TYPE EXPLORE READING_TOOLS WORK",
            "front_matter": "Definition parse_definition",
            "model_names": "ChosenModel chosen_model",
            "ports": "GO_ON ModelCall SubagentSettings TaskHost TaskOptions",
            "prompts": "DEFAULT_PROMPT system_prompt",
            "task": "Task",
            "tool_names": "AllowedTools allowed_tools unknown_reason",
            "type_files": "TypeFile read_file",
            "type_reader": "unknown_key_notes",
            "types": "AgentTypes TypeTables type_of_file types_in_tables",
        },
    )
