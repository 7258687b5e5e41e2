"""One endpoint of the API, as the table lists it: routes, checks and the OpenAPI document are made from it."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Final, Literal

from haft.values import dataclass

if TYPE_CHECKING:
    from pydantic import BaseModel

    from haft.service import Action
    from haft.surfaces.http.api.ask import Ask

Method = Literal["GET", "POST", "PUT", "DELETE"]
Handler = Callable[["Ask", Any], Awaitable[Any]]
PREFIX: Final = "/api/v1"
IN_WORKSPACE: Final = "/workspaces/{workspace}"
SMALL: Final = 64_000
"""The longest body of an operation that takes no arguments of tools."""
_NAMED = re.compile(r"\{(\w+)(?::\w+)?\}")


@dataclass(frozen=True, slots=True)
class Link:
    """From an answer of one operation to another operation: where its parameters stand in the answer."""

    to: str
    """The name of the other operation."""
    parameters: dict[str, str]
    """Its parameters, each with a JSON pointer into the answer; `workspace` is always passed on."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A method and a path, and the operation behind them."""

    name: str
    """The name of the operation, for `Ask.perform`, OpenAPI and links."""
    method: Method
    path: str
    """Below `/api/v1`. `{workspace}` chooses the workspace; other names in braces are parameters of the operation."""
    action: Action | None
    """What the identity must be allowed to do; None: every identity may. Operations check more, such as whose run it
    is."""
    handler: Handler
    given: type[BaseModel]
    """The parameters. Those that the path does not name are the query of a GET, else the body."""
    answer: Any
    """The type of the answer."""
    summary: str
    status: int = 200
    codes: tuple[str, ...] = ()
    """The codes of errors that the operation itself can answer with."""
    media_type: str = "application/json"
    body_bytes: int = SMALL
    """The longest body."""
    takes_key: bool = False
    """Whether an `Idempotency-Key` is taken."""
    links: tuple[Link, ...] = ()

    @property
    def whole_path(self) -> str:
        return PREFIX + self.path

    @property
    def path_names(self) -> tuple[str, ...]:
        """The names in the path."""
        return tuple(_NAMED.findall(self.path))

    @property
    def has_body(self) -> bool:
        """Whether parameters come in the body."""
        return self.method in ("POST", "PUT") and bool(self.given.model_fields.keys() - set(self.path_names))

    @property
    def changes_state(self) -> bool:
        return self.method != "GET"

    @property
    def is_in_workspace(self) -> bool:
        return "workspace" in self.path_names
