"""What files said of themselves when they were asked: kept by their identity, and asked for many at once.

Failures are kept too, so that a file is asked once, until something changes that it may depend on. Not kept is what the
machine is to blame for, and what had too little time because many were asked before it. Importing this starts nothing
and is cheap.
"""

from __future__ import annotations

import os
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any, Final, Protocol, TypeVar

from haft.contracts import NO_GRANTS, AskingLauncher, Definitions, Grants, Provenance
from haft.sources.port import ProgressCallback
from haft.values import dataclass

AT_ONCE: Final = 48
FAIR_SECONDS: Final = 2.0
"""Who had less time than this, because many were asked, is asked again next time."""
LEAST_SECONDS: Final = 0.5
NOT_DESCRIBED: Final = "it was not asked yet what it is: list the tools again"
NO_SANDBOX: Final = (
    "it was not asked what it is, for nothing on this machine would confine it: look at it, and name it by its path"
)

CacheEntry = dict[str, Any]
"""What is kept of one file: its identity, and its description or its problem.

`passing` where it is not to be kept; `needs` names a program that was missing when it was asked; of a failure,
`around` is what it may depend on, as it was then, and `was` what the file called itself before."""


class Describable(Protocol):
    """A file that can be asked."""

    @property
    def key(self) -> str:
        """By which it is known: its path, where it has one to itself."""
        ...

    @property
    def group(self) -> str:
        """What it is kept with."""
        ...

    @property
    def identity(self) -> str:
        """Another one when the file is another, or was changed."""
        ...


A = TypeVar("A", bound=Describable)

Ask = Callable[[A, AskingLauncher, float], Awaitable[CacheEntry]]


@dataclass(frozen=True, slots=True)
class DescribedFile:
    """A file that is asked what it is, and the name under which a rule may speak of it."""

    said: str | None
    """What it called its tool last; None where it never did."""
    otherwise: str
    """By which it is listed before it does."""
    kind: str
    path: str
    provenance: Provenance
    is_taken: Callable[[str], bool]
    """Whether a tool of a name is another file, which comes before this one."""


GrantsFor = Callable[[DescribedFile], Grants]
"""What a rule lets a file have when it is asked."""


def no_grants(_claim: DescribedFile) -> Grants:
    """Where no rule says anything."""
    return NO_GRANTS


class DescriptionCache:
    """The answers of files of one kind."""

    def __init__(
        self,
        definitions: Definitions,
        around: Callable[[Any], str] = lambda _file: "",
        granted: Callable[[Any, Mapping[str, Any]], Grants] = lambda _file, _known: NO_GRANTS,
    ) -> None:
        """`around` says of a file what it may depend on: another text when that changed. `granted` says what it may
        have when it is asked, by what it said before."""
        self._around = around
        self._definitions = definitions
        self._granted = granted
        self._known: dict[str, dict[str, CacheEntry]] = {}
        """By group, then by key."""

    def of(self, file: Describable) -> Mapping[str, Any]:
        """What a file said last, whether it is still the same file or not; nothing where it was never asked."""
        if file.group not in self._known:
            kept = self._definitions.load(file.group)
            self._known[file.group] = {path: one for path, one in kept.items() if isinstance(one, dict)}
        return self._known[file.group].get(file.key, {})

    def is_outdated(self, file: Describable) -> bool:
        """Whether a file must be asked, or asked again."""
        known = self.of(file)
        if known.get("identity") != file.identity or known.get("passing"):
            return True
        told = _told(self._granted(file, known))
        if told != known.get("granted") and (told is None or told != known.get("refused")):
            return True
        if "problem" not in known:
            return False
        needs = known.get("needs")
        return (needs is not None and is_found(needs)) or known.get("around") != self._depended_on(file)

    def _depended_on(self, file: Describable) -> str:
        return f"{self._definitions.context}\n{self._around(file)}"

    def doubt(self, file: Describable) -> None:
        """Ask a file again that could not be understood."""
        known = self.of(file)
        if "problem" in known:
            self._known[file.group][file.key] = {**known, "passing": True}

    def forget_failure(self, file: Describable) -> None:
        """Ask a file again that could not be understood, whoever looks next."""
        if "problem" in self.of(file):
            del self._known[file.group][file.key]
            self._save(file.group)

    def _save(self, group: str) -> None:
        kept = {key: one for key, one in self._known[group].items() if not one.get("passing")}
        self._definitions.save(group, kept)

    async def ask_one(
        self, file: A, ask: Ask[A], launcher: AskingLauncher, seconds: float, besides: Grants = NO_GRANTS
    ) -> CacheEntry:
        """Ask one file, with what a rule grants to the tool that it is taken for; where it then says that it is another
        one, that answer counts for nothing, and it is asked without. `besides` is what it has anyway."""
        grants = self._granted(file, self.of(file))
        without = launcher if besides == NO_GRANTS else launcher.granting(besides)
        if grants == NO_GRANTS:
            return await ask(file, without, seconds)
        known = await ask(file, launcher.granting(besides | grants), seconds)
        if "problem" in known or self._granted(file, known) == grants:
            return {**known, "granted": _told(grants)}
        return {**await ask(file, without, seconds), "refused": _told(grants)}

    async def ask(
        self, wanted: Sequence[A], every: Iterable[A], ask: Ask[A], launcher: AskingLauncher, told: ProgressCallback
    ) -> None:
        """Ask some of every file that there is, and keep what they say."""
        around = {file.key: self._depended_on(file) for file in wanted}

        async def granted(file: A, launcher: AskingLauncher, seconds: float) -> CacheEntry:
            return await self.ask_one(file, ask, launcher, seconds)

        answers = await ask_all(wanted, granted, launcher, told)
        for file in wanted:
            before = self.of(file)
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


def _told(grants: Grants) -> dict[str, Any] | None:
    """By which it is known whether a file would be given the same again. Names, no values."""
    if grants == NO_GRANTS:
        return None
    return {"network": grants.network, "env": list(grants.env), "read": list(grants.read)}


async def ask_all(
    wanted: Sequence[A], ask: Ask[A], launcher: AskingLauncher, told: ProgressCallback = lambda _done, _all: None
) -> dict[str, CacheEntry]:
    """What each file says, by its key: many at once, within one deadline. One without an entry was not asked."""
    import asyncio

    from haft.sources.brief_run import DESCRIBE_SECONDS

    slots = asyncio.Semaphore(AT_ONCE)
    until = time.monotonic() + DESCRIBE_SECONDS
    answers: dict[str, CacheEntry] = {}

    async def one(file: A) -> None:
        async with slots:
            seconds = until - time.monotonic()
            if seconds >= LEAST_SECONDS:
                answers[file.key] = await ask(file, launcher, seconds)
        told(len(answers), len(wanted))

    async with asyncio.TaskGroup() as group:
        for file in wanted:
            group.create_task(one(file))
    return answers


def is_found(program: str) -> bool:
    """Whether a program is on this machine."""
    if os.sep in program:
        return os.path.exists(program)
    places = os.environ.get("PATH", os.defpath).split(os.pathsep)
    return any(os.access(os.path.join(place, program), os.X_OK) for place in places if place)
