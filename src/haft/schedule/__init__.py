"""Decides when a call runs. A host has a limited number of slots: a call needs one, and shares it with the calls that
it makes. Calls that write the same paths, or use the same resource, lock each other out, in all processes."""

from typing import TYPE_CHECKING

from haft.lazy import face

if TYPE_CHECKING:
    from haft.schedule.admission import NOBODY, Admission, Caller
    from haft.schedule.locks import Hold, Locks, Wanted
    from haft.schedule.slot import Slot
    from haft.schedule.waiting_line import WaitingLine
else:
    __getattr__ = face(
        __name__,
        {
            "admission": "Admission Caller NOBODY",
            "locks": "Hold Locks Wanted",
            "slot": "Slot",
            "waiting_line": "WaitingLine",
        },
    )
