"""Principals (the persons or agents for which haft acts): the user of this process as a principal, and principals as
text for other processes."""

from __future__ import annotations

import os
import pwd

from haft.contracts import HaftError, Principal
from haft.storage import decode, encode


def user_name() -> str:
    """The name of the user who runs this process."""
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return str(os.getuid())


def this_user() -> Principal:
    """The user who runs this process, as a person. Surfaces act for this principal unless another one is named."""
    return Principal(user_name())


def to_text(principal: Principal) -> str:
    """The principal as JSON text."""
    return encode(principal.to_json()).decode()


def from_text(text: str) -> Principal:
    """The principal from the text that `to_text` made. The text may also be a name alone, as earlier versions wrote
    it."""
    try:
        told = decode(text)
        return Principal(told["who"], told["thread"], told["whoKind"], told.get("onBehalf"))
    except (ValueError, TypeError, KeyError, HaftError):
        return Principal(text or "?")
