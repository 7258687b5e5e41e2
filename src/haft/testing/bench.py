"""For tests: a workspace, a state home and a blocking service that approves every call.

Apart from that, the service is a normal one: it validates, decides, confines and records calls. It opens when it is
first needed, so that a test can write files and change settings before.
"""

from __future__ import annotations

import os
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from haft.contracts import ApprovalRequest, Listing, Outcome
from haft.service import SyncToolService, ToolService
from haft.sources.bash_plugin import is_bash_plugin


class ToolBench:
    """The value of the fixture `haft_tools`."""

    def __init__(self, workspace: Path, home: Path) -> None:
        self.workspace = workspace
        """An empty directory, where tools work. The service reads a `haft.json` or `haft.toml` in it when it opens."""
        self.asked: list[ApprovalRequest] = []
        """The approval requests, in order. All of them were approved."""
        self.settings: dict[str, Any] = {}
        """Settings by their dotted names. They override configuration files, and are read when the service opens."""
        self._home = home
        self._plugins: list[str] = []
        self._files: list[str] = []
        self._service: SyncToolService | None = None

    def load(self, path: str | os.PathLike[str]) -> list[Listing]:
        """Load a bash plugin, as a file or a folder, or a toolbox executable. Return its tools, also broken ones."""
        full = os.path.abspath(os.fspath(path))
        if os.path.isdir(full) or is_bash_plugin(Path(full).read_bytes()):
            self._plugins.append(f"bash:{full}")
            self.close()
            return [one for one in self.service.tools(all=True) if _is_part(one, full)]
        listing = self._open().load(full)
        self._files.append(full)
        return [listing]

    def call(self, name: str, /, **arguments: Any) -> Outcome:
        """Call a tool and wait for its outcome. A failure is an outcome too, not an exception."""
        return self.service.call(name, arguments).wait()

    def tools(self) -> dict[str, Listing]:
        """Every tool by name, also those that cannot be called."""
        return {one.spec.name: one for one in self.service.tools(all=True)}

    @property
    def service(self) -> SyncToolService:
        """The service itself, for everything that this class has no method for, such as the events of a run."""
        return self._open()

    def _open(self) -> SyncToolService:
        if self._service is None:
            loaded = {"plugins": self._plugins, "plugin_policy.allow_bash_tools": True} if self._plugins else {}
            self._service = ToolService.open_sync(
                self.workspace,
                home=self._home,
                approver=self._approve,
                settings={**loaded, **self.settings},
                installed=False,
            ).__enter__()
            for file in self._files:
                self._service.load(file)
        return self._service

    def _approve(self, request: ApprovalRequest) -> bool:
        self.asked.append(request)
        return True

    def close(self) -> None:
        """Close the service and end all runs. The next call opens it again, with the same workspace and state."""
        service, self._service = self._service, None
        if service is not None:
            service.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _is_part(listing: Listing, path: str) -> bool:
    return listing.spec.origin == path or listing.spec.origin.startswith(path.rstrip("/") + "/")
