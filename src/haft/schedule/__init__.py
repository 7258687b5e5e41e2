"""When a call happens: admission to a bounded number of places."""

from typing import TYPE_CHECKING

from haft.lazy import face

if TYPE_CHECKING:
    from haft.schedule.admission import Admission

__getattr__ = face(
    __name__,
    {
        "admission": "Admission",
    },
)
