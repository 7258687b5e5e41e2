"""The page on which people sign in, in the style of the console."""

from __future__ import annotations

from typing import TYPE_CHECKING

from haft.surfaces.http.console.rendering import rendered

if TYPE_CHECKING:
    from starlette.responses import HTMLResponse


def sign_in_page(*, to: str, has_provider: bool, problem: str = "", status: int = 200) -> HTMLResponse:
    """The page. `to` is where a person goes afterwards; `problem` says why it did not work before."""
    return rendered("sign_in.html", {"to": to, "has_provider": has_provider, "problem": problem}, status)
