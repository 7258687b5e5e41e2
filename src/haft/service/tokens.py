"""The tokens of MCP clients that reach haft over HTTP: one token for each client, which a person makes and revokes.

HAFT_HOME/tokens/<digest of the client's name>.json    name, id, digest, createdAt, by    0600

A token is the name of its file and 32 random bytes. haft opens this file, and compares the digest of the token with
the stored digest. The token itself is stored nowhere. Nothing is kept in memory either: a server reads the file for
each request, so a revoked token stops working at once, in every process.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import json
import os
import secrets
import time
from typing import Any, Final

from haft.contracts import BadUsage, Principal, StorageFailed, iso_time, near_miss
from haft.lazy import regex
from haft.service.principals import user_name
from haft.service.private_files import sync_directory, write_new
from haft.values import dataclass

DIRECTORY: Final = "tokens"
_NAME = regex(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_TOKEN = regex(r"haft_([0-9a-f]{16})_[A-Za-z0-9_-]{43}")
_MOST_BYTES: Final = 10_000
_NO_DIGEST: Final = "0" * 64


@dataclass(frozen=True, slots=True)
class ClientToken:
    """What haft stores about a token."""

    name: str
    """The name of the client. Runs, approvals and the audit log name the client so."""
    id: str
    """Random, and different for each token, even if a later token has the same name."""
    created_at: str
    by: str
    """The person who made the token."""

    def to_json(self) -> dict[str, Any]:
        return {"name": self.name, "id": self.id, "createdAt": self.created_at, "by": self.by}


class Tokens:
    """The tokens in one state home."""

    def __init__(self, home: str | os.PathLike[str]) -> None:
        self._directory = os.path.join(os.fspath(home), DIRECTORY)

    def add(self, name: str, principal: Principal) -> tuple[ClientToken, str]:
        """Make a token for a client. Returns the stored facts and the token, which cannot be shown again. Raises
        `BadUsage` if the client has a token already, and `NeedsPerson` if the principal is an agent."""
        principal.must_be_person("make a token")
        _check_name(name)
        key = _key(name)
        token = f"haft_{key}_{secrets.token_urlsafe(32)}"
        made = ClientToken(name, secrets.token_hex(8), iso_time(time.time()), principal.who)
        record = {**made.to_json(), "digest": _digest(token)}
        try:
            write_new(self._directory, f"{key}.json", json.dumps(record).encode())
        except FileExistsError:
            raise BadUsage(
                f"the client `{name}` has a token already",
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

    def revoke(self, name: str, principal: Principal) -> ClientToken:
        """Remove the token of a client. Raises `BadUsage` if the client has no token."""
        principal.must_be_person("revoke a token")
        record = self._read(_key(name))
        if record is None or record["name"] != name:
            names = [each.name for each in self.all()]
            near = near_miss(name, names)
            known = f"the clients with a token are {', '.join(names)}" if names else "no client has a token"
            hint = f"did you mean `{near}`?" if near else known
            raise BadUsage(f"the client `{name}` has no token", hint=hint)
        try:
            os.unlink(os.path.join(self._directory, f"{_key(name)}.json"))
            sync_directory(self._directory)
        except FileNotFoundError:  # Another process has just revoked it.
            pass
        except OSError as error:
            raise StorageFailed(f"haft could not revoke the token of `{name}`", error) from error
        return _facts(record)

    def find(self, token: str) -> ClientToken | None:
        """The facts of a valid token; None if the token is wrong or revoked."""
        parsed = _TOKEN.fullmatch(token)
        record = None if parsed is None else self._read(parsed[1])
        stored = _NO_DIGEST if record is None else record["digest"]
        # Compared even if there is no such client, so that the time tells nothing about the stored digest.
        is_right = hmac.compare_digest(_digest(token), stored)
        return _facts(record) if is_right and record is not None else None

    def is_valid(self, token: ClientToken) -> bool:
        """Whether this token still exists: False once it is revoked, even if the client got another token since."""
        record = self._read(_key(token.name))
        return record is not None and record["id"] == token.id

    def _read(self, key: str) -> dict[str, str] | None:
        """The stored record; None if there is none, or if it is damaged: then its token does not work."""
        with contextlib.suppress(OSError, ValueError, RecursionError):
            with open(os.path.join(self._directory, f"{key}.json"), "rb") as file:
                record = json.loads(file.read(_MOST_BYTES))
            names = ("name", "id", "createdAt", "by", "digest")
            if isinstance(record, dict) and all(isinstance(record.get(name), str) for name in names):
                return record
        return None


def _facts(record: dict[str, str]) -> ClientToken:
    return ClientToken(record["name"], record["id"], record["createdAt"], record["by"])


def _check_name(name: str) -> None:
    if _NAME.fullmatch(name) is None:
        raise BadUsage(
            f"`{name}` is not a name for a client",
            hint="use at most 64 letters, digits, `.`, `_` and `-`, and begin with a letter or digit",
        )
    if name == user_name():  # Runs of this client would look like runs of the person.
        raise BadUsage(f"`{name}` is your own name, and a client needs another one", hint=f"for example {name}-agent")


def _key(name: str) -> str:
    return hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def _digest(token: str) -> str:
    """A plain digest is enough: nobody can guess 32 random bytes, so a slow one would protect nothing."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()
