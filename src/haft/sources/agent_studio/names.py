"""What templates and their folders are called.

A name is of letters, digits and spaces. A folder that was packed or installed is called by the name's slug and six
random characters. Only the manifest of an installed template says that these are there: of any other folder the whole
name counts, since nobody can tell `_abc123` from the last word of `json_reader`.
"""

from __future__ import annotations

import os
import re
from typing import Final

from haft.contracts import BadUsage
from haft.sources.agent_studio.manifest import read_manifest

NAME: Final = re.compile(r"[a-zA-Z0-9 ]+")
LONGEST_NAME: Final = 200
"""Characters. With its suffix, it must do as the name of a folder."""
SUFFIX_LENGTH: Final = 6
_ALPHABET: Final = "abcdefghijklmnopqrstuvwxyz0123456789"


def is_template_name(name: str) -> bool:
    """Whether a template may be called this where it is packed or installed."""
    return NAME.fullmatch(name) is not None and not name.isspace() and len(name) <= LONGEST_NAME


def check_template_name(name: str) -> None:
    """`BadUsage` where a template cannot be called this."""
    if not is_template_name(name):
        raise BadUsage(
            f"`{name[:80]}` is no name for a template", hint=f"1 to {LONGEST_NAME} letters, digits and spaces"
        )


def slug_of(name: str) -> str:
    """The name in lower case, with `_` for each space."""
    return name.lower().replace(" ", "_")


def new_folder_name(name: str) -> str:
    """The slug, and six random characters."""
    import secrets

    return f"{slug_of(name)}_{''.join(secrets.choice(_ALPHABET) for _ in range(SUFFIX_LENGTH))}"


def name_of_folder(folder: str) -> str:
    """What the template in a folder is called: what its manifest says where it was installed, else what the folder is
    called, with a space for each `_`."""
    manifest = read_manifest(folder)
    if manifest is not None:
        return manifest.name
    return os.path.basename(os.path.abspath(folder)).replace("_", " ")
