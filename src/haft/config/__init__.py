"""Configuration: the settings in force and where each comes from, the configuration files, trust in a workspace, and
the choice of the workspace's directory.
"""

from typing import TYPE_CHECKING

from haft.lazy import face

if TYPE_CHECKING:
    from haft.config.collector import ProviderTables, SettingsCollector, from_caller
    from haft.config.config import Config, configured, load_config, newly_ignored, secret_texts, working_directory
    from haft.config.connected_files import connected_inside, connected_paths, note_connected
    from haft.config.files import ConfigFile, read_config, user_config, workspace_config
    from haft.config.locations import WORKSPACE_FILES, config_signature, is_configured, user_file
    from haft.config.narrowing import Ignored
    from haft.config.ownership import ForeignFile, foreign_file_in
    from haft.config.placeholders import MissingVariable
    from haft.config.settings import SETTINGS, Setting
    from haft.config.toml_tables import table_text, with_key, with_table, without_key, without_table
    from haft.config.toml_text import PIECES, toml_key, toml_string, toml_value, with_plain_ends
    from haft.config.trust_store import (
        is_trusted,
        is_workspace_trusted,
        revoke,
        trust,
        trusted_agents,
        trusted_text,
        was_trusted,
    )
    from haft.config.trusted_texts import since_trusted, text_to_keep
    from haft.config.values import MISSING_VARIABLES
    from haft.config.workspace import check_workspace, find_workspace
else:
    __getattr__ = face(
        __name__,
        {
            "config": "Config configured secret_texts load_config newly_ignored working_directory",
            "connected_files": "connected_inside connected_paths note_connected",
            "files": "ConfigFile read_config user_config workspace_config",
            "collector": "ProviderTables SettingsCollector from_caller",
            "narrowing": "Ignored",
            "ownership": "ForeignFile foreign_file_in",
            "placeholders": "MissingVariable",
            "settings": "SETTINGS Setting",
            "locations": "WORKSPACE_FILES config_signature is_configured user_file",
            "toml_tables": "table_text with_key with_table without_key without_table",
            "toml_text": "PIECES toml_key toml_string toml_value with_plain_ends",
            "trusted_texts": "since_trusted text_to_keep",
            "trust_store": "is_workspace_trusted is_trusted revoke trust trusted_agents trusted_text was_trusted",
            "values": "MISSING_VARIABLES",
            "workspace": "check_workspace find_workspace",
        },
    )
