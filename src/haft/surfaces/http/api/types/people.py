"""The types of operations on sessions, and on what webhooks deliver."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field
from typing_extensions import TypedDict

from haft.surfaces.http.api.types.given import Given


class SessionGiven(Given):
    """The session that the path names."""

    session: Annotated[str, Field(pattern=r"^[0-9a-f]{16}$")]


class Session(TypedDict):
    id: str
    name: str
    how: Literal["link", "token", "oidc"]
    """How somebody signed in."""
    createdAt: str
    expiresAt: str


class SessionList(TypedDict):
    sessions: list[Session]


class SessionEnded(TypedDict):
    ended: Session


class DeliveriesGiven(Given):
    """Which deliveries."""

    state: Literal["pending", "delivered", "failed"] | None = None
    limit: Annotated[int, Field(ge=1, le=1000)] = 100


class DeliveryGiven(Given):
    """The delivery that the path names."""

    delivery: Annotated[str, Field(pattern=r"^msg_[0-9a-f]{24}$")]


class Attempt(TypedDict):
    at: str
    status: int | None
    """The status of the receiver's answer."""
    error: str | None


class Delivery(TypedDict):
    id: str
    webhook: str
    """The name of the webhook."""
    event: str
    state: Literal["pending", "delivered", "failed"]
    createdAt: str
    attempts: list[Attempt]
    nextAt: str | None
    """When it is sent again."""
    body: dict[str, Any]


class DeliveryList(TypedDict):
    deliveries: list[Delivery]
