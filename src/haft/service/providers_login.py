"""Logs a person in at a remote MCP server: `haft providers login NAME`.

The person typed this command, so haft opens the login page in a browser, if this machine has one. The address and its
host are shown in any case.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import AsyncIterator, Callable, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from haft.sources.mcp import LoginPage, LoginResult, Provider


async def login_provider(
    provider: Provider,
    state_home: str,
    say: Callable[[str], None],
    *,
    browser: bool = True,
    pasted: AsyncIterator[str] | None = None,
) -> LoginResult:
    """Log in at a remote provider. `say` gets the lines for the person. With `browser`, the login page is opened if
    this machine has a browser. `pasted` gives lines that the person typed: one of them may be the address at which a
    browser on another machine ended. Raises `HaftError` if the login fails."""
    from haft.sources.mcp import log_in

    async def show(page: LoginPage) -> None:
        for line in login_lines(provider.name, page, has_terminal=pasted is not None):
            say(line)
        if browser and has_browser(os.environ):
            # A browser in the terminal ends when the person leaves it; haft does not wait for that.
            threading.Thread(target=_open, args=(page.address,), daemon=True).start()

    return await log_in(provider, state_home, show, pasted)


def forget_login(name: str, state_home: str) -> int:
    """Forget the tokens of a provider that was removed. Returns from how many addresses they were."""
    from haft.sources.mcp import forget_logins

    return forget_logins(state_home, name)


def login_lines(name: str, page: LoginPage, *, has_terminal: bool) -> list[str]:
    """What the person reads before the login: who asks, at which host, and the address."""
    is_own = page.host == page.server_host
    where = "its own host" if is_own else f"another host than its own, which is `{page.server_host}`"
    lines = [f"The MCP server `{name}` asks you to log in at `{page.host}` ({where}):", page.address]
    if has_terminal:
        lines.append("If your browser runs on another machine, paste the address at which it ends, and press Enter.")
    return lines


def has_browser(env: Mapping[str, str]) -> bool:
    """Whether this machine can show a page: it has a desktop, or names a browser."""
    return sys.platform == "darwin" or any(env.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER"))


def _open(address: str) -> None:
    import webbrowser

    webbrowser.open(address)
