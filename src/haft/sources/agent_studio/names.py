"""The names of templates and of their folders.

A name has letters, digits and spaces. A folder that was packed or installed is named by the slug of the name and six
random characters. Only the manifest of an installed template shows that the folder has this suffix. For any other
folder the whole name counts, because what looks like a suffix may be the last word of the name, as in `json_reader`.
"""

from __future__ import annotations

import os
import re
from typing import Final

from haft.contracts import BadUsage
from haft.sources.agent_studio.manifest import read_manifest

NAME: Final = re.compile(r"[a-zA-Z0-9 ]+")
LONGEST_NAME: Final = 200
"""The most characters of a name. With the suffix, the name must still be a valid folder name."""
SUFFIX_LENGTH: Final = 6
_ALPHABET: Final = "abcdefghijklmnopqrstuvwxyz0123456789"


def is_template_name(name: str) -> bool:
    """Whether a name is valid for packing and installing."""
    return NAME.fullmatch(name) is not None and not name.isspace() and len(name) <= LONGEST_NAME


def check_template_name(name: str) -> None:
    """Raise `BadUsage` if a template name is not valid."""
    if not is_template_name(name):
        raise BadUsage(
            f"`{name[:80]}` is not a valid template name", hint=f"1 to {LONGEST_NAME} letters, digits and spaces"
        )


def slug_of(name: str) -> str:
    """The name in lower case, with `_` for each space."""
    return name.lower().replace(" ", "_")


def new_folder_name(name: str) -> str:
    """A name for the folder of a new template: the slug of the template's name, and six random characters."""
    import secrets

    return f"{slug_of(name)}_{''.join(secrets.choice(_ALPHABET) for _ in range(SUFFIX_LENGTH))}"


def name_of_folder(folder: str) -> str:
    """The name of the template in a folder: from its manifest if it was installed, otherwise the folder's name with a
    space for each `_`."""
    manifest = read_manifest(folder)
    if manifest is not None:
        return manifest.name
    return os.path.basename(os.path.abspath(folder)).replace("_", " ")
