"""OAuth for remote MCP servers: requests with the tokens of an earlier login, and the login itself.

`StoredTokens` never asks anybody: it adds the access token to requests to the server, renews it when it expires, and
leaves the rest to a message that names `haft providers login`. `LoginFlow` is the flow of the `mcp` package (discovery,
registration, PKCE, the answer's issuer), which only that command uses.
"""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qs, urlsplit

import anyio
import httpx2
from mcp.client.auth import OAuthClientProvider, OAuthFlowError
from mcp.client.auth.oauth2 import OAuthContext
from mcp.client.auth.utils import (
    extract_field_from_www_auth,
    extract_scope_from_www_auth,
    issuers_match,
    union_scopes,
)
from mcp.shared.auth import AuthorizationCodeResult, OAuthClientInformationFull, OAuthClientMetadata, OAuthToken
from pydantic import AnyUrl

from haft.contracts import HaftError, ToolFailed
from haft.files import HeldLock, try_lock
from haft.sources.mcp.remote.logins import CLIENT_CREDENTIALS, Login, Logins, renewed

if TYPE_CHECKING:
    from haft.sources.mcp.provider import Provider
    from haft.sources.mcp.remote.login_callback import LoginCallback

_LOCK_SECONDS: Final = 45.0
_LOGIN_SECONDS: Final = 600.0
_MOST_AUTHORIZATIONS: Final = 3
_BASIC: Final = "client_secret_basic"
_POST: Final = "client_secret_post"


class StoredTokens(httpx2.Auth):
    """Adds the tokens of an earlier login to the requests to one server."""

    def __init__(self, logins: Logins) -> None:
        self._logins = logins
        self._renewing = anyio.Lock()

    async def async_auth_flow(self, request: httpx2.Request) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        """Send a request with the token, and once more with a renewed one if the server refuses it."""
        login = self._logins.current
        if login is not None and login.is_expired and login.is_renewable:
            async with self._renewing, _RenewalLock(self._logins.path):
                if (renewable := self._still(login)) is not None:
                    self._renew(renewable, (yield _renewal(renewable)))
            login = self._logins.current
        response = yield _with_token(request, login)
        if response.status_code == 401 and login is not None and login.is_renewable:
            async with self._renewing, _RenewalLock(self._logins.path):
                if (renewable := self._still(login)) is not None:
                    self._renew(renewable, (yield _renewal(renewable)))
            after = self._logins.current
            if after is not None and after.access_token != login.access_token:
                response = yield _with_token(request, after)
        if response.status_code == 403 and extract_field_from_www_auth(response, "error") == "insufficient_scope":
            granted = login.scope if login is not None else None
            if scope := union_scopes(granted, extract_scope_from_www_auth(response)):
                self._logins.want(scope)

    def _still(self, login: Login) -> Login | None:
        """The login if nobody renewed it meanwhile, in this process or another one."""
        now = self._logins.current
        return now if now is not None and now.access_token == login.access_token else None

    def _renew(self, login: Login, response: httpx2.Response) -> None:
        if response.status_code == 200:
            answer = _json(response)
            if isinstance(answer.get("access_token"), str) and answer["access_token"]:
                self._logins.keep(renewed(login, answer))
        elif response.status_code in (400, 401, 403):
            self._logins.drop_tokens(login)


def _with_token(request: httpx2.Request, login: Login | None) -> httpx2.Request:
    if login is not None:
        request.headers["Authorization"] = f"Bearer {login.access_token}"
    return request


def _renewal(login: Login) -> httpx2.Request:
    """The request for new tokens, to the address that issued the old ones."""
    client = OAuthClientInformationFull.model_validate(dict(login.client))
    if login.refresh_token:
        data = {"grant_type": "refresh_token", "refresh_token": login.refresh_token, "client_id": client.client_id}
    else:
        data = {"grant_type": CLIENT_CREDENTIALS, **({"scope": login.scope} if login.scope else {})}
    if login.resource is not None:
        data["resource"] = login.resource
    context = OAuthContext("", _metadata("http://127.0.0.1"), _NoStorage(), None, None)
    context.client_info = client
    data, headers = context.prepare_token_auth(data, {"Content-Type": "application/x-www-form-urlencoded"})
    return httpx2.Request("POST", login.token_endpoint, data=data, headers=headers)


