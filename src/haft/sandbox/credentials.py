"""Finds out from a program's output which credentials file in the home directory the program looked for. haft hides
such files from all calls."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from typing import Final

from haft.files import SECRETS
from haft.lazy import regex

FILES: Final = (
    ".aws/config", ".aws/credentials", ".azure/azureProfile.json", ".config/gh/hosts.yml",
    ".config/glab-cli/config.yml",
    ".config/gcloud/application_default_credentials.json", ".config/hub", ".config/op/config", ".docker/config.json",
    ".gem/credentials", ".git-credentials", ".kube/config", ".my.cnf", ".netrc", ".npmrc", ".pgpass", ".pypirc",
    ".terraform.d/credentials.tfrc.json", ".vault-token", ".yarnrc.yml",
)  # fmt: skip
"""Credentials files, as paths below a home directory. SSH keys are not among them: haft helps no tool to reach
those."""

_KEYS: Final = frozenset((".ssh", ".gnupg", ".password-store", "keyrings", ".keychain"))
"""Names of directories that hold private keys, wherever these directories are."""
_KEY: Final = regex(r"id_(?:rsa|dsa|ecdsa|ed25519|xmss)\w*|.+\.(?:pem|key|p12|pfx|kdbx|ppk)|ssh_host_\w+_key")

_WITHOUT_A_NAME: Final = {
    r"unable to locate credentials|NoCredentialsError|could not load credentials from any": ".aws/credentials",
    r"\bgh auth login\b|not logged in(?:to| to) any github": ".config/gh/hosts.yml",
    r"\bENEEDAUTH\b|\bnpm (?:login|adduser)\b": ".npmrc",
    r"default credentials were not found|could not (?:automatically determine|find default) credentials":
        ".config/gcloud/application_default_credentials.json",
    r"missing or incomplete configuration info|no configuration has been provided": ".kube/config",
}  # fmt: skip
"""Messages of programs that do not name the file, and the file that they mean."""
_COMPLAINT: Final = regex(
    r"no such file|\bENOENT\b|not (?:found|exist|set|configured|readable|logged)|n't (?:found|exist|find|open|read)"
    r"|missing|unable|cannot|could not|failed|required|please|no credentials|create|run ",
    re.IGNORECASE,
)


def holds_private_keys(path: str) -> bool:
    """Whether a path, or the real path behind its links, is or contains private keys or secrets of the machine. haft
    never suggests a grant for such a path: otherwise a tool could print the path in order to get this suggestion."""
    for one in {path, os.path.realpath(path)}:
        parts = one.split("/")
        if not _KEYS.isdisjoint(parts) or _KEY.fullmatch(parts[-1]):
            return True
        if any(one == secret or one.startswith(f"{secret}/") for secret in SECRETS):
            return True
    return any(os.path.lexists(os.path.join(path, name)) for name in _KEYS)


def looked_for(lines: Sequence[str], home: str) -> Iterator[str]:
    """The absolute paths of credentials files that exist, although one of the lines reports them as missing."""
    for line in lines:
        for name in FILES:
            if name in line and _COMPLAINT.search(line) and _is_meant(line, name, home):
                path = os.path.join(home, name)
                if os.path.lexists(path):
                    yield path
        for words, name in _WITHOUT_A_NAME.items():
            if re.search(words, line, re.IGNORECASE) and os.path.lexists(path := os.path.join(home, name)):
                yield path


def _is_meant(line: str, name: str, home: str) -> bool:
    """Whether the name in the line means the file in the home directory, and not a file of the same name elsewhere."""
    before = line[: line.index(name)]
    return before.endswith(("~/", "$HOME/", "${HOME}/", f"{home}/")) or not re.search(r"[\w./-]$", before)
