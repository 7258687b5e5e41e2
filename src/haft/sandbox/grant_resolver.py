"""Resolves the paths that a grant names, and refuses those that nobody can grant."""

from __future__ import annotations

import glob
import itertools
import os
from collections.abc import Callable
from typing import Final

from haft.contracts import BadUsage
from haft.sandbox.site import Site
from haft.sandbox.toolchains import is_below

OWN_TO_EACH: Final = ("/dev", "/proc", "/sys")
MAX_GRANTED: Final = 100
OWN_CODE: Final = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


class GrantResolver:
    """Resolves grants for one workspace."""

    def __init__(self, site: Callable[[], Site], state_home: str) -> None:
        self._site = site
        self._state_home = state_home

    def paths(self, patterns: tuple[str, ...], kind: str) -> list[str]:
        """The paths that a grant names. Relative paths are in the workspace; `/**` at the end means everything below. A
        path with a symbolic link in it is refused: a call could have put the link there."""
        found: list[str] = []
        for pattern in patterns:
            matches = self._matches(pattern)
            if not matches:
                raise BadUsage(f"`{pattern}` cannot be granted: it names nothing")
            for path in matches:
                try:
                    real = os.path.realpath(path)
                except OSError as error:
                    raise BadUsage(f"`{pattern}` cannot be granted: {error.strerror}") from error
                if real != path:
                    raise BadUsage(
                        f"`{pattern}` cannot be granted: `{path}` is a link, or is behind one, and leads to {real}",
                        hint=f"a call may have put the link there; if you do mean its target, grant {real}",
                    )
                self._check_granted(pattern, real, kind)
                found.append(real)
                if len(found) > MAX_GRANTED:
                    raise BadUsage(f"`{pattern}` cannot be granted: it names more than {MAX_GRANTED} paths")
        return list(dict.fromkeys(found))

    def of_session(self, patterns: tuple[str, ...]) -> tuple[bool, tuple[str, ...]]:
        """For a program that outlives its calls: whether it may write the whole workspace, and which other paths it may
        write. Each path must exist when the program starts: the program sees the workspace read-only, so it cannot make
        the path later."""
        workspace = self._site().workspace
        rest = tuple(each for each in patterns if self._matches(each) != [workspace])
        everywhere = len(rest) < len(patterns)
        for path in () if everywhere else self.paths(rest, "write"):
            if not os.path.exists(path):
                raise BadUsage(
                    f"`{path}` cannot be granted to a process that outlives its calls: it does not exist",
                    hint="make it first, or grant its directory",
                )
        return everywhere, rest

    def _matches(self, pattern: str) -> list[str]:
        words = "." if pattern == "**" else pattern.removesuffix("/**")
        if words.startswith("~/") or words == "~":
            base, words = os.path.realpath(self._site().home), words[2:] or "."
        elif os.path.isabs(words):
            base, words = "/", words.lstrip("/") or "."
        else:
            base = self._site().workspace
        if not glob.has_magic(words):
            return [os.path.normpath(os.path.join(base, words))]
        some = itertools.islice(glob.iglob(words, root_dir=base, include_hidden=True), MAX_GRANTED + 1)
        return sorted(os.path.normpath(os.path.join(base, found)) for found in some)

    def _check_granted(self, pattern: str, real: str, kind: str) -> None:
        """Raise `BadUsage` for a path that nobody can grant, instead of ignoring it."""
        state_home = os.path.realpath(self._state_home)
        if is_below(state_home, (real,)) or is_below(real, (state_home,)):
            raise BadUsage(
                f"`{pattern}` cannot be granted: haft keeps its own state in {state_home}",
                hint="grant a directory beside it, or move the state with HAFT_HOME",
            )
        if is_below(real, self._site().neighbours):
            raise BadUsage(f"`{pattern}` cannot be granted: it belongs to another workspace of this server")
        if is_below(real, OWN_TO_EACH):
            raise BadUsage(f"`{pattern}` cannot be granted: each call has its own {real[:5].rstrip('/')}")
        if is_below(real, self._site().mask):
            raise BadUsage(f"`{pattern}` cannot be granted: it is a secret of the machine, which haft hides from root")
        if kind == "write" and (is_below(OWN_CODE, (real,)) or is_below(real, (OWN_CODE,))):
            raise BadUsage(
                f"`{pattern}` cannot be granted for writing: haft's own code is in {OWN_CODE}",
                hint="install into an environment in the workspace",
            )
        if kind == "path" and (not os.path.isdir(real) or os.pathsep in real):
            raise BadUsage(f"`{pattern}` cannot be put on PATH: it is no directory, or its name has a colon")
        if not os.path.exists(real) and not (kind == "write" and is_below(real, (self._site().workspace,))):
            hint = "make it first, or grant its directory" if kind == "write" else None
            raise BadUsage(f"`{pattern}` cannot be granted: it does not exist", hint=hint)