def _json(response: httpx2.Response) -> dict[str, Any]:
    try:
        answer = response.json()
    except ValueError:
        return {}
    return answer if isinstance(answer, dict) else {}


def _metadata(redirect_uri: str) -> OAuthClientMetadata:
    return OAuthClientMetadata(
        client_name="haft",
        redirect_uris=[AnyUrl(redirect_uri)],
        grant_types=["authorization_code", "refresh_token"],
        response_types=["code"],
    )


class _RenewalLock:
    """Holds the lock of a login, so that two processes do not renew the same token: many issuers take each refresh
    token once."""

    def __init__(self, path: str) -> None:
        self._path = f"{path}.lock"
        self._lock: HeldLock | None = None

    async def __aenter__(self) -> None:
        with anyio.move_on_after(_LOCK_SECONDS):
            while (lock := try_lock(self._path)) is None:  # noqa: ASYNC110 (another process holds it)
                await anyio.sleep(0.05)
            self._lock = lock

    async def __aexit__(self, *_: object) -> None:
        if self._lock is not None:
            self._lock.release(unlink=True)


class _NoStorage:
    """Keeps nothing between logins: each login has an address of its own to come back to, so haft registers anew."""

    def __init__(self, client: OAuthClientInformationFull | None = None) -> None:
        self._client = client
        self.tokens: OAuthToken | None = None

    async def get_tokens(self) -> OAuthToken | None:
        return None

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self.tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self._client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self._client = client_info


