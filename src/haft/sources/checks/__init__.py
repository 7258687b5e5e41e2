"""The parts of checking that all formats share: findings and their codes, and checks of files, definitions,
descriptions and behaviour. The check of one format is the module `check` in the folder of that format."""

from typing import TYPE_CHECKING

from haft.lazy import face

if TYPE_CHECKING:
    from haft.sources.checks.codes import CODES, code_of
    from haft.sources.checks.codes.model import Code, Level
    from haft.sources.checks.definition import check_listing
    from haft.sources.checks.descriptions import check_description
    from haft.sources.checks.files import BOM, MOST_READ, inspect_file, is_all_text
    from haft.sources.checks.findings import Finding, Report
    from haft.sources.checks.hidden import hidden_in_source
else:
    __getattr__ = face(
        __name__,
        {
            "codes": "CODES code_of",
            "codes.model": "Code Level",
            "definition": "check_listing",
            "descriptions": "check_description",
            "files": "BOM MOST_READ inspect_file is_all_text",
            "findings": "Finding Report",
            "hidden": "hidden_in_source",
        },
    )
