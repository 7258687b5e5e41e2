"""The tool writer's bench: making tools that work at once, and checking those that there are.

`making` writes fresh tools from the `templates` beside it; `check` says what is wrong with a tool and how to mend it.
The surfaces call them; below are the sources, whose reading of each format is the one that counts here too. Nothing is
imported until it is used.
"""

from typing import TYPE_CHECKING

from haft.lazy import face

if TYPE_CHECKING:
    from haft.authoring.making import (
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
    from haft.authoring.placing import obstacles, toolbox_at

__getattr__ = face(
    __name__,
    {
        "making": "DEFAULT_KIND KINDS Made ToolKind check_name global_toolbox make project_folder skill_toolbox",
        "placing": "obstacles toolbox_at",
    },
)
