"""Network connections of a call whose network is decided by host: what is recorded about them, and who is asked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal, Protocol

from haft.values import dataclass

if TYPE_CHECKING:
    from haft.contracts.host_grants import HostGrant

TransportProtocol = Literal["tcp", "udp"]
NOT_GRANTED: Final = "it is not granted"
"""The reason of a refusal if no grant covers the host and port."""
GIVEN_UP: Final = "it ended before anybody answered"
"""The reason in the record of a connection that ended while it waited for a person."""


@dataclass(frozen=True, slots=True)
class Connection:
    """A connection that has ended or was refused."""

    host: str
    """The name that the program connected to, or an address."""
    port: int
    allowed: bool
    protocol: TransportProtocol = "tcp"
    address: str | None = None
    """The real address; None if there was no connection."""
    sent: int = 0
    received: int = 0
    seconds: float = 0.0
    grant: str | None = None
    """The grant that allowed the connection, as it was written."""
    by: str | None = None
    """Where that grant comes from: a rule, a setting, the call itself, or a person who was asked."""
    reason: str | None = None
    """Why the connection was refused or failed; None if it ended normally."""
    count: int = 1
    """How many connections this record stands for: connections that were refused in the same way are one record, and
    connections of a call that makes very many."""
    encrypted_name: bool = False
    """Whether the TLS server name was encrypted, so that haft could not compare it with the granted name."""

    def to_json(self) -> dict[str, Any]:
        return {
            "host": self.host,
            "port": self.port,
            "protocol": self.protocol,
            "allowed": self.allowed,
            "grant": self.grant,
            "by": self.by,
            "reason": self.reason,
            "address": self.address,
            "sent": self.sent,
            "received": self.received,
            "seconds": self.seconds,
            "count": self.count,
            "encryptedName": self.encrypted_name,
        }


@dataclass(frozen=True, slots=True)
class HeldConnection:
    """A connection that waits for a person's answer, because its host was not granted."""

    host: str
    port: int
    program: str | None = None
    """The command line of the process that made the connection; None if it is not known."""

    def to_json(self) -> dict[str, Any]:
        return {"host": self.host, "port": self.port, "program": self.program}


class ConnectionObserver(Protocol):
    """Learns about the connections of one call, and answers for a person."""

    def opened(self, host: str, port: int, grant: str) -> None:
        """Called when an allowed connection is open."""
        ...

    def ended(self, connection: Connection) -> None:
        """Called when a connection has ended, failed, or was refused."""
        ...

    def incomplete(self, why: str) -> None:
        """Called if records of connections are missing."""
        ...

    async def ask(self, held: HeldConnection) -> HostGrant | None:
        """The grant that a person gives for a held connection; None if the connection is refused. The answer holds for
        all connections of the call to the same host and port. Cancelled if the program gives up or the call ends."""
        ...
