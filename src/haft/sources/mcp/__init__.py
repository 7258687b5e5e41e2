"""MCP servers: their tools, resources and prompts.

Importing this package is cheap: the `mcp` package is imported when a server is first used.
"""

from typing import TYPE_CHECKING

from haft.lazy import face

if TYPE_CHECKING:
    from haft.sources.mcp.login import LoginPage, LoginResult, log_in
    from haft.sources.mcp.logins import forget_logins, login_secrets
    from haft.sources.mcp.provider import InstalledServer, Provider, ProviderTransport, ServerPackages, StartTrust
else:
    __getattr__ = face(
        __name__,
        {
            "login": "LoginPage LoginResult log_in",
            "logins": "forget_logins login_secrets",
            "provider": "InstalledServer Provider ProviderTransport ServerPackages StartTrust",
        },
    )
