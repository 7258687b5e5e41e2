"""The MCP surface: `haft serve mcp` offers every tool to MCP clients, over stdio or HTTP.

`first_answer` answers the first request before the `mcp` package is imported, if `command_line` knows the command line.
`stdio` and `http` carry messages.
`server` builds the package's server from `offered_tools`, `calls`, `own_tools`, `resources` and `prompts`.
"""
