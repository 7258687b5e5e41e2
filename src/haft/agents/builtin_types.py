"""The types of sub-agents that haft brings."""

from __future__ import annotations

from typing import Final

from haft.agents.agent_type import AgentType

READING_TOOLS: Final = ("read_file", "list_directory", "search", "find_files")
WRITING_TOOLS: Final = ("write_file", "edit_file", "shell")

EXPLORE: Final = AgentType(
    "explore",
    "Reads and searches the files of the workspace, and answers a question about them. It changes nothing.",
    tools=READING_TOOLS,
    readonly=True,
    provenance="builtin",
)

WORK: Final = AgentType(
    "work",
    "Works on a task in the workspace: reads, searches, writes and edits files, and runs commands. Its commands get no "
    "grants, and no answers that were remembered for other calls.",
    tools=(*READING_TOOLS, *WRITING_TOOLS),
    disallowed=("task",),
    provenance="builtin",
)

BUILTIN_TYPES: Final = (EXPLORE, WORK)
DEFAULT_TYPE: Final = WORK.name
"""The type of a task that names none."""
