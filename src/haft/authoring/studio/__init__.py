"""Agent Studio templates on their way: packed into a ZIP, installed from one, listed and removed.

`places` knows the directories that templates lie in, `gathering` reads a template's folder, `manifest` is the file that
says what a ZIP holds, `packing`, `unpacking`, `installing` and `removing` do what they are called. Nothing of a
template is ever imported or run here.
"""

from typing import TYPE_CHECKING

from haft.lazy import face

if TYPE_CHECKING:
    from haft.authoring.studio.installing import install
    from haft.authoring.studio.packing import check_for_packing, pack
    from haft.authoring.studio.places import Placed, is_template_folder, problems_of, problems_of_name, templates_in
    from haft.authoring.studio.removing import chosen, remove

__getattr__ = face(
    __name__,
    {
        "installing": "install",
        "packing": "check_for_packing pack",
        "places": "Placed is_template_folder problems_of problems_of_name templates_in",
        "removing": "chosen remove",
    },
)
