"""Reads scenarios from files, in YAML, TOML or JSON, and from values, in three spellings; and updates these files."""

from typing import TYPE_CHECKING

from haft.lazy import face

if TYPE_CHECKING:
    from haft.testing.reading.files import find_scenario_files, is_scenario_file, read_scenario_file
    from haft.testing.reading.spellings import scenarios_from
    from haft.testing.reading.update import Updated, update_files
else:
    __getattr__ = face(
        __name__,
        {
            "files": "find_scenario_files is_scenario_file read_scenario_file",
            "spellings": "scenarios_from",
            "update": "Updated update_files",
        },
    )

__all__ = [
    "Updated",
    "find_scenario_files",
    "is_scenario_file",
    "read_scenario_file",
    "scenarios_from",
    "update_files",
]
