"""Decides when a call runs: a host has a limited number of slots. A call needs one slot, and shares it with the calls
that it makes."""

from typing import TYPE_CHECKING

from haft.lazy import face

if TYPE_CHECKING:
    from haft.schedule.admission import Admission
    from haft.schedule.slot import Slot
else:
    __getattr__ = face(
        __name__,
        {
            "admission": "Admission",
            "slot": "Slot",
        },
    )
