"""Codes of types of sub-agents."""

from __future__ import annotations

from typing import Final

from haft.sources.checks.codes.model import Code

AGENTS: Final = (
    Code(
        "agent-definition",
        "error",
        "The definition of a sub-agent cannot be understood, or a value in it is wrong.",
        "The file must begin with a line `---`. Then come `name:`, `description:` and other keys, then another line "
        "`---`, and then the system prompt. haft does not guess what a wrong value means, because a guess could give "
        "the sub-agent too much.",
        "---\nname: reviewer\nlimits: {tokens: many}\n---",
        "---\nname: reviewer\ndescription: Reviews a change. Use before a commit.\nlimits: {tokens: 50000}\n---",
    ),
    Code(
        "agent-unknown-key",
        "warning",
        "The front matter of a sub-agent has a key that neither haft nor Claude Code knows.",
        "haft ignores the key. If it is misspelt, the sub-agent lacks what the key should set.",
        "disalowedTools: Bash",
        "disallowedTools: Bash",
    ),
    Code(
        "agent-ignored",
        "note",
        "haft ignores a part of the definition of a sub-agent, or reads it in another way than it is written.",
        "Keys such as `hooks`, `mcpServers` and `permissionMode` have no effect in haft: a definition must not give a "
        "sub-agent more than your rules do. Configure MCP servers and rules in `haft.toml`.",
        "permissionMode: bypassPermissions",
        '[[permissions]]\ntool = "shell"\nmatches = {command = "npm test*"}\ncontext = "subagent"\naction = "allow"',
    ),
    Code(
        "agent-tool",
        "warning",
        "A sub-agent does not get a tool that its definition names.",
        "The tool does not exist in this workspace, or it cannot be called, or the name allows only some calls of a "
        "tool. haft leaves such tools out. `haft tools list --all` lists all tools.",
        "tools: Read, Grepp",
        "tools: Read, Grep",
    ),
    Code(
        "agent-no-tools",
        "error",
        "A sub-agent gets none of the tools that its definition names.",
        "haft does not start a sub-agent without tools. Name a tool that exists, or leave out `tools`: then the "
        "sub-agent gets the tools of `explore`.",
        "tools: WebSearch",
        "tools: Read, Grep, Glob",
    ),
    Code(
        "agent-name",
        "warning",
        "The name of a sub-agent differs from the name of its file.",
        "The name in the file counts. People look for the sub-agent under the name of the file.",
        ".agents/agents/review.md says `name: reviewer`",
        ".agents/agents/reviewer.md says `name: reviewer`",
    ),
    Code(
        "agent-prompt",
        "warning",
        "The definition of a sub-agent has no system prompt.",
        "The text below the front matter is the system prompt. Without it, the sub-agent gets the default prompt. "
        "`haft agent show` prints it.",
        "---\nname: reviewer\ndescription: …\n---",
        "---\nname: reviewer\ndescription: …\n---\nReview the change that the task names. Look for …",
    ),
)
