"""Parses the entries of `plugins` in a configuration: a text such as `bash:./plugins/mine`, or a table.

This module looks at no files: `discover` does that, and `toolsets` fetches plugins from git.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

from haft.contracts import NO_GRANTS, BadConfig, Grants, grants_from, near_miss

Family = Literal["bash", "python"]

_WITHIN_URL: Final = re.compile(r"//[^/@\s]*@")
"""The user and password in an address, which are not shown."""
_FORMS: Final = ("bash:", "bash+git:", "path:", "python:")
_ENDINGS: Final = (".git", ".bash", ".sh", ".py")
_KEYS: Final = ("file", "path", "git", "ref", "subdirectory")


@dataclass(frozen=True, slots=True)
class PluginReference:
    """One entry of `plugins`."""

    written: str
    """The entry as the configuration has it, without passwords."""
    source: str
    """The file, or other origin, of the entry."""
    family: Family
    path: str | None = None
    """The absolute path of the plugin's file or folder."""
    git: str | None = None
    """The address of the repository."""
    ref: str | None = None
    subdirectory: str | None = None
    is_file: bool = False
    """Whether the path must be a file and not a folder, as with `bash_tool.file` and `python:`."""
    dotted: str | None = None
    """The dotted name of an importable object, if the entry is such a name and not a path."""
    grant: Grants = NO_GRANTS
    """What the plugin's process may access, if one process answers all calls."""
    keeps_state: bool = True
    """Whether all calls must go to the same process."""

    @property
    def keeps_process(self) -> bool:
        """Whether one process answers all calls. Only Python plugins have such a process; plugins that are files of
        functions (`python:`) have none."""
        return self.family == "python" and not self.is_file

    @property
    def name(self) -> str:
        """The name by which the plugin can be disabled: the last part of its path or address."""
        place = self.path or self.git or self.dotted or self.written
        name = os.path.basename(place.rstrip("/"))
        stem, ending = os.path.splitext(name)
        return stem if ending in _ENDINGS else name


def read_reference(entry: Any, source: str, base: str) -> PluginReference:
    """Parse one entry; relative paths start at `base`. If the entry is not valid, raises `BadConfig` with the form to
    write."""
    if isinstance(entry, str):
        return _from_text(entry, source, base)
    if isinstance(entry, Mapping) and set(entry) == {"bash_tool"} and isinstance(entry["bash_tool"], Mapping):
        return _from_table(entry["bash_tool"], source, base)
    if isinstance(entry, Mapping) and isinstance(entry.get("plugin"), str) and set(entry) <= _TABLE:
        reference = _from_text(entry["plugin"], source, base)
        grant = _grant(entry.get("grant"), reference, source)
        return replace(reference, grant=grant, keeps_state=_keeps_state(entry, reference, source))
    raise BadConfig(
        f"{source}: a plugin is written as a text such as `bash:./plugins/mine`, as {{bash_tool = {{file = …}}}}, or"
        f" as {{plugin = TEXT, grant = {{…}}, keeps_state = false}}, not as {entry!r}"[:400]
    )


_TABLE: Final = frozenset({"plugin", "grant", "keeps_state"})


def _keeps_state(entry: Mapping[str, Any], reference: PluginReference, source: str) -> bool:
    given = entry.get("keeps_state", True)
    if not isinstance(given, bool) or ("keeps_state" in entry and not reference.keeps_process):
        raise BadConfig(
            f"{source}: `keeps_state` of the plugin `{reference.written}` must be true or false, and only plugins"
            " with one process for all calls have it"
        )
    return given


def _grant(given: Any, reference: PluginReference, source: str) -> Grants:
    try:
        grant = grants_from(given)
    except ValueError as error:
        raise BadConfig(f"{source}: the `grant` of the plugin `{reference.written}`: {error}") from None
    if grant != NO_GRANTS and not reference.keeps_process:
        raise BadConfig(
            f"{source}: the plugin `{reference.written}` cannot have a `grant`: each call has its own process",
            hint="write the grant on a rule in `permissions`, which says for which calls it applies",
        )
    return grant


def _from_text(text: str, source: str, base: str) -> PluginReference:
    if text.startswith("bash+git:"):
        url, _hash, ref = text.removeprefix("bash+git:").partition("#")
        shown = _WITHIN_URL.sub("//…@", text)
        return PluginReference(shown, source, "bash", git=_required(url, shown, source), ref=ref or None)
    for form, family in (("bash:", "bash"), ("path:", "python"), ("python:", "python")):
        if text.startswith(form):
            path = _absolute(_required(text.removeprefix(form), text, source), base)
            return PluginReference(text, source, family, path=path, is_file=form == "python:")  # type: ignore[arg-type]
    if ":" not in text.split("/")[0] or all(part.isidentifier() for part in text.replace(":", ".").split(".")):
        if all(part.isidentifier() for part in text.replace(":", ".").split(".")):
            return PluginReference(text, source, "python", dotted=text)
        raise BadConfig(f"{source}: the plugin `{text}` does not say what it is", hint=f"write `bash:{text}`")
    near = near_miss(text.split(":")[0] + ":", _FORMS)
    hint = f"did you mean `{near}`?" if near else f"plugins begin with {', '.join(_FORMS)}"
    raise BadConfig(f"{source}: there is no plugin of the form `{text}`", hint=hint)


def _from_table(table: Mapping[str, Any], source: str, base: str) -> PluginReference:
    for key, value in table.items():
        if key not in _KEYS:
            near = near_miss(key, _KEYS)
            hint = f"did you mean `{near}`?" if near else f"its keys are {', '.join(_KEYS)}"
            raise BadConfig(f"{source}: `bash_tool` has no key `{key}`", hint=hint)
        if not isinstance(value, str) or not value or "\0" in value:
            raise BadConfig(f"{source}: `bash_tool.{key}` must be a text, not {value!r}")
    places = [key for key in ("file", "path", "git") if key in table]
    written = _WITHIN_URL.sub("//…@", f"bash_tool {', '.join(f'{key}={table[key]}' for key in table)}")
    if len(places) != 1:
        raise BadConfig(f"{source}: `bash_tool` needs one of file, path and git, and has {len(places)} ({written})")
    if "ref" in table and "git" not in table:
        raise BadConfig(f"{source}: `bash_tool.ref` goes with `git` ({written})")
    place = table[places[0]]
    return PluginReference(
        written,
        source,
        "bash",
        path=None if places[0] == "git" else _absolute(place, base),
        git=place if places[0] == "git" else None,
        ref=table.get("ref"),
        subdirectory=table.get("subdirectory"),
        is_file=places[0] == "file",
    )


def _absolute(path: str, base: str) -> str:
    return os.path.normpath(os.path.join(base, os.path.expanduser(path)))


def _required(place: str, text: str, source: str) -> str:
    if not place or "\0" in place:
        raise BadConfig(f"{source}: the plugin `{text}` has no path or address")
    return place
