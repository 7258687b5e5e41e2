"""Reads the texts of a skill: its SKILL.md, or another text by its path or its name."""

from __future__ import annotations

import json
from typing import Final

from haft.contracts import BadUsage, CallError, PathEscapes, near_miss
from haft.files import shown
from haft.sources.skills.skill import LARGEST_TEXT, REFERENCES, SERVERS_FILE, SKILL_FILE, Skill
from haft.sources.skills.skill_files import SkillFiles

_MOST_NAMED: Final = 30
_MOST_SERVERS: Final = 100


def read_text(skill: Skill, reference: str | None) -> str:
    """The text of a skill that `reference` names; the SKILL.md if `reference` is None. If there is no such text, raises
    `BadUsage` with the texts that exist."""
    path = reference or SKILL_FILE
    try:
        files = skill.files()
        path = SKILL_FILE if reference is None else _found(skill, files, reference)
        with files.open(path) as file:
            content = file.read(LARGEST_TEXT + 1)
    except PathEscapes as error:
        raise _leads_out(skill, path) from error
    except CallError as error:
        raise BadUsage(f"{error.message} (of the skill `{skill.name}`)") from error
    except OSError as error:
        why = (error.strerror or str(error)).lower()
        raise BadUsage(f"`{shown(path[:200])}` of the skill `{skill.name}` cannot be read: {why}") from error
    if len(content) > LARGEST_TEXT:
        raise BadUsage(f"`{shown(path)}` of the skill `{skill.name}` has more than {LARGEST_TEXT:_} bytes")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise BadUsage(
            f"`{shown(path)}` of the skill `{skill.name}` is not a text: it is not UTF-8 (byte {error.start})"
        ) from None
    if "\0" in text:
        raise BadUsage(f"`{shown(path)}` of the skill `{skill.name}` is not a text")
    return text.replace("\r\n", "\n")


def server_names(skill: Skill) -> list[str]:
    """The names of the MCP servers in the skill's mcp.json."""
    try:
        files = skill.files()
        if files.identity(SERVERS_FILE) is None:
            return []
        with files.open(SERVERS_FILE) as file:
            servers = json.loads(file.read(LARGEST_TEXT))
    except (CallError, OSError, ValueError, RecursionError) as error:
        raise BadUsage(f"{SERVERS_FILE} of the skill `{skill.name}` cannot be read: {error}") from error
    if not isinstance(servers, dict):
        raise BadUsage(
            f"{SERVERS_FILE} of the skill `{skill.name}` is not a map of servers",
            hint='write {"name": {"command": "…", "args": []}}, without a key around it',
        )
    return sorted(servers)[:_MOST_SERVERS]


def _found(skill: Skill, files: SkillFiles, reference: str) -> str:
    """The path of the text that `reference` names. `reference` is a path in the skill's folder, or the name of a file
    in references/, and may leave out the ending `.md`."""
    wanted = reference.strip().removeprefix("@").removeprefix("./")
    candidates = [wanted, f"{wanted}.md"]
    if "/" not in wanted:
        candidates += [f"{REFERENCES}/{wanted}", f"{REFERENCES}/{wanted}.md"]
    if wanted and "\0" not in wanted:
        for path in candidates:
            try:
                if files.identity(path) is not None and not files.is_directory(path):
                    return path
            except PathEscapes as error:
                raise _leads_out(skill, reference) from error
            except CallError:
                continue
    raise _unknown(skill, reference)


def _unknown(skill: Skill, reference: str) -> BadUsage:
    there = [SKILL_FILE, *skill.references()]
    bare = {path.rsplit("/", 1)[-1].rsplit(".", 1)[0]: path for path in reversed(there)}
    near = near_miss(reference[:200], [*there, *bare])
    more = f" and {len(there) - _MOST_NAMED} more" if len(there) > _MOST_NAMED else ""
    named = ", ".join(shown(path) for path in there[:_MOST_NAMED]) + more
    meant = f"did you mean `{shown(bare.get(near, near))}`? " if near is not None else ""
    return BadUsage(
        f"the skill `{skill.name}` has no reference `{shown(reference[:200])}`", hint=f"{meant}there are {named}"
    )


def _leads_out(skill: Skill, path: str) -> BadUsage:
    return BadUsage(
        f"`{shown(path[:200])}` leads out of the folder of the skill `{skill.name}`",
        hint="a reference is a path inside the skill's folder",
    )
