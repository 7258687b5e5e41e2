"""The approval passphrase at the command line: asked for at the terminal, without showing it, or read from a file."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Final

import click

from haft.contracts import BadUsage, Rejected
from haft.surfaces.text.terminal import is_terminal

if TYPE_CHECKING:
    from haft.service import ApprovalSecret, Signer

_LONGEST: Final = 10_000

passphrase_option = click.option(
    "--passphrase",
    metavar="FILE|-",
    help="If an approval passphrase is set: read it from a file; - is stdin. Default: haft asks at the terminal.",
)
"""The option of commands that answer requests."""


def asked_signer(secret: ApprovalSecret, source: str | None) -> Signer | None:
    """What proves the person's answers; None if no passphrase is set. Asks for the passphrase, or reads it from
    `source`."""
    if secret.verifier() is None:
        return None
    return secret.signer(read_passphrase("Approval passphrase: ", source))


def read_passphrase(question: str, source: str | None = None) -> str:
    """The passphrase that a person types, or the first line of the file `source`."""
    if source is not None:
        return _from_file(source)
    if not (is_terminal(sys.stdin) and is_terminal(sys.stderr)):
        raise Rejected(
            "the approval passphrase is needed, and there is no terminal to ask at",
            hint="`--passphrase FILE` reads it from a file",
        )
    import getpass

    try:
        return getpass.getpass(question, stream=sys.stderr)
    except EOFError:
        raise Rejected("the approval passphrase was not given") from None


def _from_file(source: str) -> str:
    try:
        if source == "-":
            return sys.stdin.readline(_LONGEST).rstrip("\n")
        with open(os.path.expanduser(source), encoding="utf-8", errors="surrogateescape") as file:
            return file.readline(_LONGEST).rstrip("\n")
    except OSError as error:
        raise BadUsage(f"{source} cannot be read: {error.strerror}") from error
