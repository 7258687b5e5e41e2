"""The passphrase of a person for answers (`approval.secret`): sets, changes and removes it, and checks answers with it.

The state home keeps the verifier in `approval/secret`. A host reads the verifier once, when it starts. From then on it
accepts an answer from another process only with a proof that this verifier confirms. So a program that writes an
approval into the database, or replaces the verifier while the host runs, gains nothing. A program that replaces the
verifier and then gets the host restarted is not stopped.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
from collections.abc import Mapping
from typing import Any, Final

from haft.contracts import BadConfig, BadUsage, Rejected, StorageFailed
from haft.policy import Answered, Signer, Verifier
from haft.service.private_files import sync_directory
from haft.storage import StateHome

SHORTEST: Final = 8
"""The fewest characters of a passphrase."""
_LONGEST_FILE: Final = 10_000


class ApprovalSecret:
    """The passphrase of a state home, as its verifier."""

    def __init__(self, home: StateHome) -> None:
        self._directory = os.path.join(home.path, "approval")
        self.path = os.path.join(self._directory, "secret")

    def verifier(self) -> Verifier | None:
        """The verifier; None if no passphrase is set. Raises `BadConfig` if the file is damaged."""
        try:
            with open(self.path, "rb") as file:
                text = file.read(_LONGEST_FILE)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise StorageFailed("haft could not read the verifier of the approval passphrase", error) from error
        try:
            return Verifier.from_json(json.loads(text))
        except (ValueError, TypeError, BadConfig) as error:
            raise BadConfig(
                f"the verifier of the approval passphrase, {self.path}, is damaged",
                hint="remove the file, and set the passphrase again: `haft approval secret`",
            ) from error

    def signer(self, passphrase: str) -> Signer:
        """Makes the proofs of answers. Raises `Rejected` if the passphrase is wrong, and `BadUsage` if none is set."""
        verifier = self.verifier()
        if verifier is None:
            raise BadUsage("no approval passphrase is set", hint="`haft approval secret` sets one")
        made = verifier.signer(passphrase)
        if made is None:
            raise Rejected(
                "the approval passphrase is wrong",
                hint="type it again; docs/concepts/self-approval.md says what to do if you have forgotten it",
            )
        return made

    def set(self, passphrase: str, old: str | None = None) -> None:
        """Set the passphrase, or change it. Changing needs the old one. Hosts that run keep the old one."""
        if len(passphrase) < SHORTEST:
            raise BadUsage(f"the passphrase is too short: it needs at least {SHORTEST} characters")
        self._check_old(old)
        self._write(json.dumps(Verifier.made_from(passphrase).to_json()).encode() + b"\n")

    def remove(self, old: str | None) -> None:
        """Remove the passphrase. This needs the old one."""
        self.signer(old or "")
        os.unlink(self.path)
        sync_directory(self._directory)

    def _check_old(self, old: str | None) -> None:
        if self.verifier() is not None:
            self.signer(old or "")

    def _write(self, content: bytes) -> None:
        temporary = os.path.join(self._directory, f".{secrets.token_hex(8)}.tmp")
        try:
            os.makedirs(self._directory, mode=0o700, exist_ok=True)
            descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
            with os.fdopen(descriptor, "wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            os.rename(temporary, self.path)
            sync_directory(self._directory)
        except OSError as error:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
            raise StorageFailed("haft could not write the verifier of the approval passphrase", error) from error


class AnswerChecks:
    """What a host checks about answers and remembered rules that other processes wrote."""

    def __init__(self, secret: ApprovalSecret) -> None:
        """Reads the verifier now: a verifier that is written later does not count."""
        self._secret = secret
        self._verifier = secret.verifier()

    @property
    def needs_proof(self) -> bool:
        """Whether answers from outside the asking terminal need a proof."""
        return self._verifier is not None

    def problem(self, request: str, answered: Answered) -> str | None:
        """Why an answer from another process does not count; None if it counts."""
        if self._verifier is None or self._verifier.proves_answer(request, answered):
            return None
        if self._has_changed():
            return "the approval passphrase was set anew after this host had started, and only the old one counts here"
        if answered.proof is None:
            return "the answer has no proof of the approval passphrase"
        return "the answer's proof of the approval passphrase is wrong"

    def allows_rule(
        self, workspace: str, rule: Mapping[str, Any], pin: str | None, thread: str | None, proof: object
    ) -> bool:
        """Whether a remembered rule counts."""
        return self._verifier is None or self._verifier.proves_rule(workspace, rule, pin, thread, proof)

    def _has_changed(self) -> bool:
        try:
            return self._secret.verifier() != self._verifier
        except (BadConfig, StorageFailed):
            return True