class LoginFlow(OAuthClientProvider):
    """One login of a person at a server. `show` gets the address that the person must open."""

    def __init__(
        self,
        provider: Provider,
        url: str,
        logins: Logins,
        callback: LoginCallback,
        show: Callable[[str], Awaitable[None]],
    ) -> None:
        self._logins = logins
        self._callback = callback
        self._show = show
        self._oauth = provider.oauth
        self._grant = provider.oauth.get("grant") or "authorization_code"
        self._requested: list[tuple[str, str | None]] = []
        self._failure: Exception | None = None
        self.login: Login | None = None
        """The login, once it succeeded."""
        super().__init__(
            server_url=url,
            client_metadata=_metadata(callback.uri),
            storage=_NoStorage(_registered(provider, callback.uri)),
            redirect_handler=self._redirect,
            callback_handler=self._answer,
            client_metadata_url=provider.oauth.get("client_metadata_url"),
        )

    async def _auth_flow(self, request: httpx2.Request) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        if self._failure is not None:  # The package asks for each request anew; a person is asked once.
            raise self._failure
        flow = super()._auth_flow(request)
        with self._remembering():
            try:
                outgoing = await flow.__anext__()
                while True:
                    response = yield outgoing
                    outgoing = await flow.asend(response)
            except StopAsyncIteration:
                return
            finally:
                await flow.aclose()

    async def _perform_authorization(self) -> httpx2.Request:
        context = self.context
        self._check_issuer()
        scope = self._oauth.get("scope") or context.client_metadata.scope
        context.client_metadata.scope = scope = union_scopes(scope, self._logins.wanted_scope)
        wanted = (self._expected_issuer(), scope)  # A server may move to another issuer, or ask for further rights.
        if len(self._requested) >= _MOST_AUTHORIZATIONS or wanted in self._requested:
            raise OAuthFlowError("the server did not accept the token that it had asked for")
        self._requested.append(wanted)
        _choose_method(context)
        if self._grant != CLIENT_CREDENTIALS:
            return await super()._perform_authorization()
        data = {"grant_type": CLIENT_CREDENTIALS, **({"scope": scope} if scope else {})}
        if context.should_include_resource_param(context.protocol_version):
            data["resource"] = context.get_resource_url()
        data, headers = context.prepare_token_auth(data, {"Content-Type": "application/x-www-form-urlencoded"})
        return httpx2.Request("POST", self._get_token_endpoint(), data=data, headers=headers)

    def _select_authorization_server(self, advertised: list[str]) -> str:
        wanted = self._oauth.get("issuer")
        return next((each for each in advertised if wanted and issuers_match(each, wanted)), advertised[0])

    def _check_issuer(self) -> None:
        """Stop if the credentials of the configuration would go to another issuer than the one that they are for. The
        server names the issuer, so the first login without `issuer` decides."""
        known = self._oauth.get("issuer")
        if known is None and self._oauth.get("client_secret"):
            known = self._logins.last_issuer
        found = str(self.context.oauth_metadata.issuer) if self.context.oauth_metadata else self._expected_issuer()
        if known is not None and not issuers_match(known, found):
            raise ToolFailed(
                f"the server names `{found}` as the issuer of tokens, and the client in the configuration is for"
                f" `{known}`",
                hint="if the new issuer is right, write it as `issuer` under `oauth` of the provider",
            )

    async def _handle_token_response(self, response: httpx2.Response) -> None:
        await super()._handle_token_response(response)
        self.login = self._made_login()
        self._logins.keep(self.login)

    def _made_login(self) -> Login:
        context, tokens = self.context, self.context.current_tokens
        assert tokens is not None
        assert context.client_info is not None
        client = context.client_info
        return Login(
            issuer=str(context.oauth_metadata.issuer) if context.oauth_metadata else self._expected_issuer(),
            access_token=tokens.access_token,
            refresh_token=tokens.refresh_token,
            expires_at=time.time() + tokens.expires_in if tokens.expires_in is not None else None,
            scope=tokens.scope,
            resource=context.get_resource_url()
            if context.should_include_resource_param(context.protocol_version)
            else None,
            token_endpoint=self._get_token_endpoint(),
            grant=self._grant,
            client={
                "client_id": client.client_id,
                "client_secret": client.client_secret,
                "token_endpoint_auth_method": client.token_endpoint_auth_method,
            },
        )

    async def _redirect(self, address: str) -> None:
        parts = urlsplit(address)
        is_loopback = parts.hostname in ("127.0.0.1", "localhost", "::1")
        if parts.scheme != "https" and not (parts.scheme == "http" and is_loopback):
            raise ToolFailed(f"the login page at `{parts.hostname}` is not encrypted, so haft does not open it")
        if parts.username is not None:
            raise ToolFailed("the address of the login page contains a user name, so haft does not open it")
        self._callback.expect(parse_qs(parts.query)["state"][-1])
        await self._show(address)

    async def _answer(self) -> AuthorizationCodeResult:
        return await self._callback.result(_LOGIN_SECONDS)

    @contextmanager
    def _remembering(self) -> Iterator[None]:
        try:
            yield
        except (HaftError, OAuthFlowError) as error:
            self._failure = error
            raise


def _registered(provider: Provider, redirect_uri: str) -> OAuthClientInformationFull | None:
    """How haft was registered at the issuer beforehand; None if it registers itself."""
    settings = provider.oauth
    if not settings.get("client_id"):
        return None
    secret = settings.get("client_secret") or None
    return OAuthClientInformationFull(
        client_id=settings["client_id"],
        client_secret=secret,
        redirect_uris=[AnyUrl(redirect_uri)],
        token_endpoint_auth_method=_BASIC if secret else "none",
    )


def _choose_method(context: OAuthContext) -> None:
    """Use a way to send the client's secret that the issuer accepts."""
    client, metadata = context.client_info, context.oauth_metadata
    accepted = metadata.token_endpoint_auth_methods_supported if metadata is not None else None
    if client is not None and client.token_endpoint_auth_method == _BASIC and accepted and _BASIC not in accepted:
        client.token_endpoint_auth_method = _POST if _POST in accepted else _BASIC
