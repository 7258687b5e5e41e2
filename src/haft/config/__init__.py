"""Configuration: the settings in force and where each comes from, the files they stand in, trust in a workspace, and
which directory is the workspace.
"""

from typing import TYPE_CHECKING

from haft.lazy import face

if TYPE_CHECKING:
    from haft.config.config import Config, configured, kept_secret, load_config, not_trusted_before, working_directory
    from haft.config.files import ConfigFile, read_config, user_config, workspace_config
    from haft.config.gathering import Gathered
    from haft.config.locations import WORKSPACE_FILES, is_configured, user_file
    from haft.config.narrowing import Ignored
    from haft.config.ownership import Stranger, stranger_in
    from haft.config.placeholders import Unset
    from haft.config.settings import SETTINGS, Setting
    from haft.config.trusted_texts import since_trusted, text_to_keep
    from haft.config.trusting import is_chosen, is_trusted, revoke, trust, trusted_text, was_trusted
    from haft.config.values import UNSET
    from haft.config.workspace import check_workspace, find_workspace

__getattr__ = face(
    __name__,
    {
        "config": "Config configured kept_secret load_config not_trusted_before working_directory",
        "files": "ConfigFile read_config user_config workspace_config",
        "gathering": "Gathered",
        "narrowing": "Ignored",
        "ownership": "Stranger stranger_in",
        "placeholders": "Unset",
        "settings": "SETTINGS Setting",
        "locations": "WORKSPACE_FILES is_configured user_file",
        "trusted_texts": "since_trusted text_to_keep",
        "trusting": "is_chosen is_trusted revoke trust trusted_text was_trusted",
        "values": "UNSET",
        "workspace": "check_workspace find_workspace",
    },
)
