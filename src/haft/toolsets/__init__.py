"""The sets of tools that a configuration names: found on disk, fetched, asked what they are, kept up with; the
environments of templates and the programs that outlive their calls.
"""

from typing import TYPE_CHECKING

from haft.lazy import face

if TYPE_CHECKING:
    from haft.toolsets.catalogue import fill_catalogue as fill_catalogue
    from haft.toolsets.looking import looking_launcher as looking_launcher

__getattr__ = face(
    __name__,
    {
        "fill_catalogue": "catalogue",
        "looking_launcher": "looking",
    },
)
