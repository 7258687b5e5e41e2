"""Skills made anew, and taken in from elsewhere."""

from typing import TYPE_CHECKING

from haft.lazy import face

if TYPE_CHECKING:
    from haft.authoring.skills.installing import install
    from haft.authoring.skills.making import check_name, made_place, write_skill

__getattr__ = face(
    __name__,
    {
        "installing": "install",
        "making": "check_name made_place write_skill",
    },
)
