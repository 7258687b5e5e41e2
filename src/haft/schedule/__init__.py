"""When a call happens: admission to a bounded number of places, which calls inside calls share."""

from typing import TYPE_CHECKING

from haft.lazy import face

if TYPE_CHECKING:
    from haft.schedule.admission import Admission
    from haft.schedule.place import Place

__getattr__ = face(
    __name__,
    {
        "admission": "Admission",
        "place": "Place",
    },
)
