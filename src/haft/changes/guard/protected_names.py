"""Names that are protected in every directory, as a tree of their parts: a name such as `.cargo/config` has two
parts."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Final

from haft.files import AREA, ENDINGS, NAMES, REASONS, folded

Names = Mapping[str, "Names"]
"""By part of a protected name: the parts that may follow it. Empty if the name ends with this part."""


def _tree(names: Iterable[str]) -> Names:
    root: dict[str, dict[str, object]] = {}
    for name in names:
        place: dict[str, dict[str, object]] = root
        for word in name.split("/"):
            place = place.setdefault(word, {})  # type: ignore[assignment]  # a tree has no type of its own
    return root  # type: ignore[return-value]  # the same


NAMED: Final = _tree(name for name in NAMES if not name.startswith(".git/") and name != ".gitmodules")
_WHY: Final = {name: why for why, names in REASONS.items() for name in names}
_LONGEST: Final = max(name.count("/") + 1 for name in NAMES)


def why(path: str) -> str:
    """Why a protected path is protected. If several names in the path are protected, the last of them gives the
    reason."""
    words = [folded(word) for word in path.split("/")]
    if (ending := os.path.splitext(words[-1])[1]) in ENDINGS:
        return ENDINGS[ending]
    for start in range(len(words) - 1, -1, -1):
        for count in range(_LONGEST, 0, -1):
            part = "/".join(words[start : start + count])
            found = _WHY.get(part) or next((why for name, why in _WHY.items() if name.startswith(f"{part}/")), None)
            if found is not None:
                return found
    return "programs on the host obey it"


def folded_path(path: str) -> str:
    """The path with `folded` applied to each of its parts."""
    return "/".join(map(folded, path.split("/")))


def is_area(name: str) -> bool:
    """Whether a folded name is the name of an area beside a workspace, where haft keeps replaced files."""
    return AREA.fullmatch(name) is not None
