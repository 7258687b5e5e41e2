"""Files with credentials in a home: which one a program looked for, by its words. They are hidden from every call."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from typing import Final

FILES: Final = (
    ".aws/config", ".aws/credentials", ".azure/azureProfile.json", ".config/gh/hosts.yml",
    ".config/glab-cli/config.yml",
    ".config/gcloud/application_default_credentials.json", ".config/hub", ".config/op/config", ".docker/config.json",
    ".gem/credentials", ".git-credentials", ".kube/config", ".my.cnf", ".netrc", ".npmrc", ".pgpass", ".pypirc",
    ".terraform.d/credentials.tfrc.json", ".vault-token", ".yarnrc.yml",
)  # fmt: skip
"""Below a home. Keys of ssh are not among them: no tool is helped to those."""

_WITHOUT_A_NAME: Final = {
    r"unable to locate credentials|NoCredentialsError|could not load credentials from any": ".aws/credentials",
    r"\bgh auth login\b|not logged in(?:to| to) any github": ".config/gh/hosts.yml",
    r"\bENEEDAUTH\b|\bnpm (?:login|adduser)\b": ".npmrc",
    r"default credentials were not found|could not (?:automatically determine|find default) credentials":
        ".config/gcloud/application_default_credentials.json",
    r"missing or incomplete configuration info|no configuration has been provided": ".kube/config",
}  # fmt: skip
"""What programs say that do not name the file."""
_COMPLAINT: Final = re.compile(
    r"no such file|\bENOENT\b|not (?:found|exist|set|configured|readable|logged)|n't (?:found|exist|find|open|read)"
    r"|missing|unable|cannot|could not|failed|required|please|no credentials|create|run ",
    re.IGNORECASE,
)


def looked_for(lines: Sequence[str], home: str) -> Iterator[str]:
    """The files, absolute, that lines complain of and that are there."""
    for line in lines:
        for name in FILES:
            path = os.path.join(home, name)
            if name in line and _COMPLAINT.search(line) and _is_meant(line, name, home) and os.path.lexists(path):
                yield path
        for words, name in _WITHOUT_A_NAME.items():
            path = os.path.join(home, name)
            if re.search(words, line, re.IGNORECASE) and os.path.lexists(path):
                yield path


def _is_meant(line: str, name: str, home: str) -> bool:
    """Whether a line names the file of the home, and not one of that name elsewhere."""
    before = line[: line.index(name)]
    return before.endswith(("~/", "$HOME/", "${HOME}/", f"{home}/")) or not re.search(r"[\w./-]$", before)
