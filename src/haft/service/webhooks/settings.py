"""What `[[server.webhooks]]` says."""

from __future__ import annotations

import base64
import hashlib
from typing import TYPE_CHECKING, Final, Literal, get_args

from haft.values import dataclass, field

if TYPE_CHECKING:
    from haft.config import Config

EventName = Literal["request.waiting", "request.answered", "run.failed", "run.undone"]
EVENTS: Final[tuple[EventName, ...]] = get_args(EventName)
ENCODED: Final = "whsec_"


@dataclass(frozen=True, slots=True)
class Webhook:
    """A program that wants to hear what happened."""

    url: str = field(repr=False)
    """Many receivers have a secret in it, so it is shown nowhere."""
    secret: str = field(repr=False)
    name: str
    events: frozenset[str]
    arguments: bool = False
    """Whether the arguments of calls, and texts that quote them, are sent."""
    private: bool = False
    """Whether the receiver may have a private address."""

    @property
    def id(self) -> str:
        """What its deliveries are kept under."""
        return hashlib.sha256(self.url.encode()).hexdigest()[:16]

    @property
    def key(self) -> bytes:
        """The key of its signatures. A secret that begins with `whsec_` is base64, as receivers expect it."""
        if self.secret.startswith(ENCODED):
            return base64.b64decode(self.secret.removeprefix(ENCODED))
        return self.secret.encode()


def webhooks_in(config: Config) -> tuple[Webhook, ...]:
    """The webhooks of a configuration, which must be the user's own."""
    return tuple(
        Webhook(
            told["url"],
            told["secret"],
            told["name"],
            frozenset(told["events"] or EVENTS),
            arguments=told["arguments"],
            private=told["private"],
        )
        for told in config.values["server.webhooks"]
    )
