"""Builds the request to the helper for one command: its sandbox, its limits, and its working directory."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import Any, Final

from haft.contracts import PROCESS_LIMITS, Command, Confinement, Limits, StandIns
from haft.sandbox.grant_resolver import OWN_CODE, OWN_TO_EACH
from haft.sandbox.identities import identity
from haft.sandbox.protected import protected_names
from haft.sandbox.site import Site
from haft.sandbox.toolchains import is_below

OWN_PLACES: Final = tuple(
    dict.fromkeys(
        os.path.realpath(path) for path in (sys.prefix, sys.base_prefix, os.path.dirname(sys.executable), OWN_CODE)
    )
)
"""The directories of haft and of its Python. If they are inside the workspace, no call may write there."""
JUDGED_BY_CONTENT: Final = frozenset({".gitmodules", "commondir", "config", "config.worktree", "gitdir"})
"""Git writes these files in everyday work, but some content of them is dangerous. So haft checks their content when
the call has ended, instead of making them read-only."""
MAX_FILES: Final = 1_000_000
"""The most files in the `/tmp` of a thread, if the number of files that a call may change has no limit."""


class HelperRequests:
    """Builds requests for the current state of one workspace."""

    def __init__(
        self, site: Site, workspace: str, limits: Limits, scratch_bytes: int, stand_ins: StandIns | None = None
    ) -> None:
        self._site = site
        self._workspace = workspace
        self._limits = limits
        self._scratch_bytes = scratch_bytes
        self._only = None if stand_ins is None else stand_ins.only
        self.work: str | None = None
        """The name of the overlay's work directory of the last command. The kernel fills this directory when it mounts
        the overlay, and nobody else can write there."""

    def kind(self, confinement: Confinement, command: Command) -> Mapping[str, Any]:
        """The kind of sandbox that a command needs: whether it has network, and which extra paths the call sees. The
        helper can prepare a sandbox of the same kind before the next call."""
        site = self._site
        which = {path: [device, inode] for path, device, inode in (*confinement.found, *confinement.identities)}
        shown = [*confinement.path, *(os.path.realpath(path) for path in command.readable)]
        extra: list[list[Any]] = [
            [path, path, False, which.get(path) or list(identity(path))]
            for path in dict.fromkeys((*confinement.readable, *shown))
            if self._is_unseen(path, confinement)
        ]
        # If a path is a link, the call also needs the link: programs are started, and find their libraries, by its
        # name.
        links = [
            [path, real]
            for path in dict.fromkeys(map(os.path.normpath, command.readable))
            if (real := os.path.realpath(path)) != path and self._is_unseen(path, confinement)
        ]
        granted = self._granted_to(confinement)
        extra += [[path, path, True, which[path]] for path in granted if not is_below(path, (site.workspace,))]
        extra += [[path, path, True, list(identity(path))] for path in map(os.path.realpath, command.keeps)]
        extra += [[each.source, each.target, each.is_writable, list(identity(each.source))] for each in command.mounts]
        network = "hosts" if confinement.hosts else "asks" if confinement.asks else confinement.network is True
        kind: dict[str, Any] = {"network": network, "unasked": confinement.unasked, "extra": extra, "links": links}
        if sockets := [each.target for each in command.mounts if each.has_socket]:
            kind["sockets"] = sockets
        return {**kind, "scoped": True} if confinement.layer is not None and confinement.unasked else kind

    def _is_unseen(self, path: str, confinement: Confinement) -> bool:
        """Whether the call sees the path only if the helper mounts the path for this call alone."""
        site = self._site
        if confinement.unasked:
            return path != "/" and (is_below(path, (site.state_home,)) or not site.is_in_view(path))
        known = (site.workspace, *(target for _source, target in site.show))
        return is_below(path, (*site.hidden, site.state_home)) and not is_below(path, known)

    def _is_as_on_host(self, path: str, confinement: Confinement) -> bool:
        """Whether the call finds at that path the same file as a process outside the sandbox."""
        return not is_below(path, OWN_TO_EACH) and not self._is_unseen(path, confinement)

    def _granted_to(self, confinement: Confinement) -> tuple[str, ...]:
        """The paths that the call may write, apart from the whole workspace."""
        return confinement.writable[1:] if confinement.writable[:1] == (self._site.workspace,) else confinement.writable

    def in_sandbox(
        self, confinement: Confinement, command: Command, directory: int, kind: Mapping[str, Any] | None = None
    ) -> Mapping[str, Any]:
        site = self._site
        here = os.fstat(directory)
        own = [os.path.relpath(path, site.workspace) for path in OWN_PLACES if is_below(path, (site.workspace,))]
        inside = [path for path in self._granted_to(confinement) if is_below(path, (site.workspace,))]
        is_whole = confinement.profile == "workspace"
        # A process that outlives its calls may write only the granted parts of the workspace.
        opened = inside if confinement.session and site.is_writable and not is_whole else []
        layer = None
        if confinement.layer is not None:
            self.work = None if confinement.layer.is_readonly else f"work-{os.urandom(8).hex()}"
            layer = {
                "name": confinement.layer.name,
                "options": confinement.layer.options,
                "upper": confinement.layer.upper,
                "lowers": list(confinement.layer.lowers),
                "work": self.work,
            }
        kind = self.kind(confinement, command) if kind is None else kind
        stays = confinement.session and layer is not None
        if stays:
            kind = {**kind, "warm": True}
        return {
            "session": stays,
            "kind": kind,
            "same": self._unbound_identities(confinement, kind),
            "sandbox": {
                "profile": "workspace" if opened else confinement.profile,
                "network": confinement.network is True,
                "writable": site.is_writable and is_whole,
                "opened": opened,
                "protected": self._read_only_names(confinement, own) if is_whole or opened else [],
                "layer": layer,
                "spared": inside,
                "scratch": self._scratch(confinement),
            },
            "only": self._only,
            "limits": process_limits(self._limits),
            "calls": self._limits.max_concurrent,
            "directory": os.path.normpath(os.path.join(site.workspace, command.cwd)),
            "identity": [here.st_dev, here.st_ino],
            "root": list(confinement.root),
        }

    def _unbound_identities(self, confinement: Confinement, kind: Mapping[str, Any]) -> list[list[Any]]:
        """The identities of the paths that the call sees although the helper does not mount them for this call alone.
        The helper checks these identities before the call starts. The identities of other paths are checked when the
        helper mounts those paths."""
        bound = [source for source, *_rest in kind["extra"]]
        return [
            [path, device, inode]
            for path, device, inode in (*confinement.identities, *confinement.found)
            if inode and path not in bound and (is_below(path, bound) or self._is_as_on_host(path, confinement))
        ]

    def _scratch(self, confinement: Confinement) -> Mapping[str, Any] | None:
        """The name and limits of the thread's `/tmp`, for a call that sees it; None if the call does not. The limit of
        bytes is the same as that of a `/tmp` in memory."""
        if confinement.scratch is None:
            return None
        files = self._limits.max_changed_files or MAX_FILES
        return {"name": confinement.scratch, "files": files, "bytes": self._scratch_bytes}

    def _read_only_names(self, confinement: Confinement, own: list[str]) -> list[str]:
        """The names in the workspace that are read-only while the call runs. If the call runs in a layer, haft checks
        the call's changes before they reach the workspace, so the call may write the files in `JUDGED_BY_CONTENT`."""
        names = protected_names(self._site.workspace)
        if confinement.layer is not None:
            names = [name for name in names if name.rsplit("/", 1)[-1] not in JUDGED_BY_CONTENT]
            fresh = [
                os.path.relpath(path, self._site.workspace)
                for path in confinement.writable
                if not os.path.lexists(path)
            ]
            # A read-only directory would refuse a new file that was granted. The other changes in that directory are
            # checked when the call has ended.
            names = [name for name in names if not any(path.startswith(f"{name}/") for path in fresh)]
        return [*names, *own]

    def without_sandbox(self, confinement: Confinement, command: Command, directory: int) -> Mapping[str, Any]:
        second = None
        if "landlock" in confinement.layers:
            places = [*confinement.writable, *command.keeps, "/dev", "/tmp", "/var/tmp", "/dev/shm"]  # noqa: S108  the shared ones
            second = {"places": places, "network": bool(confinement.network), "unasked": confinement.unasked}
        return {
            "sandbox": second,
            "limits": process_limits(self._limits),
            "calls": self._limits.max_concurrent,
            "workspace": self._workspace,
        }


def process_limits(limits: Limits) -> dict[str, Any]:
    """The limits that concern processes, by name."""
    return {name: getattr(limits, name) for name in PROCESS_LIMITS}
