"""Proofs that the person who knows a passphrase gave an answer (`approval.secret`).

The passphrase makes a key pair: scrypt turns it into the secret key, which exists only while an answer is given. The
state home keeps the verifier: the public key, and what scrypt needs. So a program that reads the verifier cannot make a
proof. A program that can replace the verifier, or change haft itself, is not stopped.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from typing import Any, Final

from haft.contracts import BadConfig
from haft.storage import Answered, encode
from haft.values import dataclass, replace

COST: Final = 2**15
"""scrypt takes a tenth of a second and 32 MB: trying many passphrases takes long."""
_BLOCK: Final = 8
_MEMORY: Final = 2**27
_HIGHEST_COST: Final = 2**20
_SALT_BYTES: Final = 16


@dataclass(frozen=True, slots=True)
class Verifier:
    """Checks proofs. It contains no secret."""

    key: bytes
    """The public key."""
    salt: bytes
    cost: int

    @classmethod
    def made_from(cls, passphrase: str) -> Verifier:
        """The verifier for a new passphrase."""
        salt = os.urandom(_SALT_BYTES)
        return cls(_public(_secret_key(passphrase, salt, COST)), salt, COST)

    @classmethod
    def from_json(cls, told: Mapping[str, Any]) -> Verifier:
        """The verifier from what `to_json` returned. Raises `BadConfig` for anything else."""
        try:
            made = cls(bytes.fromhex(told["key"]), bytes.fromhex(told["salt"]), int(told["cost"]))
        except (KeyError, TypeError, ValueError) as error:
            raise BadConfig("the verifier of the approval passphrase is damaged") from error
        if len(made.key) != 32 or len(made.salt) != _SALT_BYTES or not 2 <= made.cost <= _HIGHEST_COST:
            raise BadConfig("the verifier of the approval passphrase is damaged")
        return made

    def to_json(self) -> dict[str, Any]:
        return {"key": self.key.hex(), "salt": self.salt.hex(), "cost": self.cost}

    def signer(self, passphrase: str) -> Signer | None:
        """Makes proofs; None if the passphrase is wrong."""
        made = Signer(_secret_key(passphrase, self.salt, self.cost))
        return made if _public(made.key) == self.key else None

    def proves_answer(self, request: str, answered: Answered) -> bool:
        """Whether the person who knows the passphrase gave exactly this answer to this request."""
        return self._proves(_answer_bytes(request, answered), answered.proof)

    def proves_rule(
        self, workspace: str, rule: Mapping[str, Any], pin: str | None, thread: str | None, proof: object
    ) -> bool:
        """Whether an answer of this person made exactly this rule."""
        return self._proves(_rule_bytes(workspace, rule, pin, thread), proof)

    def _proves(self, message: bytes, proof: object) -> bool:
        from cryptography.exceptions import InvalidSignature
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

        if not isinstance(proof, str):
            return False
        try:
            Ed25519PublicKey.from_public_bytes(self.key).verify(bytes.fromhex(proof), message)
        except (InvalidSignature, ValueError):
            return False
        return True


@dataclass(frozen=True, slots=True)
class Signer:
    """Makes proofs. It holds the secret key: keep it only while a person answers."""

    key: bytes

    def __repr__(self) -> str:
        return "Signer()"

    def answer(self, request: str, answered: Answered) -> Answered:
        """The answer with a proof for this request."""
        return replace(answered, proof=self._sign(_answer_bytes(request, answered)))

    def rule(self, workspace: str, rule: Mapping[str, Any], pin: str | None, thread: str | None) -> str:
        """A proof for a rule that an answer makes."""
        return self._sign(_rule_bytes(workspace, rule, pin, thread))

    def _sign(self, message: bytes) -> str:
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

        return Ed25519PrivateKey.from_private_bytes(self.key).sign(message).hex()


def _answer_bytes(request: str, answered: Answered) -> bytes:
    """Everything that an answer says, and the digest of what the person saw."""
    told = {name: value for name, value in answered.to_json().items() if name != "proof"}
    return b"haft answer\0" + _canonical({"request": request, "answer": told})


def _rule_bytes(workspace: str, rule: Mapping[str, Any], pin: str | None, thread: str | None) -> bytes:
    return b"haft rule\0" + _canonical({"workspace": workspace, "rule": dict(rule), "pin": pin, "thread": thread})


def _canonical(value: Any) -> bytes:
    """The same bytes for the same value, whatever the order of its keys."""
    return encode(_sorted(value))


def _sorted(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _sorted(value[name]) for name in sorted(value)}
    return [_sorted(each) for each in value] if isinstance(value, list | tuple) else value


def _secret_key(passphrase: str, salt: bytes, cost: int) -> bytes:
    return hashlib.scrypt(
        passphrase.encode("utf-8", "surrogateescape"),
        salt=salt,
        n=cost,
        r=_BLOCK,
        p=1,
        maxmem=max(_MEMORY, cost * _BLOCK * 256),
        dklen=32,
    )


def _public(secret: bytes) -> bytes:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    return Ed25519PrivateKey.from_private_bytes(secret).public_key().public_bytes_raw()
