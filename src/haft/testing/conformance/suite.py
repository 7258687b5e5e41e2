"""Runs all checks for one source."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Callable
from typing import Any, Final

from haft.testing.conformance import call_checks, change_checks, listing_checks
from haft.testing.conformance.call_checks import CallCheck
from haft.testing.conformance.case import SourceCase, Verdict
from haft.testing.conformance.listing_checks import ListingCheck, Problems
from haft.testing.conformance.world import CaseWorld, new_world

LISTING: Final[tuple[ListingCheck, ...]] = (
    listing_checks.starts_nothing,
    listing_checks.names_absolute_places,
    listing_checks.lists_the_tool,
    listing_checks.has_a_whole_spec,
    listing_checks.remembers,
    listing_checks.stays_the_same,
    listing_checks.changes_nothing,
    listing_checks.loads_by_path,
    listing_checks.checks_its_own,
    change_checks.closes,
    listing_checks.recognizes_its_own,
)
CHANGING: Final[tuple[ListingCheck, ...]] = (
    change_checks.notices_changes,
    change_checks.lists_the_broken,
    change_checks.forgets_the_removed,
)
CALLING: Final[tuple[CallCheck, ...]] = (
    call_checks.can_be_called,
    call_checks.refuses_wrong_arguments,
    call_checks.reports_failures,
    call_checks.can_be_cancelled,
)
_NEEDED: Final = {
    "recognizes-its-own": "path",
    "loads-by-path": "path",
    "checks-its-own": "path",
    "notices-changes": "change",
    "lists-the-broken": "spoil",
    "forgets-the-removed": "remove",
    "refuses-wrong-arguments": "wrong_arguments",
    "reports-failures": "failing_arguments",
    "can-be-cancelled": "slow_arguments",
}
"""The part of a case without which a check cannot run."""


def name_of(check: Callable[..., Any]) -> str:
    """The name of a check."""
    return check.__name__.replace("_", "-")


_ALL: Final[tuple[Callable[..., Any], ...]] = (*LISTING, *CHANGING, *CALLING)
CHECKS: Final = {name_of(each): " ".join((each.__doc__ or "").split()) for each in _ALL}
"""All checks in their order: the name, and what it demands."""


async def check_source(case: SourceCase) -> list[Verdict]:
    """Check a source with its case. No check raises an error: whatever a source raises is a problem."""
    verdicts = []
    with new_world(case) as world:
        verdicts += [await _listing(world, each) for each in LISTING]
    for check in CHANGING:
        with new_world(case) as world:
            verdicts.append(await _listing(world, check))
    with new_world(case) as world:
        verdicts += [each async for each in _calling(world)]
    return verdicts


async def _listing(world: CaseWorld, check: ListingCheck) -> Verdict:
    if (skipped := _why_skipped(world.case, check)) is not None:
        return skipped
    problems: list[str] = []
    async with _caught(problems), world.listing() as opened:
        problems += [each async for each in check(opened)]
    return _verdict(check, problems)


async def _calling(world: CaseWorld) -> AsyncIterator[Verdict]:
    found: list[Verdict] = []
    opening: list[str] = []
    async with _caught(opening), world.service() as service:
        for check in CALLING:
            if (skipped := _why_skipped(world.case, check)) is not None:
                found.append(skipped)
                continue
            problems: list[str] = []
            async with _caught(problems):
                problems += [each async for each in check(service, world.case)]
            found.append(_verdict(check, problems))
    for each in found:
        yield each
    for check in CALLING[len(found) :] or CALLING[:1] if opening else ():
        yield _verdict(check, opening)


def _why_skipped(case: SourceCase, check: Callable[..., Problems]) -> Verdict | None:
    part = _NEEDED.get(name_of(check))
    is_missing = part is not None and getattr(case, part) is None
    if name_of(check) == "loads-by-path" and not case.loads:
        return Verdict("loads-by-path", CHECKS["loads-by-path"], skipped="tools of this source have no path to call")
    if not is_missing:
        return None
    return Verdict(name_of(check), CHECKS[name_of(check)], skipped=f"the case has no `{part}`")


def _verdict(check: Callable[..., Problems], problems: list[str]) -> Verdict:
    return Verdict(name_of(check), CHECKS[name_of(check)], tuple(dict.fromkeys(problems)))


@contextlib.asynccontextmanager
async def _caught(problems: list[str]) -> AsyncIterator[None]:
    try:
        yield
    except Exception as error:
        problems.append(f"it raised {type(error).__name__}: {error}")
