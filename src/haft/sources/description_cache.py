"""Caches the descriptions that tool files gave of themselves. An entry is valid for one identity of its file.

haft describes a file once: it runs the file and keeps the description, or the failure. haft describes the file again
when the file changes, or, after a failure, when something changes that the file may depend on. A failure is not cached
if the machine caused it, or if the file had too little time because many files were described at once. Importing this
module is cheap and starts nothing.
"""

from __future__ import annotations

import os
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any, Final, Protocol, TypeVar

from haft.contracts import NO_GRANTS, Definitions, DescribeLauncher, Grants, Provenance, network_json
from haft.sources.port import ProgressCallback
from haft.values import dataclass

MAX_AT_ONCE: Final = 48
FAIR_SECONDS: Final = 2.0
"""If a description fails and had less time than this, because many files were described at once, the file is described
again next time."""
LEAST_SECONDS: Final = 0.5
NOT_DESCRIBED: Final = "it is not described yet: list the tools again"
NO_SANDBOX: Final = (
    "it is not described, because this machine has no sandbox to run it in: read the file, then call it by its path"
)

CacheEntry = dict[str, Any]
"""What is kept about one file: its identity, and its description or its problem.

`passing` marks an entry that is not saved, so that the file is soon described again. `needs` names a program that was
missing when the file was described. A failure also has `around`, the state of the file's dependencies at that time, and
`was`, the last name that the file gave its tool."""


class Describable(Protocol):
    """A file that haft can describe."""

    @property
    def key(self) -> str:
        """The key of the file's entry in its group: the path of the file, or a longer text if several tools may have
        the same path."""
        ...

    @property
    def group(self) -> str:
        """The name of the group that the file's entry is stored in."""
        ...

    @property
    def identity(self) -> str:
        """A text that changes when the file is replaced or modified."""
        ...


A = TypeVar("A", bound=Describable)

DescribeFile = Callable[[A, DescribeLauncher, float], Awaitable[CacheEntry]]


@dataclass(frozen=True, slots=True)
class DescribedFile:
    """A file that is being described, and the name by which a rule may refer to it."""

    last_name: str | None
    """The name that the file last gave its tool; None if it never gave one."""
    listed_name: str
    """The name that the file is listed by until it gives its tool a name."""
    kind: str
    path: str
    provenance: Provenance
    is_taken: Callable[[str], bool]
    """Whether an earlier file already has a given tool name."""


GrantsFor = Callable[[DescribedFile], Grants]
"""A function that returns what the rules grant a file while it is described."""


def no_grants(_file: DescribedFile) -> Grants:
    """Grant nothing: the default if there are no rules."""
    return NO_GRANTS


