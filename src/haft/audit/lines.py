"""One line of the audit log: `SEQ PREVIOUS HASH SEAL BODY`.

HASH is SHA-256 over a domain tag, SEQ, PREVIOUS and BODY, so that a check needs no key: anyone who knows the hash of
one line can check all lines up to that line. SEAL is a keyed hash over SEQ and HASH: nobody without the key of the
state home can make a line. SEAL stands before BODY: if a crash cut off the end of a line, the beginning still proves
who wrote the line. Lines of the first format have no SEAL.
"""

from __future__ import annotations

import functools
import hashlib
import hmac
from typing import Final

from haft.lazy import regex
from haft.values import dataclass

ZERO: Final = "0" * 64
_TAGS: Final = {False: b"haft-record-1\n", True: b"haft-record-2\n"}
_HASH_LENGTH: Final = 64
_SEAL_LENGTH: Final = 32
_HASH_AND_SEAL: Final = regex(rb"[0-9a-f]{0,64}|[0-9a-f]{64} [0-9a-f]{0,32}")


def line_hash(seq: int, previous: str, body: bytes, *, sealed: bool = True) -> str:
    """The hash of one line. Every field before the body has a fixed length, so that different inputs cannot be
    confused."""
    return hashlib.sha256(b"%s%016x%s%s" % (_TAGS[sealed], seq, previous.encode(), body)).hexdigest()


def seal_of(key: bytes, words: bytes) -> bytes:
    """A keyed hash of `words`, used for the head."""
    return hashlib.blake2b(words, key=key, digest_size=32).hexdigest().encode()


@functools.lru_cache(maxsize=8)
def _keyed(key: bytes) -> hashlib.blake2b:
    return hashlib.blake2b(key=key, digest_size=_SEAL_LENGTH // 2, person=b"haft-line-2")


def line_seal(key: bytes, seq: int, digest: str) -> str:
    """The seal of the line that has this number and hash."""
    seal = _keyed(key).copy()  # A copy is cheaper than a new hash object with the key.
    seal.update(b"%016x%s" % (seq, digest.encode()))
    return seal.hexdigest()


def next_line(key: bytes, seq: int, previous: str, body: bytes) -> tuple[bytes, str]:
    """Make the line that contains `body` and follows the line with the hash `previous`. Returns the new line, which
    ends with a newline, and its hash."""
    digest = line_hash(seq, previous, body)
    seal = line_seal(key, seq, digest)
    return b"%d %s %s %s %s\n" % (seq, previous.encode(), digest.encode(), seal.encode(), body), digest


@dataclass(frozen=True, slots=True)
class Line:
    """One line, parsed but not checked."""

    seq: int
    previous: str
    hash: str
    body: bytes
    seal: str | None = None
    """The keyed hash of the line; None in the first format."""


def parse_line(raw: bytes) -> Line | None:
    """The fields of the line `raw`, which must not end with a newline; None if `raw` does not have the form of a
    line."""
    parts = raw.split(b" ", 3)
    if len(parts) != 4 or len(parts[1]) != _HASH_LENGTH or len(parts[2]) != _HASH_LENGTH:
        return None
    # The hash covers only the value of the number, so other spellings of it, such as `007`, must be rejected here.
    if not parts[0].isdigit() or parts[0].startswith(b"0") or len(parts[0]) > 18:
        return None
    body, seal = parts[3], None
    if not body.startswith(b"{"):
        seal, _, body = body.partition(b" ")
        if len(seal) != _SEAL_LENGTH:
            return None
    try:
        return Line(
            int(parts[0]), parts[1].decode(), parts[2].decode(), body, None if seal is None else seal.decode("ascii")
        )
    except UnicodeDecodeError:
        return None


def is_whole(line: Line) -> bool:
    """Whether the hash of a line matches its content. This does not check whether the line belongs after the line
    before it."""
    return line_hash(line.seq, line.previous, line.body, sealed=line.seal is not None) == line.hash


def is_sealed_with(line: Line, key: bytes) -> bool:
    """Whether the line has a seal that was made with `key`."""
    return line.seal is not None and hmac.compare_digest(line.seal, line_seal(key, line.seq, line.hash))


def begins_line(piece: bytes, key: bytes, seq: int, previous: str) -> bool:
    """Whether `piece` may be the beginning of a line that a crash cut off: of line number `seq`, which follows the line
    with the hash `previous`. If `piece` contains the seal, the seal must have been made with `key`."""
    lead = b"%d %s " % (seq, previous.encode())
    if not piece.startswith(lead):
        return bool(piece) and lead.startswith(piece)
    words = piece[len(lead) :].split(b" ", 2)
    if len(words) < 3:
        return _HASH_AND_SEAL.fullmatch(b" ".join(words)) is not None
    return is_sealed_with(Line(seq, previous, words[0].decode("latin-1"), b"", words[1].decode("latin-1")), key)
