"""One request: who asks, of which server, in which workspace. Routes and the console perform operations through it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from haft.contracts import UnknownWorkspace
from haft.surfaces.http.api.problems import Forbidden
from haft.surfaces.http.api.table import BY_NAME
from haft.values import dataclass, replace

if TYPE_CHECKING:
    from haft.service import Action, Identity, ServedWorkspace, ToolService
    from haft.surfaces.http.server import Server


@dataclass(frozen=True, slots=True)
class Ask:
    """One request."""

    server: Server
    identity: Identity
    workspace: ServedWorkspace | None = None
    key: str | None = None
    """The idempotency key of the request."""

    @property
    def here(self) -> ServedWorkspace:
        """The workspace of the request. Only operations below `/workspaces/NAME/` have one."""
        assert self.workspace is not None
        return self.workspace

    @property
    def service(self) -> ToolService:
        """The service of the workspace."""
        return self.here.service

    def within(self, name: str) -> Ask:
        """The same, in this workspace. Raises `UnknownWorkspace` if there is none, or if this identity may not enter
        it: nobody learns the names of workspaces that are not theirs."""
        if not self.identity.may_enter(name):
            raise UnknownWorkspace(name)
        found = self.server.workspaces.find(name)
        if not found.admits(self.identity.name):
            raise UnknownWorkspace(name)
        return replace(self, workspace=found)

    def workspaces(self) -> list[ServedWorkspace]:
        """The workspaces that this identity may enter."""
        return [
            each
            for each in self.server.workspaces
            if self.identity.may_enter(each.name) and each.admits(self.identity.name)
        ]

    def require(self, action: Action) -> None:
        """Raise `Forbidden` if the identity may not do this."""
        if not self.identity.may(action):
            raise Forbidden(self.identity, action)

    async def perform(self, name: str, given: Any = None) -> Any:
        """Perform an operation of the table, with the checks that its route makes. `given` are its parameters, as the
        endpoint's `given` or as keywords for it; the workspace is that of this request."""
        endpoint = BY_NAME[name]
        if endpoint.action is not None:
            self.require(endpoint.action)
        if not isinstance(given, endpoint.given):
            given = endpoint.given.model_validate(given or {})
        return await endpoint.handler(self, given)
