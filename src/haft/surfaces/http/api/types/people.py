"""The types of operations on sessions."""

from __future__ import annotations

from typing import Annotated, Literal

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
