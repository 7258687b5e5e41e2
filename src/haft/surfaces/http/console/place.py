"""Where a page is, for its frame: the workspace, the entry of the top bar, who looks at it, and what waits for them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from haft.values import dataclass

if TYPE_CHECKING:
    from haft.surfaces.http.api.ask import Ask


@dataclass(frozen=True, slots=True)
class Place:
    """What the frame of every page shows."""

    section: str
    title: str
    who: str
    at: float
    """When the page was made, by the server's clock: clocks on the page count from here."""
    workspace: str | None = None
    """None if the page is in no workspace that exists."""
    workspaces: tuple[str, ...] = ()
    """All workspaces that this person may enter."""
    waits: int = 0
    """How many calls wait for a person in this workspace."""
    may_answer: bool = False

    @property
    def initials(self) -> str:
        """Two letters for the round mark."""
        words = [word for word in self.who.replace(".", " ").replace("-", " ").replace("_", " ").split() if word]
        return "".join(word[0] for word in words[:2]).upper() if len(words) > 1 else self.who[:2].upper()


async def place_of(ask: Ask, section: str, title: str, at: float) -> Place:
    """The place of a page."""
    identity = ask.identity
    workspaces = tuple(each.name for each in ask.workspaces())
    if ask.workspace is None:
        return Place(section, title, identity.name, at, workspaces=workspaces)
    waits = len(await ask.service.approvals.waiting()) if identity.may("see-inbox") else 0
    return Place(
        section,
        title,
        identity.name,
        at,
        workspace=ask.here.name,
        workspaces=workspaces,
        waits=waits,
        may_answer=identity.may("answer"),
    )
