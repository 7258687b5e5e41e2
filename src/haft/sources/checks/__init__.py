"""What checking a tool of any format shares: findings and their table of codes, and looks at files, definitions,
descriptions and behaviour. Each format's own check lies in the folder of the format, as `checking`.
"""

from typing import TYPE_CHECKING

from haft.lazy import face

if TYPE_CHECKING:
    from haft.sources.checks.codes import CODES, code_of
    from haft.sources.checks.codes.model import Code, Level
    from haft.sources.checks.definition import check_listing
    from haft.sources.checks.files import BOM, MOST_READ, is_all_text, look
    from haft.sources.checks.findings import Finding, Report

__getattr__ = face(
    __name__,
    {
        "codes": "CODES code_of",
        "codes.model": "Code Level",
        "definition": "check_listing",
        "files": "BOM MOST_READ is_all_text look",
        "findings": "Finding Report",
    },
)
