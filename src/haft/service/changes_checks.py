"""The checks of `haft doctor` about changes: the store, held changes, and how changes in this workspace are tracked.

If there is no state home yet, the checks do not create it. They use a temporary one, on the disk where the real one
would be.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import tempfile
import time
from collections.abc import Iterator, Mapping
from typing import Final

from haft.changes import (
    Area,
    EngineSelector,
    Usage,
    filesystem,
    format_bytes,
    mounts_inside,
    remove,
    workspace_key,
)
from haft.config import Config, check_workspace, load_config
from haft.contracts import NO_GRANTS
from haft.files import Root
from haft.sandbox import Mode, Sandbox
from haft.service.changes import transactions_of
from haft.service.checks import Check
from haft.service.housekeeping import bounds_of
from haft.service.state_reader import has_state
from haft.service.store import DAY, StoreFacade
from haft.storage import AnswerFiles, StateHome, open_stores

PATIENCE_SECONDS: Final = 10.0
MAX_CHECKED_ENTRIES: Final = 20_000


def store_checks(home: StateHome, env: Mapping[str, str]) -> list[Check]:
    """Checks how much is stored, and which changes wait for a person."""
    if not has_state(home):
        return [Check("store", "ok", "nothing is stored yet")]
    store = StoreFacade(home, bounds_of(load_config(None, env), env))
    try:
        usage = store.measure()
    finally:
        store.close()
    return [_used(usage), _held(usage)]


def _used(usage: Usage) -> Check:
    runs = "1 run" if usage.undoable == 1 else f"{usage.undoable:_} runs"
    words = f"{format_bytes(usage.used)} of {format_bytes(usage.budget)} used; {runs} can be undone"
    if usage.used > usage.budget:
        hint = "`haft store prune` frees disk space, and lists the runs that can then no longer be undone"
        return Check("store", "warn", words, f"{hint}; or raise `changes.store_bytes`")
    return Check("store", "ok", words)


def _held(usage: Usage) -> Check:
    if not usage.held:
        return Check("held changes", "ok", "no changes are held")
    named = [f"{each.run} ({(time.time() - each.since) / DAY:.0f} days)" for each in usage.held]
    more = f" and {len(named) - 3} more" if len(named) > 3 else ""
    first = usage.held[0].run
    return Check(
        "held changes",
        "warn",
        f"not in the workspace until a person decides: {', '.join(named[:3])}{more}",
        f"`haft diff {first}` shows them; then `haft changes apply {first}` or `haft changes drop {first}`",
    )


def cache_check(home: StateHome, workspace: str | None, env: Mapping[str, str]) -> Check:
    """How many answers are kept, how often calls got one, and why others did not."""
    values = load_config(workspace, env, trust_home=home.path).values
    files = AnswerFiles(home.answers, values["cache.entries"], values["cache.bytes"], values["cache.seconds"])
    if not (files.entries and files.bytes and values["cache.seconds"]):
        return Check("cache", "ok", "off: `cache.entries`, `cache.bytes` or `cache.seconds` is 0")
    counts, (entries, size) = files.counts(), files.listed()
    hits = counts.pop("hits", 0)
    words = f"{entries:_} answers kept, {format_bytes(size)}; {hits:_} hits, {sum(counts.values()):_} misses"
    if counts:
        why, count = max(counts.items(), key=lambda each: each[1])
        words += f" (most often, {count:_} times: {why.removeprefix('missed: ')})"
    return Check("cache", "ok", words)


def coverage_checks(home: StateHome, workspace: str | None, env: Mapping[str, str]) -> list[Check]:
    """Checks which engine tracks changes in this workspace, and what could make calls fail."""
    if workspace is None:
        return [Check("change tracking", "ok", "no workspace here")]
    config = load_config(workspace, env, trust_home=home.path)
    if config.changes_engine == "off":
        hint = "set it to `auto`"
        return [Check("change tracking", "warn", "`changes.engine` is `off`: nothing can be undone", hint)]
    workspace = check_workspace(workspace, home.path)
    with _trial_home(home, workspace) as place:
        try:
            area, why = asyncio.run(_tried(place, workspace, config, env))
        except TimeoutError:
            return [Check("change tracking", "broken", f"a trial did not end within {PATIENCE_SECONDS:g} s")]
        how, kind = "moved" if area.can_move else "copied", filesystem(area.path) or "filesystem unknown"
        where = f"replaced files are {how} to {_shown(area, home, place)} ({kind})"
    inside = mounts_inside(workspace)
    if why is None and inside:
        why = f"other filesystems are mounted in the workspace ({', '.join(inside[:3])})"
    if why is None and config.changes_engine == "snapshot":
        return [Check("change tracking", "ok", f"by snapshots, as `changes.engine` says; {where}")]
    if why is not None:
        hint = "every call with processes then scans the whole workspace, before and after"
        return [
            Check("change tracking", "warn", f"by snapshots, because layers are not possible: {why}; {where}", hint)
        ]
    return [Check("change tracking", "ok", f"calls work in a layer above the workspace; {where}"), *_owners(workspace)]


def _shown(area: Area, home: StateHome, place: StateHome) -> str:
    return area.path.replace(place.path, home.path, 1) if area.path.startswith(place.path) else area.path


@contextlib.contextmanager
def _trial_home(home: StateHome, workspace: str) -> Iterator[StateHome]:
    """A context manager that yields the state home if it exists, else a temporary state home, which is removed at the
    end."""
    if os.path.isdir(home.hosts):
        home.prepare()
        yield home
        return
    above = home.path
    while not os.path.isdir(above):
        above = os.path.dirname(above)
    beside = os.path.join(os.path.dirname(workspace), f".haft-{os.geteuid()}-{workspace_key(workspace)}")
    known = os.path.lexists(beside)
    path = tempfile.mkdtemp(prefix=".haft-doctor-", dir=above if os.access(above, os.W_OK | os.X_OK) else None)
    try:
        made = StateHome(path)
        made.prepare()
        yield made
    finally:
        remove(path)
        if not known:
            remove(beside)


async def _tried(home: StateHome, workspace: str, config: Config, env: Mapping[str, str]) -> tuple[Area, str | None]:
    """The area of the workspace, and why layers are not possible there; None instead of the reason if layers are
    possible."""
    lease = open_stores(home).leases().take()
    root = Root(workspace)
    transactions = transactions_of(home, root.root, lease.host, config.limits, lease=lease)
    # The mode `required` would raise here if there is no sandbox; another check reports that.
    mode: Mode = "off" if config.sandbox_mode == "off" else "auto"
    sandbox = Sandbox(
        workspace,
        home.path,
        env,
        root.open_directory,
        config.limits,
        mode,
        NO_GRANTS,
        lambda: engine_selector.place_of_layers(),
    )
    try:
        engine_selector = EngineSelector(transactions, "auto", config.store_bytes, sandbox)
        async with asyncio.timeout(PATIENCE_SECONDS):
            why = None if config.changes_engine == "snapshot" else await engine_selector.why_no_overlay()
        return transactions.area, why
    finally:
        sandbox.close()
        await asyncio.to_thread(transactions.close)
        lease.release(done=True)


def _owners(workspace: str) -> list[Check]:
    """Check whether the workspace has files of other users: only root can change such files in a layer."""
    if os.geteuid() == 0:
        return []
    mine = (os.geteuid(), os.getegid())
    looked = 0
    foreign: list[str] = []
    for path, status in _entries(workspace):
        looked += 1
        if (status.st_uid, status.st_gid) != mine:
            foreign.append(path)
    beyond = f" of the first {looked:_} entries" if looked >= MAX_CHECKED_ENTRIES else ""
    if not foreign:
        return [Check("owners", "ok", f"everything{beyond} in the workspace belongs to this user and group")]
    return [
        Check(
            "owners",
            "warn",
            f"{len(foreign)}{beyond or ' entries'} in the workspace belong to another user or group, such as"
            f" {foreign[0]}: a call that changes one fails with EOVERFLOW (Value too large for defined data type)",
            'make them yours (`chown`), or set `changes.engine = "snapshot"`',
        )
    ]


def _entries(directory: str) -> Iterator[tuple[str, os.stat_result]]:
    waiting, left = [directory], MAX_CHECKED_ENTRIES
    while waiting:
        with contextlib.suppress(OSError), os.scandir(waiting.pop()) as found:
            for entry in found:
                if not left:
                    return
                left -= 1
                with contextlib.suppress(OSError):
                    yield entry.path, entry.stat(follow_symlinks=False)
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(entry.path)
