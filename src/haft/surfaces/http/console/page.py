"""One page of the console: how it is found, what it gets, and what it shows. `pages/` has them all."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any

from haft.values import dataclass, field

if TYPE_CHECKING:
    from starlette.datastructures import QueryParams

    from haft.service import ToolService
    from haft.surfaces.http.api.ask import Ask


@dataclass(frozen=True, slots=True)
class PageRequest:
    """A request for a page of a workspace."""

    ask: Ask
    path: Mapping[str, str]
    """The parameters in the path."""
    query: QueryParams
    """The filter, and how the page is shown."""

    @property
    def service(self) -> ToolService:
        return self.ask.service

    @property
    def workspace(self) -> str:
        """The name of the workspace."""
        return self.ask.here.name

    def address(self, path: str = "") -> str:
        """The address of another page of this workspace."""
        return f"/w/{self.workspace}/{path}"


@dataclass(frozen=True, slots=True)
class View:
    """What a page shows: a template and its facts."""

    template: str
    """In `templates/`."""
    title: str
    """The title of the tab, without the name of the workspace. Plain text: it is escaped."""
    facts: Mapping[str, Any] = field(default_factory=dict)
    """What the template gets."""
    status: int = 200
    go_to: str | None = None
    """The address to go to instead."""


@dataclass(frozen=True, slots=True)
class Page:
    """One kind of page."""

    section: str
    """The entry of the top bar that is marked as current: a name in `navigation`."""
    path: str
    """Below `/w/WORKSPACE`, with parameters as Starlette writes them."""
    show: Callable[[PageRequest], Awaitable[View]]
