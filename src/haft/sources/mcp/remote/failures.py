"""Why a remote MCP server could not be used, in words for a person.

The `mcp` package turns every failed request into an error of its own, without the reason. So `RemoteClient` answers a
failed request itself, with a JSON-RPC error that names a failure kept here by a random key. A server cannot guess the
key, so it cannot make haft say one of these sentences.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Final, Literal

from haft.contracts import HaftError, ToolFailed
from haft.files import shown
from haft.values import dataclass

if TYPE_CHECKING:
    import httpx2

FailureKind = Literal[
    "unreachable", "tls", "address", "login", "forbidden", "redirect", "not-mcp", "too-large", "session", "status"
]

_KEY: Final = "haftFailure"
_MOST_KEPT: Final = 64
_MOST_SHOWN: Final = 200


class LoginRequired(ToolFailed):
    """A remote server does nothing before the person logs in; the hint names the command."""


@dataclass(frozen=True, slots=True)
class RemoteFailure:
    """Why one request to a remote server failed."""

    kind: FailureKind
    message: str
    hint: str | None = None
    may_have_arrived: bool = False
    """Whether the server may have worked on the request, so that repeating it may do something twice."""

    def error(self) -> HaftError:
        return (LoginRequired if self.kind == "login" else ToolFailed)(self.message, hint=self.hint)


class RemoteFailures:
    """The failures of one connection, and the sentences about them."""

    def __init__(self, name: str, host: str, port: int, masked: Callable[[str], str]) -> None:
        """`masked` removes secrets from a text of the server."""
        self._masked = masked
        self._who = f"the MCP server `{name}`"
        self._name = name
        self._host = host
        self._place = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        self._kept: dict[str, RemoteFailure] = {}
        self.has_ended = False
        """Whether the server ended the connection, or forgot its session, so that only a new connection can go on."""

    def body(self, failure: RemoteFailure) -> bytes:
        """A JSON-RPC error that stands for a failure."""
        key = os.urandom(16).hex()
        while len(self._kept) >= _MOST_KEPT:
            del self._kept[next(iter(self._kept))]
        self._kept[key] = failure
        error = {"code": -32603, "message": failure.message, "data": {_KEY: key}}
        return json.dumps({"jsonrpc": "2.0", "id": None, "error": error}).encode()

    def found_in(self, error: BaseException) -> RemoteFailure | None:
        """The failure that an error of the `mcp` package stands for; None if the error has another reason."""
        for each in _errors_in(error):
            if isinstance(each, RemoteRequestFailed):
                return each.failure
            data: Any = getattr(getattr(each, "error", None), "data", None)
            if isinstance(data, dict) and isinstance(data.get(_KEY), str) and data[_KEY] in self._kept:
                return self._kept[data[_KEY]]
        return None

    def of_error(self, error: Exception, *, has_connected: bool) -> RemoteFailure:
        """The failure of a request that raised an error instead of getting an answer."""
        import ssl

        from haft.sources.mcp.remote.addresses import AddressRefused, TooLarge

        reason = self._said(str(error)) or type(error).__name__
        causes = list(_errors_in(error))
        if any(isinstance(each, AddressRefused) for each in causes):
            refused = next(each for each in causes if isinstance(each, AddressRefused))
            return RemoteFailure("address", f"{self._who} was not used: {self._said(str(refused))}")
        if any(isinstance(each, ssl.SSLCertVerificationError) for each in causes):
            hint = "check the address; SSL_CERT_FILE can name a file with the certificates of your own authority"
            return RemoteFailure("tls", f"{self._who} has no valid certificate for `{self._host}`: {reason}", hint)
        if any(isinstance(each, ssl.SSLError) for each in causes):
            hint = "check whether its address begins with `https://` or `http://`"
            return RemoteFailure("tls", f"{self._who} does not speak TLS at `{self._host}`: {reason}", hint)
        if any(isinstance(each, TooLarge) for each in causes):
            return RemoteFailure("too-large", f"{self._who} was cut off: {reason}", may_have_arrived=True)
        what = "did not answer" if has_connected else f"cannot be reached at `{self._place}`"
        hint = f"check its address and your network; `haft providers restart {self._name}` tries again"
        return RemoteFailure("unreachable", f"{self._who} {what}: {reason}", hint, may_have_arrived=has_connected)

    def of_login(self, *, had_token: bool) -> RemoteFailure:
        """The failure of a request that was refused because it had no token, or an old one."""
        message = f"{self._who} does not accept the login any more" if had_token else f"{self._who} requires a login"
        return RemoteFailure("login", message, f"`haft providers login {self._name}`")

    def of_configured(self) -> RemoteFailure:
        """The failure of a request whose configured credentials were refused."""
        message = f"{self._who} refuses the credentials in its configuration (HTTP 401)"
        hint = "check its `Authorization` header and its `url`; without them, `haft providers login` may help"
        return RemoteFailure("forbidden", message, hint)

    def of_scope(self, scope: str) -> RemoteFailure:
        """The failure of a request for which the login does not suffice."""
        message = f"{self._who} requires further rights for this: {self._said(scope) or 'it does not say which'}"
        return RemoteFailure("login", message, f"`haft providers login {self._name}` asks you for them")

    def of_failed_login(self, why: str) -> RemoteFailure:
        """The failure of a login itself."""
        hint = None
        if why.startswith("Registration failed"):
            hint = "if its operator gives you a client id, write it as `client_id` under `oauth` of the provider"
        return RemoteFailure("login", f"the login at {self._who} failed: {self._said(why)}", hint)

    def of_status(self, response: httpx2.Response, text: str) -> RemoteFailure:
        """The failure of a request that was answered with an HTTP error."""
        status = response.status_code
        words = "" if text.lstrip().startswith("<") else self._said(text)
        said = f": {words}" if words else ""
        if status == 403:
            hint = "check the headers in its configuration, and the rights of the account"
            return RemoteFailure("forbidden", f"{self._who} refuses access (HTTP 403){said}", hint)
        if status in (404, 405, 410):
            hint = "check the path of its `url`"
            return RemoteFailure(
                "not-mcp", f"there is no MCP server at this address of `{self._host}` (HTTP {status})", hint
            )
        return RemoteFailure("status", f"{self._who} answered with HTTP {status}{said}", may_have_arrived=status >= 500)

    def of_session(self) -> RemoteFailure:
        """The failure of a request in a session that the server forgot, for example because it was restarted."""
        self.has_ended = True
        return RemoteFailure("session", f"{self._who} ended the session before it answered")

    def of_redirect(self, location: httpx2.URL) -> RemoteFailure:
        """The failure of a request that was redirected to another host. The message leaves out the query, which may
        contain secrets."""
        shown_location = shown(f"{location.scheme}://{location.netloc.decode('ascii', 'replace')}{location.path}")
        message = (
            f"{self._who} redirects to {shown_location[:_MOST_SHOWN]}, which is another server; haft did not go there"
        )
        return RemoteFailure("redirect", message, "if that is the right server, write its address in the configuration")

    def of_content(self, content_type: str) -> RemoteFailure:
        """The failure of a request whose answer is no MCP message, such as a page of HTML."""
        what = (
            "a web page" if "html" in content_type else f"`{shown(content_type)[:60]}`" if content_type else "nothing"
        )
        message = f"`{self._host}` answers with {what} instead of MCP messages"
        return RemoteFailure("not-mcp", message, "check the path of its `url`", may_have_arrived=True)

    def _said(self, text: str) -> str:
        """A text of the server on one line, without secrets, and not too long."""
        return shown(" ".join(self._masked(text).split()))[:_MOST_SHOWN]


class RemoteRequestFailed(Exception):
    """A request failed for a reason that is known."""

    def __init__(self, failure: RemoteFailure) -> None:
        super().__init__(failure.message)
        self.failure = failure


def _errors_in(error: BaseException) -> Iterator[BaseException]:
    """The error, its causes, and those inside groups."""
    left, seen = [error], set[int]()
    while left:
        one = left.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        yield one
        left += one.exceptions if isinstance(one, BaseExceptionGroup) else ()
        left += (each for each in (one.__cause__, one.__context__) if each is not None)
