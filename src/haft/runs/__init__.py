"""Runs on disk: states, events, whole output, cancel requests, recovery.

The pipeline writes through `RunWriter` and `KeptOutput`; surfaces read through `History`. This package does not know
what a tool is.
"""

from typing import TYPE_CHECKING

from haft.lazy import face

if TYPE_CHECKING:
    from haft.runs.entry import Entry, RunRecord, entry_of
    from haft.runs.follower import follow
    from haft.runs.history import History
    from haft.runs.journal import Journal, journal_paths
    from haft.runs.kept_output import Frame, KeptOutput, KeptReader
    from haft.runs.old_outputs import Outputs, outputs_in, remove_output_of, remove_outputs
    from haft.runs.paused_runs import Asked, asked_by, call_facts, call_from
    from haft.runs.recovery import recover
    from haft.runs.run_writer import RunWriter
    from haft.storage import Filter
else:
    __getattr__ = face(
        __name__,
        {
            "entry": "Entry RunRecord entry_of",
            "follower": "follow",
            "history": "History",
            "journal": "Journal journal_paths",
            "kept_output": "Frame KeptOutput KeptReader",
            "old_outputs": "Outputs outputs_in remove_output_of remove_outputs",
            "paused_runs": "Asked asked_by call_facts call_from",
            "recovery": "recover",
            "run_writer": "RunWriter",
            "haft.storage": "Filter",
        },
    )
