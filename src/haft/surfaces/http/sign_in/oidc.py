"""Signing in with an identity provider: OpenID Connect, code flow with PKCE.

A browser that wants to sign in gets a state cookie, and is sent to the provider. The provider sends it back to the
callback with a code, and haft exchanges the code for an ID token. This holds for each sign-in:

- The callback counts only in the browser that began: the state in the address must be that of the cookie, which is
  sealed, good for ten minutes, and good once. The cookie is Lax, because the provider's page leads to the callback.
- The nonce in the ID token and the verifier of the code are made from the state with a key of this state home. So
  neither leaves the server, and a code of another sign-in, or of another browser, is of no use here.
- The ID token is signed by a key of the provider, with an algorithm that has a public key; and its issuer, audience,
  nonce and times are right.

What haft does not check: whether the provider is honest, and whether somebody has left a group since they signed in.
Such a session ends after twelve hours.
"""

from __future__ import annotations

import base64
import functools
import hashlib
import hmac
import json
import secrets
import ssl
import time
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final, cast
from urllib.parse import urlsplit

import httpx2
from authlib.common.errors import AuthlibBaseError
from authlib.integrations.httpx_client import AsyncOAuth2Client
from authlib.oauth2.rfc7636 import create_s256_code_challenge
from authlib.oidc.core import CodeIDToken
from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwk import KeySet
from joserfc.jws import JWSRegistry

from haft.service import Role, SealedStates, StateHome
from haft.surfaces.http.api.problems import HttpError
from haft.values import dataclass, field

if TYPE_CHECKING:
    from joserfc.jwk import KeySetSerialization

    from haft.service import Session

SECONDS: Final = 600
"""How long a person may take at the provider."""
_MOST_USED: Final = 10_000
_ALGORITHMS: Final = (
    *("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA", "Ed25519"),
)
"""Signatures with a public key. `none` is not among them, and neither are those whose key is the client's secret."""
_LEEWAY_SECONDS: Final = 60
_TIMEOUT_SECONDS: Final = 10.0
_DOCUMENT_SECONDS: Final = 3600.0
"""How long haft believes what a provider said about itself. Its keys are read for each sign-in."""
_LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "::1"})


class SignInRefused(HttpError):
    """Somebody could not sign in."""

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__("sign-in-refused", message, hint=hint)


@dataclass(frozen=True, slots=True)
class OidcSettings:
    """What `[server.oidc]` says."""

    issuer: str
    client_id: str
    client_secret: str | None = field(default=None, repr=False)
    """None for a public client, which has only PKCE."""
    groups: Mapping[str, frozenset[Role]] = field(default_factory=dict)
    """The roles of each group."""
    groups_claim: str = "groups"
    scopes: tuple[str, ...] = ("openid", "profile", "email")


@dataclass(frozen=True, slots=True)
class SignedIn:
    """Somebody who came back from the provider."""

    subject: str
    groups: tuple[str, ...]
    names: tuple[str, ...]
    """What the provider calls them, the best name first."""
    email: str | None
    """Their mail address, if the provider has verified it."""
    to: str
    """The page they wanted to see."""


