"""Logins at remote MCP servers: their tokens, kept in the state home.

One file for each provider and address, readable only by its owner, with an entry for each issuer of tokens. Tokens go
to the server that they were issued for, and the refresh token to the address that issued it. They are never in the
environment of a program, and `login_secrets` lets haft mask them everywhere. This module imports nothing of the `mcp`
package.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any, Final

from haft.contracts import NO_SECRETS, Secrets, StorageFailed
from haft.values import dataclass, field, replace

CLIENT_CREDENTIALS: Final = "client_credentials"
_FOLDER: Final = "logins"
_LEEWAY: Final = 15.0
"""A token is renewed this many seconds before it expires."""
_MOST_BYTES: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class Login:
    """The tokens of one server by one issuer."""

    issuer: str
    access_token: str = field(repr=False)
    token_endpoint: str
    """The address at which the tokens are renewed."""
    client: Mapping[str, Any] = field(default_factory=dict, repr=False)
    """How haft is registered at the issuer: `client_id`, `client_secret`, `token_endpoint_auth_method`."""
    refresh_token: str | None = field(default=None, repr=False)
    expires_at: float | None = None
    """When the access token expires, in seconds since 1970; None if that is not known."""
    scope: str | None = None
    resource: str | None = None
    """The name of the server in requests for tokens; None if it is not sent."""

    grant: str = "authorization_code"
    """How haft got the tokens: a person logged in, or `client_credentials` (a program of its own right)."""

    @property
    def is_renewable(self) -> bool:
        return bool(self.refresh_token) or self.grant == CLIENT_CREDENTIALS

    @property
    def is_expired(self) -> bool:
        return self.expires_at is not None and time.time() > self.expires_at - _LEEWAY

    @property
    def secrets(self) -> Secrets:
        found = (self.access_token, self.refresh_token, self.client.get("client_secret"))
        return Secrets(each for each in found if isinstance(each, str))

    def to_json(self) -> dict[str, Any]:
        return {
            "access_token": self.access_token,
            "refresh_token": self.refresh_token,
            "expires_at": self.expires_at,
            "scope": self.scope,
            "resource": self.resource,
            "token_endpoint": self.token_endpoint,
            "client": dict(self.client),
            "grant": self.grant,
        }


class Logins:
    """The logins of one provider."""

    def __init__(self, state_home: str, name: str, url: str) -> None:
        digest = hashlib.sha256(url.partition("#")[0].encode()).hexdigest()[:24]
        self._folder = os.path.join(state_home, _FOLDER)
        self.path: Final = os.path.join(self._folder, f"{name}.{digest}.json")
        self._seen: tuple[tuple[int, int, int], dict[str, Any]] | None = None

    @property
    def current(self) -> Login | None:
        """The login in use; None if nobody logged in. It is read again if another process changed it."""
        kept = self._read()
        issuer = kept.get("issuer")
        entry = kept.get("issuers", {}).get(issuer) if isinstance(issuer, str) else None
        return None if entry is None else _login(str(issuer), entry)

    @property
    def last_issuer(self) -> str | None:
        """The issuer of the last login, also if it is not valid any more."""
        kept = self._read()
        found = kept.get("issuer") or kept.get("last_issuer")
        return found if isinstance(found, str) else None

    @property
    def wanted_scope(self) -> str | None:
        """The rights for which the server asked when it refused a call."""
        wanted = self._read().get("wanted_scope")
        return wanted if isinstance(wanted, str) else None

    def keep(self, login: Login) -> None:
        """Store a login, which is in use from now on. Logins by other issuers are kept, and not used."""
        kept = self._read()
        issuers = {**kept.get("issuers", {}), login.issuer: login.to_json()}
        self._write({"issuer": login.issuer, "issuers": issuers})

    def want(self, scope: str) -> None:
        """Remember that the server asked for these rights, so that the next login asks the person for them."""
        kept = self._read()
        if kept.get("wanted_scope") != scope:
            self._write({**kept, "wanted_scope": scope})

    def drop_tokens(self, login: Login) -> None:
        """Forget tokens that the issuer does not renew any more."""
        kept = self._read()
        issuers = {name: entry for name, entry in kept.get("issuers", {}).items() if name != login.issuer}
        self._write({**kept, "issuer": None, "last_issuer": login.issuer, "issuers": issuers})

    def _read(self) -> dict[str, Any]:
        try:
            found = os.stat(self.path)
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise StorageFailed(f"the login in {self.path} cannot be read", error) from error
        key = (found.st_ino, found.st_mtime_ns, found.st_size)
        if self._seen is None or self._seen[0] != key:
            self._seen = key, _content_of(self.path)
        return self._seen[1]

    def _write(self, content: Mapping[str, Any]) -> None:
        temporary = f"{self.path}.{os.urandom(8).hex()}.tmp"
        try:
            os.makedirs(self._folder, mode=0o700, exist_ok=True)
            descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
            try:
                with os.fdopen(descriptor, "w") as file:
                    json.dump(content, file)
                    file.flush()
                    os.fsync(file.fileno())
                os.replace(temporary, self.path)
            except BaseException:
                with suppress(OSError):
                    os.unlink(temporary)
                raise
        except OSError as error:
            raise StorageFailed(f"the login cannot be stored in {self.path}", error) from error
        self._seen = None


def login_secrets(state_home: str) -> Secrets:
    """The tokens of all logins, which are masked everywhere."""
    found = NO_SECRETS
    for path in _files(state_home):
        for issuer, entry in _content_of(path).get("issuers", {}).items():
            login = _login(issuer, entry)
            found = found if login is None else found | login.secrets
    return found


def forget_logins(state_home: str, name: str) -> int:
    """Forget all logins of a provider, at whatever address. Returns how many there were."""
    mine = [path for path in _files(state_home) if os.path.basename(path).split(".")[0] == name]
    for path in mine:
        with suppress(FileNotFoundError):
            os.unlink(path)
    return len(mine)


def _files(state_home: str) -> Iterator[str]:
    folder = os.path.join(state_home, _FOLDER)
    with suppress(OSError):
        yield from (os.path.join(folder, name) for name in os.listdir(folder) if name.endswith(".json"))


def _content_of(path: str) -> dict[str, Any]:
    """The content of a file of logins; nothing if it is damaged, so that the person logs in again."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        with os.fdopen(descriptor, "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                return {}
            content = json.loads(file.read(_MOST_BYTES))
    except (OSError, ValueError):
        return {}
    is_sound = isinstance(content, dict) and isinstance(content.get("issuers", {}), dict)
    return content if is_sound else {}


def _login(issuer: str, entry: Any) -> Login | None:
    try:
        return Login(issuer=issuer, **entry)
    except TypeError:
        return None


def renewed(login: Login, answer: Mapping[str, Any]) -> Login:
    """The login with the tokens of an issuer's answer, which leaves out what has not changed."""
    texts = {name: value for name, value in answer.items() if isinstance(value, str) and value}
    seconds = answer.get("expires_in")
    is_number = isinstance(seconds, int | float) and not isinstance(seconds, bool)
    return replace(
        login,
        access_token=texts["access_token"],
        refresh_token=texts.get("refresh_token", login.refresh_token),
        scope=texts.get("scope", login.scope),
        expires_at=time.time() + seconds if is_number and seconds is not None else None,
    )
