"""MCP servers: their tools, resources and prompts.

Importing this package is cheap: the `mcp` package is imported when a server is first used.
"""

from typing import TYPE_CHECKING

from haft.lazy import face

if TYPE_CHECKING:
    from haft.sources.mcp.completions import Completion, CompletionTool
    from haft.sources.mcp.names import listed_name
    from haft.sources.mcp.provider import (
        START_SECONDS,
        InstalledServer,
        Provider,
        ProviderTransport,
        ServerPackages,
        StartTrust,
    )
    from haft.sources.mcp.remote.addresses import AddressRefused, named_hosts_only
    from haft.sources.mcp.remote.login import LoginPage, LoginResult, log_in
    from haft.sources.mcp.remote.logins import forget_logins, login_secrets
    from haft.sources.mcp.server import McpServer
    from haft.sources.mcp.server_log import log_path, read_log
    from haft.sources.mcp.source import McpServers
    from haft.sources.mcp.texts import visible, visible_json
else:
    __getattr__ = face(
        __name__,
        {
            "remote.addresses": "AddressRefused named_hosts_only",
            "remote.login": "LoginPage LoginResult log_in",
            "remote.logins": "forget_logins login_secrets",
            "completions": "Completion CompletionTool",
            "names": "listed_name",
            "server": "McpServer",
            "server_log": "log_path read_log",
            "source": "McpServers",
            "texts": "visible visible_json",
            "provider": "START_SECONDS InstalledServer Provider ProviderTransport ServerPackages StartTrust",
        },
    )
