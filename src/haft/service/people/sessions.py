"""The sessions of people in browsers, and the links with which they begin.

HAFT_HOME/sessions/<id>.json                who signed in, how, until when, and the digest of the secret    0600
HAFT_HOME/sign-in-links/<digest>.json       who made the link, and until when it is good                    0600

A browser has a cookie with the id of its session and a secret of 32 random bytes. As with tokens, haft stores only a
digest, and keeps nothing in memory: a session is good after a restart of the server, and ends at once when it is
revoked. The file of a link is removed when the link is used: so it is good once, in whichever process it is used.

A session has no roles of its own. It says how somebody signed in, and their roles are looked up for each request
(`surfaces/http/sign_in`): if a token is revoked, the sessions that began with it end.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import json
import os
import secrets
import time
from collections.abc import Iterator
from typing import Any, Final, Literal, get_args

from haft.contracts import BadUsage, Principal, StorageFailed, iso_time
from haft.lazy import regex
from haft.service.principals import user_name
from haft.service.private_files import sync_directory, write_new
from haft.values import dataclass, field

SESSIONS: Final = "sessions"
LINKS: Final = "sign-in-links"
LINK_SECONDS: Final = 600.0
"""How long a link is good."""
SESSION_SECONDS: Final = 7 * 86_400.0
OIDC_SECONDS: Final = 12 * 3600.0
"""How long a session is good. What an identity provider said about somebody is good for less."""
MOST_SESSIONS: Final = 1000
"""How many sessions are kept. The oldest end first."""

How = Literal["link", "token", "oidc"]
_HOW: Final[tuple[str, ...]] = get_args(How)
_SECRET: Final = regex(r"([0-9a-f]{16})_[A-Za-z0-9_-]{43}")
_ID: Final = regex(r"[0-9a-f]{16}")
_LINK: Final = regex(r"haftlink_[A-Za-z0-9_-]{43}")
_MOST_BYTES: Final = 50_000


@dataclass(frozen=True, slots=True)
class Session:
    """What haft stores about a session."""

    id: str
    name: str
    """Who signed in."""
    how: How
    """With the link of the server, with a token, or with an identity provider."""
    created_at: float
    expires_at: float
    subject: str = ""
    """The id of the token, or the issuer and the subject at the identity provider, as JSON."""
    groups: tuple[str, ...] = field(default=(), repr=False)
    """The groups at the identity provider."""

    def to_json(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "name": self.name,
            "how": self.how,
            "createdAt": iso_time(self.created_at),
            "expiresAt": iso_time(self.expires_at),
        }


class Sessions:
    """The sessions of one state home."""

    def __init__(self, home: str | os.PathLike[str]) -> None:
        self._directory = os.path.join(os.fspath(home), SESSIONS)

    def begin(
        self, name: str, how: How, *, subject: str = "", groups: tuple[str, ...] = (), until: float | None = None
    ) -> tuple[Session, str]:
        """Begin a session that ends at `until` at the latest. Returns what is stored, and the secret for the cookie."""
        self._make_room()
        now = time.time()
        end = now + (OIDC_SECONDS if how == "oidc" else SESSION_SECONDS)
        made = Session(secrets.token_hex(8), name, how, now, end if until is None else min(end, until), subject, groups)
        secret = f"{made.id}_{secrets.token_urlsafe(32)}"
        record = {
            "name": name,
            "how": how,
            "created": made.created_at,
            "expires": made.expires_at,
            "subject": subject,
            "groups": list(groups),
            "digest": _digest(secret),
        }
        try:
            write_new(self._directory, f"{made.id}.json", json.dumps(record).encode())
        except OSError as error:
            raise StorageFailed("haft could not store the session", error) from error
        return made, secret

    def find(self, secret: str) -> Session | None:
        """The session of a cookie; None if there is none, or if it has ended."""
        parsed = _SECRET.fullmatch(secret)
        record = None if parsed is None else self._read(parsed[1])
        is_right = hmac.compare_digest(_digest(secret), "0" * 64 if record is None else str(record.get("digest")))
        return _living(parsed[1], record) if parsed is not None and record is not None and is_right else None

    def with_id(self, name: str) -> Session | None:
        """The session with this id; None if there is none, or if it has ended."""
        record = self._read(name) if _ID.fullmatch(name) else None
        return None if record is None else _living(name, record)

    def all(self) -> list[Session]:
        """The sessions that are good now, the newest first."""
        found = (self.with_id(name) for name in self._names())
        return sorted((each for each in found if each is not None), key=lambda each: -each.created_at)

    def end(self, name: str) -> Session | None:
        """End the session with this id. Returns it; None if there is none."""
        session = self.with_id(name)
        if session is not None:
            self._remove(name)
        return session

    def _make_room(self) -> None:
        """Remove what has ended, and the oldest sessions if there are too many."""
        living = {each.id for each in self.all()[: MOST_SESSIONS - 1]}
        for name in self._names():
            if name not in living:
                self._remove(name)

    def _names(self) -> Iterator[str]:
        with contextlib.suppress(FileNotFoundError):
            for entry in os.listdir(self._directory):
                name, dot, ending = entry.partition(".")
                if dot and ending == "json" and _ID.fullmatch(name):
                    yield name

    def _remove(self, name: str) -> None:
        try:
            os.unlink(os.path.join(self._directory, f"{name}.json"))
            sync_directory(self._directory)
        except FileNotFoundError:  # It has just ended elsewhere.
            pass
        except OSError as error:
            raise StorageFailed("haft could not end a session", error) from error

    def _read(self, name: str) -> dict[str, Any] | None:
        return _record(os.path.join(self._directory, f"{name}.json"))


class SignInLinks:
    """The links with which the person of this server signs in. Each is good once, and for ten minutes."""

    def __init__(self, home: str | os.PathLike[str]) -> None:
        self._directory = os.path.join(os.fspath(home), LINKS)

    def make(self, principal: Principal) -> str:
        """The token of a new link. Raises `NeedsPerson` for an agent: the link makes an operator."""
        principal.must_be_person("make a link to sign in with")
        if principal.who != user_name():
            raise BadUsage(f"a link signs {user_name()} in, not {principal.who}: `haft tokens add --person`")
        self._prune()
        token = f"haftlink_{secrets.token_urlsafe(32)}"
        record = {"by": principal.who, "expires": time.time() + LINK_SECONDS}
        try:
            write_new(self._directory, f"{_digest(token)}.json", json.dumps(record).encode())
        except OSError as error:
            raise StorageFailed("haft could not store the link", error) from error
        return token

    def address(self, server: str, principal: Principal) -> str:
        """A new link for the server at this address. The token stands behind `#`: browsers keep it to themselves, so it
        is in no log and no proxy."""
        return f"{server.rstrip('/')}/sign-in#{self.make(principal)}"

    def use(self, token: str) -> bool:
        """Whether this link is good. It is not any more afterwards: of several who try, one gets True."""
        if _LINK.fullmatch(token) is None:
            return False
        path = os.path.join(self._directory, f"{_digest(token)}.json")
        record = _record(path)
        try:
            os.unlink(path)
            sync_directory(self._directory)
        except FileNotFoundError:
            return False
        except OSError as error:
            raise StorageFailed("haft could not mark the link as used", error) from error
        return record is not None and record.get("by") == user_name() and _is_later(record.get("expires"))

    def _prune(self) -> None:
        with contextlib.suppress(OSError), os.scandir(self._directory) as entries:
            for entry in entries:
                record = _record(entry.path)
                if record is not None and not _is_later(record.get("expires")):
                    with contextlib.suppress(OSError):
                        os.unlink(entry.path)


def _living(name: str, record: dict[str, Any]) -> Session | None:
    groups = record.get("groups")
    is_whole = (
        isinstance(record.get("name"), str)
        and record.get("how") in _HOW
        and isinstance(record.get("created"), float | int)
        and isinstance(record.get("subject"), str)
        and isinstance(groups, list)
        and all(isinstance(each, str) for each in groups)
    )
    if not is_whole or not _is_later(record.get("expires")):
        return None
    return Session(
        name,
        record["name"],
        record["how"],
        record["created"],
        record["expires"],
        record["subject"],
        tuple(record["groups"]),
    )


def _is_later(moment: Any) -> bool:
    return isinstance(moment, float | int) and time.time() < moment


def _record(path: str) -> dict[str, Any] | None:
    with contextlib.suppress(OSError, ValueError, RecursionError):
        with open(path, "rb") as file:
            record = json.loads(file.read(_MOST_BYTES))
        if isinstance(record, dict):
            return record
    return None


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()
