"""The workspaces of a server: a `ToolService` each, by name."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Self

from haft.contracts import UnknownWorkspace, near_miss
from haft.service.service import ToolService
from haft.service.telemetry.run_counts import RunCounts
from haft.values import dataclass, field

if TYPE_CHECKING:
    from types import TracebackType

DEFAULT_NAME: Final = "default"
"""The name of the workspace in which a server was started, if its configuration names none."""


@dataclass(frozen=True, slots=True)
class NamedWorkspace:
    """A workspace as the configuration names it."""

    name: str
    path: str
    users: tuple[str, ...] = ()
    """The names of those who may enter it; empty: all whose roles allow it."""
    limits: Mapping[str, Any] = field(default_factory=dict)
    """Limits for its calls, by the names in `[limits]`."""


@dataclass(frozen=True, slots=True)
class ServedWorkspace:
    """A workspace of a running server."""

    name: str
    service: ToolService
    users: tuple[str, ...] = ()

    @property
    def path(self) -> str:
        return self.service.workspace

    def admits(self, user: str) -> bool:
        """Whether the configuration lets this user in."""
        return not self.users or user in self.users


class ServedWorkspaces:
    """The workspaces of one server. Enter it with `async with`: it opens their services, and closes them."""

    def __init__(
        self,
        workspaces: Sequence[NamedWorkspace],
        *,
        each_with: Callable[[NamedWorkspace], Mapping[str, Any]] | None = None,
        **options: Any,
    ) -> None:
        """`options` are those of `ToolService.open`, for each workspace; `each_with` returns further ones for one.
        Several workspaces, and those that the configuration gives to some users, are shared by several people, unless
        `is_shared` says otherwise."""
        self._named = tuple(workspaces)
        self._each_with = each_with or (lambda _: {})
        self.counts = RunCounts()
        """Counts the calls of all workspaces, for metrics."""
        self._options = {**options, "watchers": (self.counts, *options.get("watchers", ()))}
        self._open: dict[str, ServedWorkspace] = {}
        self._stack = contextlib.AsyncExitStack()

    @classmethod
    def only(cls, path: str | os.PathLike[str], **options: Any) -> Self:
        """A single workspace, with the name `default`."""
        return cls([NamedWorkspace(DEFAULT_NAME, os.fspath(path))], **options)

    async def __aenter__(self) -> Self:
        try:
            for each in self._named:
                limits = {f"limits.{name}": value for name, value in each.limits.items()}
                options = {
                    "is_shared": len(self._named) > 1 or bool(each.users),
                    **self._options,
                    **self._each_with(each),
                    "settings": {**(self._options.get("settings") or {}), **limits},
                    "neighbours": [other.path for other in self._named if other is not each],
                }
                opening = ToolService.open(each.path, **options)
                service = await self._stack.enter_async_context(opening)
                self._open[each.name] = ServedWorkspace(each.name, service, each.users)
        except BaseException:
            await self._stack.aclose()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._open.clear()
        await self._stack.aclose()

    @property
    def names(self) -> Collection[str]:
        return self._open.keys()

    def __iter__(self) -> Iterator[ServedWorkspace]:
        return iter(self._open.values())

    def find(self, name: str) -> ServedWorkspace:
        """The workspace with this name. Raises `UnknownWorkspace` if there is none."""
        try:
            return self._open[name]
        except KeyError:
            raise UnknownWorkspace(name, near_miss(name, self._open)) from None
