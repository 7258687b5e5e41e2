"""Packs Agent Studio templates into a ZIP, installs them from one, lists and removes them.

`template_folders` knows the directories of templates, `template_files` reads the files of a template, `manifest` reads
and writes the file that lists the content of a ZIP; `packer`, `unpacker`, `installer` and `remover` do the work.
Nothing of a template is ever imported or run here.
"""

from typing import TYPE_CHECKING

from haft.lazy import face

if TYPE_CHECKING:
    from haft.authoring.studio.installer import install
    from haft.authoring.studio.packer import check_for_packing, pack
    from haft.authoring.studio.remover import find_template, remove
    from haft.authoring.studio.template_folders import (
        TemplateFolder,
        is_template_folder,
        problems_of,
        problems_of_name,
        templates_in,
    )
else:
    __getattr__ = face(
        __name__,
        {
            "installer": "install",
            "packer": "check_for_packing pack",
            "template_folders": "TemplateFolder is_template_folder problems_of problems_of_name templates_in",
            "remover": "find_template remove",
        },
    )
