"""Skills for MCP clients: as prompts, as resources, and as the skills extension (SEP-2640).

Reading a skill is a call of the tool `skill`, so rules and the audit log see it, and the skill's own tools are there
for the rest of the thread. The extension wants the bytes of each file, and these come from the file itself.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
import os
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

import yaml

from haft.contracts import HaftError
from haft.service import Skills

if TYPE_CHECKING:
    from haft.service import Skill, ToolService

EXTENSION: Final = "io.modelcontextprotocol/skills"
SKILL_FILE: Final = "SKILL.md"
MOST_FILES: Final = 512
MOST_BYTES: Final = 16 * 1024 * 1024
_SCHEME: Final = "skill://"
_NAME: Final = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
_MOST_FRONT_MATTER: Final = 8_000
_MOST_VALUES: Final = 1_000
_MOST_BRACKETS: Final = 50
_MARKDOWN: Final = "text/markdown"
_MIME_TYPES: Final = {".md": _MARKDOWN, ".txt": "text/plain", ".json": "application/json", ".py": "text/x-python"}


class ServedSkills:
    """The skills of a service."""

    def __init__(self, service: ToolService) -> None:
        self._skills = Skills(service.workspace)

    def found(self) -> list[Skill]:
        """The skills that can be used."""
        return [skill for skill in self._skills.found() if skill.is_usable]

    def named(self, name: str) -> Skill | None:
        """The skill with this name."""
        return next((skill for skill in self.found() if skill.name == name), None)

    def resources(self) -> list[dict[str, Any]]:
        """The SKILL.md of each skill, as `resources/list` returns it."""
        return [
            {"uri": uri_of(skill), "name": skill.name, "description": skill.description, "mimeType": _MARKDOWN}
            for skill in self.found()
            if _NAME.fullmatch(skill.name)
        ]

    async def entries(self) -> list[dict[str, Any]]:
        """All skills, as the extension lists them."""
        return await asyncio.to_thread(lambda: [entry for skill in self.found() if (entry := _entry(skill))])

    async def entry(self, uri: str) -> dict[str, Any] | None:
        """The skill with this URI, as the extension lists it."""
        return next((entry for entry in await self.entries() if entry["uri"] == uri), None)

    def locate(self, uri: str) -> tuple[Skill, str] | None:
        """The skill and the path of the file that a URI names; None if the URI is not of a skill."""
        if not uri.startswith(_SCHEME):
            return None
        name, _, path = uri.removeprefix(_SCHEME).partition("/")
        skill = self.named(name)
        return None if skill is None or not path else (skill, path)

    async def contents(self, uri: str, skill: Skill, path: str) -> dict[str, Any]:
        """The content of a file of a skill, as `resources/read` returns it."""
        data = await asyncio.to_thread(_read, skill, path)
        kind = _MIME_TYPES.get(os.path.splitext(path)[1], "application/octet-stream")
        try:
            return {"uri": uri, "mimeType": kind, "text": data.decode()}
        except UnicodeDecodeError:
            return {"uri": uri, "mimeType": kind, "blob": base64.b64encode(data).decode()}


def uri_of(skill: Skill, path: str = SKILL_FILE) -> str:
    """The URI of a file of a skill."""
    return f"{_SCHEME}{skill.name}/{path}"


def _read(skill: Skill, path: str) -> bytes:
    with skill.files().open(path) as file:
        return file.read(MOST_BYTES)


def _entry(skill: Skill) -> dict[str, Any] | None:
    """A skill as the extension lists it; None if its name or its front matter is not as the extension wants it."""
    try:
        matter = front_matter(_read(skill, SKILL_FILE))
    except (HaftError, OSError):
        return None
    if matter is None or matter.get("name") != skill.name or _NAME.fullmatch(skill.name) is None:
        return None
    return {"uri": uri_of(skill), "frontmatter": matter, "resources": _files(skill)}


def _files(skill: Skill) -> list[dict[str, Any]] | str:
    """Every file of a skill with its digest; `dynamic` if there are too many to list."""
    listed: list[dict[str, Any]] = []
    total = 0
    try:
        for path in _paths(skill, "", 0):
            data = _read(skill, path)
            total += len(data)
            if len(listed) >= MOST_FILES or total > MOST_BYTES:
                return "dynamic"
            digest = hashlib.sha256(data).hexdigest()
            listed.append({"uri": uri_of(skill, path), "digest": f"sha256:{digest}", "size": len(data)})
    except (HaftError, OSError):
        return "dynamic"
    return listed


def _paths(skill: Skill, inside: str, depth: int) -> Iterator[str]:
    """The paths of the files, without links and hidden files."""
    with skill.files().directory(inside or os.curdir) as opened, os.scandir(opened) as entries:
        found = sorted((entry.name, entry.is_dir(follow_symlinks=False), entry.is_symlink()) for entry in entries)
    for name, is_directory, is_link in found:
        path = f"{inside}/{name}" if inside else name
        if name.startswith(".") or is_link:
            continue
        if not is_directory:
            yield path
        elif depth < 8:
            yield from _paths(skill, path, depth + 1)


def front_matter(data: bytes) -> dict[str, Any] | None:
    """The front matter of a SKILL.md as JSON; None if it is no YAML map, or larger than anyone needs."""
    text = data.decode("utf-8-sig", "replace").replace("\r\n", "\n")
    matched = re.match(r"---[ \t]*\n(.*?)\n---[ \t]*(\n|$)", text, re.DOTALL)
    if matched is None or len(matched[1]) > _MOST_FRONT_MATTER:
        return None
    block = matched[1]
    if block.count("[") + block.count("{") > _MOST_BRACKETS:  # YAML needs quadratic time for nested lists.
        return None
    try:
        found = yaml.load(block, Loader=_loader())  # noqa: S506  a safe loader
        return found if isinstance(found, dict) and _is_small(found) and json.dumps(found) else None
    except (yaml.YAMLError, RecursionError, ValueError, TypeError):
        return None


def _loader() -> Any:
    """YAML's safe loader, which leaves dates as text: JSON has no dates."""

    class Loader(yaml.SafeLoader):
        yaml_implicit_resolvers = {  # noqa: RUF012  as the base class has it
            first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
            for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
        }

    return Loader


def _is_small(value: Any) -> bool:
    """Whether a value has few parts, also after its aliases are written out."""
    pending, count = [value], 0
    while pending:
        one = pending.pop()
        count += 1
        if count > _MOST_VALUES:
            return False
        pending += one.values() if isinstance(one, dict) else one if isinstance(one, list) else ()
    return True
