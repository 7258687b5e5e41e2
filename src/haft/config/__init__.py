"""Configuration: the settings in force and where each comes from, the files they stand in, trust in a workspace, and
which directory is the workspace.
"""

from typing import TYPE_CHECKING

from haft.lazy import face

if TYPE_CHECKING:
    from haft.config.config import Config as Config
    from haft.config.config import load_config as load_config
    from haft.config.settings import SETTINGS as SETTINGS
    from haft.config.settings import Setting as Setting
    from haft.config.workspace import check_workspace as check_workspace
    from haft.config.workspace import find_workspace as find_workspace

__getattr__ = face(
    __name__,
    {
        "SETTINGS": "settings",
        "Config": "config",
        "Setting": "settings",
        "check_workspace": "workspace",
        "find_workspace": "workspace",
        "load_config": "config",
    },
)