class OidcProvider:
    """An identity provider, as one server uses it."""

    def __init__(self, settings: OidcSettings, home: StateHome) -> None:
        self.settings = settings
        self._states = SealedStates(home, seconds=SECONDS)
        self._used: OrderedDict[str, float] = OrderedDict()
        self._document: tuple[float, Mapping[str, Any]] | None = None

    def roles_of(self, session: Session) -> frozenset[Role]:
        """The roles of somebody who signed in here; none if this was another provider."""
        issuer, _subject = json.loads(session.subject)
        return self._roles(session.groups) if issuer == self.settings.issuer else frozenset()

    def _roles(self, groups: Iterable[str]) -> frozenset[Role]:
        return frozenset[Role]().union(*(self.settings.groups.get(group, ()) for group in groups))

    async def begin(self, callback: str, to: str) -> tuple[str, str]:
        """The address at the provider to which a browser goes, and the value of its state cookie."""
        document = await self._described()
        state = secrets.token_urlsafe(32)
        async with self._client(callback) as client:
            address, _ = client.create_authorization_url(
                document["authorization_endpoint"],
                state=state,
                nonce=self._derived("nonce", state),
                code_challenge=create_s256_code_challenge(self._derived("verifier", state)),
                code_challenge_method="S256",
            )
        return address, self._sealed({"state": state, "to": to, "until": time.time() + SECONDS})

    async def finish(self, callback: str, query: Mapping[str, str], cookie: str | None) -> SignedIn:
        """Who came back. Raises `SignInRefused` if anything about it is wrong."""
        kept = self._unsealed(cookie)
        state = query.get("state", "")
        if kept is None or not hmac.compare_digest(kept["state"].encode(), state.encode()):
            raise SignInRefused("this browser did not begin to sign in, or took too long", hint="sign in again")
        if not self._use(state):
            raise SignInRefused("this answer of the identity provider was used before", hint="sign in again")
        document = await self._described()
        issuer = query.get("iss")
        if issuer != self.settings.issuer and (
            issuer or document.get("authorization_response_iss_parameter_supported")
        ):
            raise SignInRefused("another identity provider answered than the one that was asked")
        if "error" in query or not query.get("code"):
            raise SignInRefused(f"the identity provider refused: {query.get('error', 'it sent no code')[:100]}")
        answer = await self._exchanged(document, callback, query["code"], self._derived("verifier", state))
        claims = await self._claims(document, answer, self._derived("nonce", state))
        groups = self._groups_in(claims)
        if not self._roles(groups):
            raise SignInRefused(
                f"{_names(claims)[0]} has no role here",
                hint="an operator gives groups of the identity provider their roles, in `[server.oidc]` `groups`",
            )
        email = claims.get("email") if claims.get("email_verified") is True else None
        mail = email if isinstance(email, str) else None
        return SignedIn(str(claims["sub"]), groups, _names(claims), mail, kept["to"])

    # What the provider says.

    def _client(self, callback: str) -> AsyncOAuth2Client:
        settings = self.settings
        methods = () if self._document is None else self._document[1].get("token_endpoint_auth_methods_supported", ())
        is_posted = "client_secret_post" in methods and "client_secret_basic" not in methods
        method = "client_secret_post" if is_posted else "client_secret_basic"
        return AsyncOAuth2Client(
            settings.client_id,
            settings.client_secret,
            token_endpoint_auth_method="none" if settings.client_secret is None else method,
            scope=" ".join(settings.scopes),
            redirect_uri=callback,
            timeout=_TIMEOUT_SECONDS,
            follow_redirects=False,
            verify=_certificates(),
        )

    async def _described(self) -> Mapping[str, Any]:
        """What the provider says about itself."""
        if self._document is not None and time.monotonic() - self._document[0] < _DOCUMENT_SECONDS:
            return self._document[1]
        address = f"{self.settings.issuer.rstrip('/')}/.well-known/openid-configuration"
        document = await self._fetched(address)
        if document.get("issuer") != self.settings.issuer:
            raise SignInRefused(
                f"the identity provider at {self.settings.issuer} calls itself {document.get('issuer')!r}",
                hint="`issuer` in `[server.oidc]` must be written as the provider writes it",
            )
        for name in ("authorization_endpoint", "token_endpoint", "jwks_uri", "userinfo_endpoint"):
            check_address(name, document.get(name), is_needed=name != "userinfo_endpoint")
        self._document = (time.monotonic(), document)
        return document

    async def _fetched(self, address: str, bearer: str | None = None) -> dict[str, Any]:
        headers = {} if bearer is None else {"authorization": f"Bearer {bearer}"}
        try:
            async with httpx2.AsyncClient(
                timeout=_TIMEOUT_SECONDS, follow_redirects=False, verify=_certificates()
            ) as client:
                answer = await client.get(address, headers=headers)
                answer.raise_for_status()
                found = answer.json()
        except (httpx2.HTTPError, ValueError) as error:
            raise SignInRefused(f"the identity provider does not answer at {address}: {error}") from error
        if not isinstance(found, dict):
            raise SignInRefused(f"the identity provider does not answer with a JSON object at {address}")
        return found

    async def _exchanged(
        self, document: Mapping[str, Any], callback: str, code: str, verifier: str
    ) -> Mapping[str, Any]:
        """What the provider gives for a code."""
        try:
            async with self._client(callback) as client:
                answer: Mapping[str, Any] = await client.fetch_token(
                    document["token_endpoint"], grant_type="authorization_code", code=code, code_verifier=verifier
                )
        except (AuthlibBaseError, httpx2.HTTPError, ValueError) as error:
            raise SignInRefused(f"the identity provider did not take its own code: {error}"[:300]) from error
        if not isinstance(answer.get("id_token"), str):
            raise SignInRefused("the identity provider sent no ID token")
        return answer

    async def _claims(self, document: Mapping[str, Any], answer: Mapping[str, Any], nonce: str) -> dict[str, Any]:
        """What a valid ID token says; the groups and names may come from the provider's further answer."""
        settings = self.settings
        try:
            token = await self._decoded(document, answer["id_token"])
            options = {
                "iss": {"essential": True, "value": settings.issuer},
                "aud": {"essential": True, "value": settings.client_id},
                "nonce": {"essential": True, "value": nonce},
            }
            given = {"client_id": settings.client_id, "nonce": nonce, "access_token": answer.get("access_token")}
            claims = CodeIDToken(token.claims, token.header, options, given)
            claims.validate(leeway=_LEEWAY_SECONDS)
        except (JoseError, ValueError, TypeError, KeyError, AttributeError) as error:
            raise SignInRefused(f"the ID token is not valid: {error}"[:300]) from error
        if not isinstance(claims["sub"], str) or not claims["sub"]:
            raise SignInRefused("the ID token names nobody")
        found = dict(claims)
        if settings.groups_claim not in found and document.get("userinfo_endpoint"):
            more = await self._fetched(document["userinfo_endpoint"], str(answer.get("access_token")))
            if more.get("sub") != found["sub"]:
                raise SignInRefused("the identity provider speaks of two people in one sign-in")
            found = {**more, **found}
        return found

    async def _decoded(self, document: Mapping[str, Any], token: str) -> Any:
        said = document.get("id_token_signing_alg_values_supported") or ["RS256"]
        allowed = [name for name in _ALGORITHMS if name in said]
        keys = KeySet.import_key_set(cast("KeySetSerialization", await self._fetched(document["jwks_uri"])))
        return jwt.decode(token, keys, registry=JWSRegistry(algorithms=allowed, strict_check_header=False))

    def _groups_in(self, claims: Mapping[str, Any]) -> tuple[str, ...]:
        """The groups that have a role here. Others are forgotten."""
        said = claims.get(self.settings.groups_claim, ())
        listed = [said] if isinstance(said, str) else said if isinstance(said, list) else []
        return tuple(each for each in listed if isinstance(each, str) and each in self.settings.groups)

    # The state.

    def _derived(self, purpose: str, text: str) -> str:
        """A text that only this state home can make: base64url of 32 bytes, as PKCE wants it."""
        return _encoded(hmac.digest(self._states.key(), f"haft oidc {purpose}\0{text}".encode(), "sha256"))

    def _sealed(self, facts: Mapping[str, Any]) -> str:
        told = _encoded(json.dumps(facts).encode())
        return f"{told}.{self._derived('cookie', told)}"

    def _unsealed(self, cookie: str | None) -> dict[str, Any] | None:
        told, _, seal = (cookie or "").partition(".")
        if not told.isascii() or not hmac.compare_digest(seal.encode(), self._derived("cookie", told).encode()):
            return None
        facts: dict[str, Any] = json.loads(base64.urlsafe_b64decode(f"{told}=="))
        return facts if time.time() < facts["until"] else None

    def _use(self, state: str) -> bool:
        """Mark a state as used. False if it was. A server that has been restarted has forgotten the marks; then the
        provider refuses the code, which is good once."""
        now = time.monotonic()
        while self._used and (next(iter(self._used.values())) < now or len(self._used) >= _MOST_USED):
            self._used.popitem(last=False)
        digest = hashlib.sha256(state.encode()).hexdigest()
        if digest in self._used:
            return False
        self._used[digest] = now + SECONDS
        return True


@functools.cache
def _certificates() -> ssl.SSLContext:
    """The certificates of this machine. Reading them takes long, so it is done once."""
    return httpx2.create_ssl_context()


def _encoded(told: bytes) -> str:
    return base64.urlsafe_b64encode(told).rstrip(b"=").decode()


def check_address(name: str, address: Any, *, is_needed: bool = True) -> None:
    """Raise `SignInRefused` if an address of a provider is not one that haft goes to."""
    if address is None and not is_needed:
        return
    parts = urlsplit(address if isinstance(address, str) else "")
    if not parts.hostname or not (parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in _LOOPBACK)):
        raise SignInRefused(
            f"the identity provider's {name} is {address!r}, and haft goes only to https:// addresses",
            hint="http:// is good only for a provider on this machine",
        )


def _names(claims: Mapping[str, Any]) -> tuple[str, ...]:
    """What the provider calls somebody, the best name first."""
    wished = (claims.get("preferred_username"), claims.get("name"), claims.get("sub"))
    return tuple(each for each in wished if isinstance(each, str) and each)
