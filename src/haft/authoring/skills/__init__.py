"""Makes new skills, and installs skills from folders and archives."""

from typing import TYPE_CHECKING

from haft.lazy import face

if TYPE_CHECKING:
    from haft.authoring.skills.installer import install
    from haft.authoring.skills.new_skill import check_name, make_place, write_skill
else:
    __getattr__ = face(
        __name__,
        {
            "installer": "install",
            "new_skill": "check_name make_place write_skill",
        },
    )
