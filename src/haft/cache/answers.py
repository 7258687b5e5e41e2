"""The kept answers of one workspace, on disk: see `storage.AnswerFiles`. All hosts of the workspace share them.

An answer is found by its key. A key is a keyed digest of everything that decides the answer besides the files: nobody
without the key of the state home can find out from it which arguments or variables a call had. Damaged entries, and
those of other versions, count as missing.
"""

from __future__ import annotations

import hmac
import time
from collections.abc import Callable, Mapping
from typing import Any, Final

from haft.storage import AnswerFiles, decode, encode
from haft.values import dataclass

FORM: Final = 1
"""The version of the form of an entry."""
_MOST_COUNTED: Final = 100


@dataclass(frozen=True, slots=True)
class KeptAnswer:
    """The answer of an earlier call."""

    run: str
    """The run that gave it."""
    at: float
    stamp: str
    """The stamp of the files that it depends on."""
    answer: Mapping[str, Any]
    """The fields of the outcome that come from the tool."""


class KeptAnswers:
    """The answers of one workspace."""

    def __init__(
        self,
        files: AnswerFiles,
        workspace: str,
        version: str,
        seconds: float,
        now: Callable[[], float] = time.time,
    ) -> None:
        """`now`: the clock by which answers become too old."""
        self.now = now
        self._files = files
        self._basis = encode([FORM, version, workspace])
        self._seconds = seconds
        self._key: bytes | None = None
        self._tally: dict[str, int] = {}

    @property
    def is_off(self) -> bool:
        return self._files.entries <= 0 or self._files.bytes <= 0 or self._seconds <= 0

    def key_of(self, facts: Any) -> str | None:
        """The key of a call with these facts; None if no key can be made, because the state home cannot be written."""
        if self._key is None:
            self._key = self._files.secret()
        if self._key is None:
            return None
        return hmac.digest(self._key, self._basis + encode(facts), "sha256").hex()

    def find(self, key: str) -> KeptAnswer | None:
        """The answer with this key, if it is not too old."""
        data = self._files.read(key)
        if data is None:
            return None
        try:
            form = decode(data)
            kept = KeptAnswer(form["run"], form["at"], form["stamp"], form["answer"])
            is_good = form["key"] == key and isinstance(kept.answer, dict) and 0 <= self.now() - kept.at < self._seconds
        except Exception:  # Whatever the file contains, it is no answer.
            return None
        return kept if is_good else None

    def used(self, key: str) -> None:
        """Note that an answer was given again."""
        self._files.touch(key)
        self._count("hits")

    def missed(self, why: str) -> None:
        """Note that no answer was given."""
        self._count(f"missed: {why}")

    def _count(self, name: str) -> None:
        self._tally[name] = self._tally.get(name, 0) + 1
        if sum(self._tally.values()) >= _MOST_COUNTED:
            self.close()

    def close(self) -> None:
        """Write down how often calls were answered."""
        if self._tally:
            self._files.add_counts(self._tally)
            self._tally = {}

    def keep(self, key: str, answer: KeptAnswer) -> bool:
        """Keep an answer. Returns False if it cannot be given again exactly, is too large, or cannot be written."""
        form = {"key": key, "run": answer.run, "at": answer.at, "stamp": answer.stamp, "answer": dict(answer.answer)}
        data = encode(form)
        try:
            if not _is_same(decode(data), form):
                return False
        except ValueError:
            return False
        return self._files.write(key, data)


def _is_same(one: Any, other: Any) -> bool:
    """Whether two values are equal and of the same types, at any depth."""
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(_is_same(one[name], other[name]) for name in one)
    if isinstance(one, list):
        return len(one) == len(other) and all(map(_is_same, one, other))
    return bool(one == other)
