"""The tokens of those who reach haft over HTTP: one token for each agent or person, which a person makes and revokes.

HAFT_HOME/tokens/<digest of the name>.json    name, id, digest, createdAt, by, kind, roles, …    0600

A token is the name of its file and 32 random bytes. haft opens this file, and compares the digest of the token with
the stored digest. The token itself is stored nowhere. Nothing is kept in memory either: a server reads the file for
each request, so a revoked token stops working at once, in every process.

A file without kind and roles was written by an earlier version, for an MCP client: an agent with the role caller. When
the token was last used is the time of its file, to the minute.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import json
import os
import secrets
import time
from collections.abc import Collection
from typing import Any, Final

from haft.contracts import BadUsage, Principal, StorageFailed, iso_time, near_miss
from haft.lazy import regex
from haft.service.people.identity import Identity
from haft.service.people.roles import KINDS, ROLES, Kind, Role, refused_to_agents
from haft.service.principals import user_name
from haft.service.private_files import sync_directory, write_new
from haft.values import dataclass

DIRECTORY: Final = "tokens"
_NAME = regex(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_TOKEN = regex(r"haft_([0-9a-f]{16})_[A-Za-z0-9_-]{43}")
_MOST_BYTES: Final = 10_000
_CALLER: Final[tuple[Role, ...]] = ("caller",)
_NO_DIGEST: Final = "0" * 64
_TOOLS: Final = regex(r"[A-Za-z0-9_*-]{1,64}")
_SECONDS_BETWEEN_NOTES: Final = 60.0
"""How often haft notes at most that a token was used."""
_SECONDS_OF_MAKING: Final = 2.0
"""A file that is not younger than this was not touched since the token was made."""


@dataclass(frozen=True, slots=True)
class ClientToken:
    """What haft stores about a token."""

    name: str
    """Whose token it is. Runs, approvals and the audit log name them so."""
    id: str
    """Random, and different for each token, even if a later token has the same name."""
    created_at: str
    by: str
    """The person who made the token."""
    kind: Kind = "agent"
    roles: frozenset[Role] = frozenset(_CALLER)
    workspaces: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()
    expires_at: float | None = None

    def identity(self) -> Identity:
        """Who sends this token."""
        key = f"token:{self.id}"
        return Identity(self.name, self.kind, self.roles, key, self.workspaces, self.tools, self.expires_at)

    def to_json(self) -> dict[str, Any]:
        shown = self.identity().to_json()
        return {"name": self.name, "id": self.id, "createdAt": self.created_at, "by": self.by, **shown}


class Tokens:
    """The tokens in one state home."""

    def __init__(self, home: str | os.PathLike[str]) -> None:
        self._directory = os.path.join(os.fspath(home), DIRECTORY)

    def add(
        self,
        name: str,
        principal: Principal,
        *,
        kind: Kind = "agent",
        roles: Collection[Role] = _CALLER,
        workspaces: Collection[str] = (),
        tools: Collection[str] = (),
        seconds: float | None = None,
    ) -> tuple[ClientToken, str]:
        """Make a token for an agent or a person, good for so many seconds. Returns the stored facts and the token,
        which cannot be shown again. Raises `BadUsage` if the name has a token already, or if an agent would get a role
        that is not for agents, and `NeedsPerson` if the principal is an agent."""
        principal.must_be_person("make a token")
        _check_name(name)
        _check_rights(kind, roles, tools)
        key = _key(name)
        token = f"haft_{key}_{secrets.token_urlsafe(32)}"
        now = time.time()
        expires_at = None if seconds is None else now + seconds
        made = ClientToken(
            name,
            secrets.token_hex(8),
            iso_time(now),
            principal.who,
            kind,
            frozenset(roles),
            tuple(workspaces),
            tuple(tools),
            expires_at,
        )
        record = {**made.to_json(), "expires": expires_at, "digest": _digest(token)}
        try:
            write_new(self._directory, f"{key}.json", json.dumps(record).encode())
        except FileExistsError:
            raise BadUsage(
                f"`{name}` has a token already",
                hint=f"to replace the token, revoke it first: `haft tokens revoke {name}`",
            ) from None
        except OSError as error:
            raise StorageFailed("haft could not store the token", error) from error
        return made, token

    def all(self) -> list[ClientToken]:
        """All tokens, sorted by name."""
        try:
            files = sorted(name for name in os.listdir(self._directory) if name.endswith(".json"))
        except FileNotFoundError:
            return []
        except OSError as error:
            raise StorageFailed("haft could not read its tokens", error) from error
        records = (self._read(file.removesuffix(".json")) for file in files)
        return sorted((_facts(record) for record in records if record is not None), key=lambda each: each.name)

    def last_used(self, token: ClientToken) -> float | None:
        """When a token was last used, to the minute; None if it was not."""
        try:
            at = os.stat(self._path(_key(token.name))).st_mtime
        except OSError:
            return None
        return None if iso_time(at - _SECONDS_OF_MAKING) <= token.created_at else at

    def revoke(self, name: str, principal: Principal) -> ClientToken:
        """Remove a token. Raises `BadUsage` if the name has no token."""
        principal.must_be_person("revoke a token")
        record = self._read(_key(name))
        if record is None or record["name"] != name:
            names = [each.name for each in self.all()]
            near = near_miss(name, names)
            known = f"these names have a token: {', '.join(names)}" if names else "nobody has a token"
            hint = f"did you mean `{near}`?" if near else known
            raise BadUsage(f"`{name}` has no token", hint=hint)
        try:
            os.unlink(self._path(_key(name)))
            sync_directory(self._directory)
        except FileNotFoundError:  # Another process has just revoked it.
            pass
        except OSError as error:
            raise StorageFailed(f"haft could not revoke the token of `{name}`", error) from error
        return _facts(record)

    def find(self, token: str) -> ClientToken | None:
        """The facts of a valid token; None if the token is wrong, expired or revoked."""
        parsed = _TOKEN.fullmatch(token)
        record = None if parsed is None else self._read(parsed[1])
        stored = _NO_DIGEST if record is None else record["digest"]
        # Compared even if there is no such name, so that the time tells nothing about the stored digest.
        is_right = hmac.compare_digest(_digest(token), stored)
        found = _facts(record) if is_right and record is not None else None
        if found is None or found.identity().is_expired():
            return None
        self._note_use(found)
        return found

    def is_valid(self, token: ClientToken) -> bool:
        """Whether this token is still good: False once it is revoked, even if the name got another token since, and
        once it is expired."""
        return self.with_id(token.name, token.id) is not None

    def with_id(self, name: str, token_id: str) -> ClientToken | None:
        """The facts of the token with this name and id, if it is good now."""
        record = self._read(_key(name))
        if record is None or record["name"] != name or record["id"] != token_id:
            return None
        found = _facts(record)
        return None if found.identity().is_expired() else found

    def _note_use(self, token: ClientToken) -> None:
        now, used = time.time(), self.last_used(token)
        if used is None or now - used > _SECONDS_BETWEEN_NOTES:
            with contextlib.suppress(OSError):  # A home that cannot be written still lets its clients in.
                os.utime(self._path(_key(token.name)), (now, now))

    def _path(self, key: str) -> str:
        return os.path.join(self._directory, f"{key}.json")

    def _read(self, key: str) -> dict[str, Any] | None:
        """The stored record; None if there is none, or if it is damaged: then its token does not work."""
        with contextlib.suppress(OSError, ValueError, RecursionError):
            with open(self._path(key), "rb") as file:
                record = json.loads(file.read(_MOST_BYTES))
            if isinstance(record, dict) and _is_whole(record):
                return record
        return None


def _is_whole(record: dict[str, Any]) -> bool:
    """Whether a record says all that it must. What an earlier version left out, `_facts` adds; what is damaged must
    not become a right."""
    names = ("name", "id", "createdAt", "by", "digest")
    lists = [record.get(name, []) for name in ("roles", "workspaces", "tools")]
    return (
        all(isinstance(record.get(name), str) for name in names)
        and all(isinstance(each, list) and all(isinstance(item, str) for item in each) for each in lists)
        and record.get("kind", "agent") in KINDS
        and all(role in ROLES for role in lists[0])
        and isinstance(record.get("expires", 0.0), float | int | None)
    )


def _facts(record: dict[str, Any]) -> ClientToken:
    return ClientToken(
        record["name"],
        record["id"],
        record["createdAt"],
        record["by"],
        record.get("kind", "agent"),
        frozenset(record.get("roles", _CALLER)),
        tuple(record.get("workspaces", ())),
        tuple(record.get("tools", ())),
        record.get("expires"),
    )


def _check_rights(kind: Kind, roles: Collection[Role], tools: Collection[str]) -> None:
    if kind not in KINDS or not roles or any(role not in ROLES for role in roles):
        raise BadUsage("a token is of an agent or a person, and has a role", hint=f"the roles are {', '.join(ROLES)}")
    for role in roles:
        if kind == "agent" and refused_to_agents(role):
            raise BadUsage(
                f"the token of an agent cannot have the role {role}: the agent could then approve its own calls",
                hint="give an agent the role caller or reader; `--person` makes the token of a person",
            )
    for pattern in tools:
        if _TOOLS.fullmatch(pattern) is None:
            raise BadUsage(
                f"`{pattern}` can match no tool",
                hint="a name has only letters, digits, `_` and `-`; `*` matches any of them",
            )


def _check_name(name: str) -> None:
    if _NAME.fullmatch(name) is None:
        raise BadUsage(
            f"`{name}` is not a name for a token",
            hint="use at most 64 letters, digits, `.`, `_` and `-`, and begin with a letter or digit",
        )
    if name == user_name():  # Runs of this client would look like runs of the person.
        raise BadUsage(f"`{name}` is your own name, and a token needs another one", hint=f"for example {name}-agent")


def _key(name: str) -> str:
    return hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def _digest(token: str) -> str:
    """A plain digest is enough: nobody can guess 32 random bytes, so a slow one would protect nothing."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()
