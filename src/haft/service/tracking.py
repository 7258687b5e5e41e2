"""Tracks the changes of a host's calls. The modules for this are loaded when the first call needs them, so that hosts
whose calls only read never load them."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from haft.config import Config
from haft.sandbox import Sandbox, sweep
from haft.storage import Lease, StateHome

if TYPE_CHECKING:
    from haft.changes import EngineSelector
    from haft.service.housekeeping import Housekeeping


class Tracking:
    """The change sets of a host's workspace, and the engines that make them."""

    def __init__(
        self,
        home: StateHome,
        workspace: str,
        lease: Lease,
        config: Config,
        closed: Callable[[], Iterable[str]],
        sandbox: Callable[[], Sandbox],
    ) -> None:
        """`closed` returns paths in the workspace that calls may not change. `sandbox` returns the sandbox, which
        mounts the layers."""
        self._home = home
        self._workspace = workspace
        self._lease = lease
        self._config = config
        self._closed = closed
        self._sandbox = sandbox
        self._making = threading.Lock()
        self._made: tuple[EngineSelector, Housekeeping] | None = None

    def engine_selector(self) -> EngineSelector:
        """The selector that chooses an engine for each call."""
        with self._making:
            if self._made is None:
                self._made = self._make()
            return self._made[0]

    def _make(self) -> tuple[EngineSelector, Housekeeping]:
        from haft.changes import EngineSelector
        from haft.service.changes import transactions_of
        from haft.service.housekeeping import Housekeeping, bounds_of

        home, config = self._home, self._config
        transactions = transactions_of(
            home,
            self._workspace,
            self._lease.host,
            config.limits,
            lease=self._lease,
            synced=config.durability == "full",
            flush_seconds=config.flush_seconds,
            closed=self._closed,
        )
        housekeeping = Housekeeping(home, bounds_of(config, os.environ), transactions)
        return EngineSelector(transactions, config.changes_engine, config.store_bytes, self._sandbox()), housekeeping

    def place_of_layers(self) -> str | None:
        """The directory in which the layers of calls lie; None if there are no layers."""
        return self.engine_selector().place_of_layers()

    def sweep_scratch(self) -> None:
        """Remove the `/tmp` directories of threads that no call has used for long, unless a host has done this
        recently."""
        scratch = self._sandbox().scratch
        if scratch is not None and scratch.is_sweep_due():
            self.engine_selector().transactions.run_later(lambda: sweep(scratch.root))

    def stop(self) -> None:
        """Make the pruning of the store end within a few seconds, because the host closes. Returns at once."""
        if self._made is not None:
            self._made[1].stop()

    def close(self) -> None:
        """Finish the work that runs in the background, and close the change sets."""
        if self._made is not None:
            self._made[0].transactions.close()
