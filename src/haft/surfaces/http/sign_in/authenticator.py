"""Who makes a request: from the token in its header `Authorization`, or from the cookie of a session.

Nothing is kept in memory about tokens and sessions: their files are read for each request, so one that is revoked is
refused from then on. What a session may do is looked up as well. A session that began with a token may do what the
token may, and ends with the token. A session that began at an identity provider has the roles that the configuration
now gives its groups. The link of the server signs in the person for whom the server runs, as operator.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from haft.service import Identity, LocalClients, Role, Sessions, StateHome, Tokens, user_name
from haft.surfaces.http.sign_in.cookies import SESSION, cookie_name, cookies

if TYPE_CHECKING:
    from haft.service import Session
    from haft.surfaces.http.asgi import Scope
    from haft.surfaces.http.sign_in.oidc import OidcProvider

_READING: Final = ("GET", "HEAD")


class SignIn:
    """The authenticator of a server."""

    def __init__(self, home: StateHome, *, has_tls: bool = False, oidc: OidcProvider | None = None) -> None:
        self.tokens = Tokens(home)
        self.sessions = Sessions(home)
        self.has_tls = has_tls
        self.oidc = oidc
        self._local = LocalClients(home)

    def close(self) -> None:
        """Forget the clients on this machine."""
        self._local.close()

    async def identity_of(self, scope: Scope) -> Identity | None:
        """Who makes a request; None if nobody can be named. A request of a program that belongs to an agent of this
        machine has the rights of an agent, whosever token it brings."""
        given = [value for name, value in scope["headers"] if name == b"authorization"]
        found = self._of_header(given) if given else self._of_cookie(scope)
        client = scope.get("client")
        if found is None or client is None:
            return found
        if found.kind == "agent":
            await self._local.meet(found.name, *client)
        elif scope["method"] not in _READING:
            agent = await self._local.agent_behind(found.name, *client)
            return found if agent is None else found.when_used_by(agent)
        return found

    async def is_valid(self, identity: Identity) -> bool:
        """Whether the token or the session of an identity is still good."""
        if identity.session is not None:
            session = self.sessions.with_id(identity.session)
            return session is not None and self.identity_in(session) is not None
        return self.tokens.with_id(identity.name, identity.key.removeprefix("token:")) is not None

    def session_of(self, scope: Scope) -> Session | None:
        """The session whose cookie a request brings."""
        found = map(self.sessions.find, cookies(scope, cookie_name(SESSION, scope, has_tls=self.has_tls)))
        return next((each for each in found if each is not None), None)

    def _of_header(self, given: list[bytes]) -> Identity | None:
        if len(given) != 1:
            return None
        scheme, _, token = given[0].decode("latin-1").partition(" ")
        found = self.tokens.find(token.strip()) if scheme.lower() == "bearer" else None
        return None if found is None else found.identity()

    def _of_cookie(self, scope: Scope) -> Identity | None:
        session = self.session_of(scope)
        return None if session is None else self.identity_in(session)

    def identity_in(self, session: Session) -> Identity | None:
        """Who acts in a session; None if they may do nothing any more."""
        match session.how:
            case "link":
                if session.name != user_name():
                    return None
                return _person(session, f"user:{session.name}", frozenset({"operator"}))
            case "token":
                token = self.tokens.with_id(session.name, session.subject)
                if token is None:
                    return None
                of = token.identity()
                until = session.expires_at if of.expires_at is None else min(of.expires_at, session.expires_at)
                return Identity(of.name, of.kind, of.roles, of.key, of.workspaces, of.tools, until, session.id)
            case "oidc":
                roles = frozenset[Role]() if self.oidc is None else self.oidc.roles_of(session)
                if not roles:
                    return None
                issuer, subject = json.loads(session.subject)
                return _person(session, f"oidc:{issuer}:{subject}", roles)


def _person(session: Session, key: str, roles: frozenset[Role]) -> Identity:
    return Identity(session.name, "person", roles, key, expires_at=session.expires_at, session=session.id)
