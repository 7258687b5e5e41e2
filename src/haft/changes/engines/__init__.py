"""The engines: how haft finds out which files one call changed. Each engine produces a list of paths with their states
before and after the call. The module of an engine is imported at the first call that uses the engine."""

from typing import TYPE_CHECKING

from haft.lazy import face

if TYPE_CHECKING:
    from haft.changes.engines.background import BackgroundTransaction
    from haft.changes.engines.declared import DeclaredTransaction
    from haft.changes.engines.overlay import OverlayTransaction, layer_options
    from haft.changes.engines.session import SessionCalls, SessionEnded
    from haft.changes.engines.snapshot import SnapshotTransaction, snapshots_of
else:
    __getattr__ = face(
        __name__,
        {
            "background": "BackgroundTransaction",
            "declared": "DeclaredTransaction",
            "overlay": "OverlayTransaction layer_options",
            "session": "SessionCalls SessionEnded",
            "snapshot": "SnapshotTransaction snapshots_of",
        },
    )

__all__ = [
    "BackgroundTransaction",
    "DeclaredTransaction",
    "OverlayTransaction",
    "SessionCalls",
    "SessionEnded",
    "SnapshotTransaction",
    "layer_options",
    "snapshots_of",
]