class DescriptionCache:
    """The cached descriptions of all files of one format."""

    def __init__(
        self,
        definitions: Definitions,
        around: Callable[[Any], str] = lambda _file: "",
        granted: Callable[[Any, Mapping[str, Any]], Grants] = lambda _file, _known: NO_GRANTS,
    ) -> None:
        """`around` returns a text that changes when something changes that a file may depend on. `granted` returns what
        a file may access while it is described, given its cache entry."""
        self._around = around
        self._definitions = definitions
        self._granted = granted
        self._known: dict[str, dict[str, CacheEntry]] = {}
        """The entries by group, then by the key of the file."""

    def get(self, file: Describable) -> Mapping[str, Any]:
        """The last entry of a file, even if the file has changed since; empty if the file was never described."""
        if file.group not in self._known:
            kept = self._definitions.load(file.group)
            self._known[file.group] = {path: one for path, one in kept.items() if isinstance(one, dict)}
        return self._known[file.group].get(file.key, {})

    def is_outdated(self, file: Describable) -> bool:
        """Whether a file must be described, for the first time or again."""
        known = self.get(file)
        if known.get("identity") != file.identity or known.get("passing"):
            return True
        names = _grant_names(self._granted(file, known))
        if names != known.get("granted") and (names is None or names != known.get("refused")):
            return True
        if "problem" not in known:
            return False
        needs = known.get("needs")
        return (needs is not None and is_found(needs)) or known.get("around") != self._dependencies(file)

    def _dependencies(self, file: Describable) -> str:
        return f"{self._definitions.context}\n{self._around(file)}"

    def retry(self, file: Describable) -> None:
        """Let the next listing describe a file again if its last description failed."""
        known = self.get(file)
        if "problem" in known:
            self._known[file.group][file.key] = {**known, "passing": True}

    def forget_failure(self, file: Describable) -> None:
        """Delete a saved failure, so that the next process that lists tools describes the file again."""
        if "problem" in self.get(file):
            del self._known[file.group][file.key]
            self._save(file.group)

    def _save(self, group: str) -> None:
        kept = {key: one for key, one in self._known[group].items() if not one.get("passing")}
        self._definitions.save(group, kept)

    async def describe_one(
        self, file: A, describe: DescribeFile[A], launcher: DescribeLauncher, seconds: float, extra: Grants = NO_GRANTS
    ) -> CacheEntry:
        """Describe one file with the grants that rules give to its tool. Rules refer to the tool by name, so haft uses
        the name that the file gave last time. If the rules give other grants to the name that the file gives now, haft
        drops this description, and describes the file again without grants of rules. The grants in `extra` apply in
        both cases."""
        grants = self._granted(file, self.get(file))
        without = launcher if extra == NO_GRANTS else launcher.with_grants(extra)
        if grants == NO_GRANTS:
            return await describe(file, without, seconds)
        known = await describe(file, launcher.with_grants(extra | grants), seconds)
        if "problem" in known or self._granted(file, known) == grants:
            return {**known, "granted": _grant_names(grants)}
        return {**await describe(file, without, seconds), "refused": _grant_names(grants)}

    async def describe_many(
        self,
        wanted: Sequence[A],
        every: Iterable[A],
        describe: DescribeFile[A],
        launcher: DescribeLauncher,
        progress: ProgressCallback,
    ) -> None:
        """Describe the files in `wanted` and keep their entries. `every` has all files that exist: entries of other
        files are dropped."""
        around = {file.key: self._dependencies(file) for file in wanted}

        async def granted(file: A, launcher: DescribeLauncher, seconds: float) -> CacheEntry:
            return await self.describe_one(file, describe, launcher, seconds)

        answers = await describe_all(wanted, granted, launcher, progress)
        for file in wanted:
            before = self.get(file)
            self._known[file.group].pop(file.key, None)
            if file.key in answers:
                known = answers[file.key]
                if "problem" in known:
                    known |= {"around": around[file.key], "was": before.get("name", before.get("was"))}
                self._known[file.group][file.key] = known
        present = {file.key for file in every}
        for group in {file.group for file in wanted}:
            self._known[group] = {path: one for path, one in self._known[group].items() if path in present}
            self._save(group)


def _grant_names(grants: Grants) -> dict[str, Any] | None:
    """Grants as they are stored in an entry; None if nothing is granted. Later, haft compares them with the grants that
    the file would get then. Variables are stored by name, without values."""
    if grants == NO_GRANTS:
        return None
    return {"network": network_json(grants.network), "env": list(grants.env), "read": list(grants.read)}


async def describe_all(
    wanted: Sequence[A],
    describe: DescribeFile[A],
    launcher: DescribeLauncher,
    progress: ProgressCallback = lambda _done, _all: None,
) -> dict[str, CacheEntry]:
    """The new entry of each file, by its key. Describes many files at once, within one deadline: a file without an
    entry was not described in time."""
    import asyncio

    from haft.sources.brief_run import DESCRIBE_SECONDS

    slots = asyncio.Semaphore(MAX_AT_ONCE)
    until = time.monotonic() + DESCRIBE_SECONDS
    answers: dict[str, CacheEntry] = {}

    async def one(file: A) -> None:
        async with slots:
            seconds = until - time.monotonic()
            if seconds >= LEAST_SECONDS:
                answers[file.key] = await describe(file, launcher, seconds)
        progress(len(answers), len(wanted))

    async with asyncio.TaskGroup() as group:
        for file in wanted:
            group.create_task(one(file))
    return answers


def is_found(program: str) -> bool:
    """Whether a program exists on this machine."""
    if os.sep in program:
        return os.path.exists(program)
    places = os.environ.get("PATH", os.defpath).split(os.pathsep)
    return any(os.access(os.path.join(place, program), os.X_OK) for place in places if place)
