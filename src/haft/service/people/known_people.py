"""The names of the people who sign in with an identity provider.

HAFT_HOME/people/subjects/<digest of issuer and subject>.json    name, issuer, subject    0600
HAFT_HOME/people/names/<digest of name>.json                     the same

An identity provider says for certain only its own address and the subject: a key that it never gives to anyone else.
Names and mail addresses can change, and somebody may choose the name of another. But runs are recorded under a name. So
the first sign-in of a subject takes a name that nobody has, and the subject keeps it. Each name contains `@`, and the
names of tokens never do. It is a mail address only if the provider has verified the address: else somebody could take
the address of another before they sign in, and be let in where that one is named.
"""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import json
import os
import re
from collections.abc import Iterable, Iterator
from typing import Final
from urllib.parse import urlsplit

from haft.contracts import StorageFailed
from haft.service.principals import user_name
from haft.service.private_files import write_new

DIRECTORY: Final = "people"
_LONGEST: Final = 80
_LONGEST_DOMAIN: Final = 50


class KnownPeople:
    """The people of one state home."""

    def __init__(self, home: str | os.PathLike[str]) -> None:
        self._names = os.path.join(os.fspath(home), DIRECTORY, "names")
        self._subjects = os.path.join(os.fspath(home), DIRECTORY, "subjects")

    def name_of(self, issuer: str, subject: str, names: Iterable[str] = (), email: str | None = None) -> str:
        """The name of a subject. The address `email`, which the provider has verified, and the `names` that it said,
        the best first, count only at the first sign-in."""
        file = f"{_digest(json.dumps([issuer, subject]))}.json"
        known = _read(os.path.join(self._subjects, file))
        if known is not None:
            return known["name"]
        for name in _candidates(issuer, subject, names, email):
            record = {"name": name, "issuer": issuer, "subject": subject}
            if self._take(record):
                try:
                    with contextlib.suppress(FileExistsError):  # The same person signs in twice at this moment.
                        write_new(self._subjects, file, json.dumps(record).encode())
                except OSError as error:
                    raise StorageFailed("haft could not store who signed in", error) from error
                return (_read(os.path.join(self._subjects, file)) or record)["name"]
        raise AssertionError("there is always a further name")

    def _take(self, record: dict[str, str]) -> bool:
        """Take a name. False if it belongs to another subject, or to the user who runs this process."""
        if record["name"] == user_name():
            return False
        file = f"{_digest(record['name'])}.json"
        try:
            write_new(self._names, file, json.dumps(record).encode())
        except FileExistsError:
            return _read(os.path.join(self._names, file)) == record
        except OSError as error:
            raise StorageFailed("haft could not store who signed in", error) from error
        return True


def _candidates(issuer: str, subject: str, names: Iterable[str], email: str | None) -> Iterator[str]:
    local, _, domain = (_plain(each) for each in (email or "").partition("@"))
    if not local or not domain:
        domain = _plain(urlsplit(issuer).hostname or "unknown")
        local = next((name for name in map(_plain, (*names, subject)) if name), "person")
    ending = f"@{domain}"[:_LONGEST_DOMAIN]
    yield f"{local[: _LONGEST - len(ending)]}{ending}"
    for number in itertools.count(2):
        yield f"{local[: _LONGEST - len(ending) - 10]}-{number}{ending}"


def _plain(name: str) -> str:
    """A name that nobody can misread: its letters, digits and a few signs."""
    return re.sub(r"[^a-z0-9._+-]", "", name.lower().replace("@", "."))


def _read(path: str) -> dict[str, str] | None:
    with contextlib.suppress(OSError, ValueError, RecursionError):
        with open(path, "rb") as file:
            record = json.loads(file.read(10_000))
        if isinstance(record, dict) and all(
            isinstance(record.get(each), str) for each in ("name", "issuer", "subject")
        ):
            return record
    return None


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
