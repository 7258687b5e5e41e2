"""The page on which people sign in."""

from __future__ import annotations

import html
from urllib.parse import quote

from starlette.responses import HTMLResponse

_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Sign in · haft</title>
<script src="/sign-in/sign_in.js" defer></script>
</head>
<body>
<main>
<h1>Sign in</h1>
<p id="problem" role="alert">{problem}</p>
{provider}
<form id="with-token" data-to="{to}" method="post">
<p><label for="token">Token</label>
<input id="token" name="token" type="password" autocomplete="off" spellcheck="false" required></p>
<p><button type="submit">Sign in</button></p>
</form>
<p><code>haft tokens add NAME --person</code> makes a token. <code>haft serve http</code> prints a link that signs you
in without one.</p>
</main>
</body>
</html>
"""


def sign_in_page(*, to: str, has_provider: bool, problem: str = "", status: int = 200) -> HTMLResponse:
    """The page. `to` is where a person goes afterwards; `problem` says why it did not work before."""
    provider = f'<p><a href="/sign-in/oidc?to={quote(to, safe="")}">Sign in with your account</a></p>'
    page = _PAGE.format(
        problem=html.escape(problem), provider=provider if has_provider else "", to=html.escape(to, quote=True)
    )
    return HTMLResponse(page, status)
