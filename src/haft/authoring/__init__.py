"""For tool writers: makes new tools that work at once, and checks existing tools.

`new_tool` writes tools from `templates`; `check` finds problems in tools and says how to fix them. The command line and
other surfaces call this package. It reads each format with the code of `sources`. Its modules are imported when they
are first used.
"""

from typing import TYPE_CHECKING

from haft.lazy import face

if TYPE_CHECKING:
    from haft.authoring.new_tool import (
        DEFAULT_KIND,
        KINDS,
        Made,
        ToolKind,
        check_name,
        global_toolbox,
        make,
        project_folder,
        skill_toolbox,
    )
    from haft.authoring.toolbox_places import obstacles, toolbox_at
else:
    __getattr__ = face(
        __name__,
        {
            "new_tool": "DEFAULT_KIND KINDS Made ToolKind check_name global_toolbox make project_folder skill_toolbox",
            "toolbox_places": "obstacles toolbox_at",
        },
    )
