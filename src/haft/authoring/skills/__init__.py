"""Skills made anew, and taken in from elsewhere."""

from typing import TYPE_CHECKING

from haft.lazy import face

if TYPE_CHECKING:
    from haft.authoring.skills.installing import install
    from haft.authoring.skills.making import made_place

__getattr__ = face(
    __name__,
    {
        "installing": "install",
        "making": "made_place",
    },
)
