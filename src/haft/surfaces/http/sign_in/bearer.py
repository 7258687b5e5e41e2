"""Identities of requests that bring a token in the header `Authorization: Bearer TOKEN`."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from haft.service import Identity, Tokens
    from haft.surfaces.http.asgi import Scope


class BearerTokens:
    """An `Authenticator` that knows tokens only."""

    def __init__(self, tokens: Tokens) -> None:
        self._tokens = tokens

    async def identity_of(self, scope: Scope) -> Identity | None:
        given = [value for name, value in scope["headers"] if name == b"authorization"]
        if len(given) != 1:
            return None
        scheme, _, token = given[0].decode("latin-1").partition(" ")
        found = self._tokens.find(token.strip()) if scheme.lower() == "bearer" else None
        return None if found is None else found.identity()

    async def is_valid(self, identity: Identity) -> bool:
        return self._tokens.with_id(identity.name, identity.key.removeprefix("token:")) is not None
