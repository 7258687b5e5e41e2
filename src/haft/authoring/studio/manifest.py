"""`workflow_template.json`: the manifest of a ZIP of templates. Every field that is read is checked.

Only tool templates are installed. Agents, tasks, servers and workflows in the ZIP are reported and left out.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final
from uuid import uuid4

from haft.authoring.archives.bounded_folder import plain_path
from haft.contracts import BadUsage
from haft.files import shown
from haft.sources.agent_studio import ENTRY, REQUIREMENTS, is_template_name, slug_of

PACK_MANIFEST: Final = "workflow_template.json"
VERSION: Final = "0.0.1"
FOLDERS: Final = "studio-data/tool_templates"
"""The directory of tool templates in a ZIP."""
_TOOLS: Final = "tool_templates"
_WORKFLOW: Final = "workflow_template"
_OTHERS: Final = ("agent_templates", "task_templates", "mcp_templates")
_MOST_NAMED: Final = 20
_LONGEST: Final = 1_000


@dataclass(frozen=True, slots=True)
class Entry:
    """One tool template of a ZIP."""

    name: str
    folder: str
    """The path of the template's folder in the ZIP."""


@dataclass(frozen=True, slots=True)
class Pack:
    """The content of a ZIP, as its manifest lists it."""

    entries: tuple[Entry, ...]
    left_out: tuple[str, ...] = ()
    """The parts of the ZIP that are not tool templates, in words."""


def manifest_of(entries: Sequence[Entry], workflow: str) -> dict[str, Any]:
    """The manifest for a ZIP of these templates. The format requires a workflow around the templates. `workflow` is the
    name of this workflow, which has no other content."""
    return {
        "template_version": VERSION,
        _WORKFLOW: {
            "id": str(uuid4()),
            "name": workflow,
            "description": "",
            "process": "sequential",
            "agent_template_ids": [],
            "task_template_ids": [],
            "manager_agent_template_id": None,
            "use_default_manager": False,
            "is_conversational": False,
            "pre_packaged": False,
        },
        _TOOLS: [
            {
                "id": str(uuid4()),
                "name": entry.name,
                "python_code_file_name": ENTRY,
                "python_requirements_file_name": REQUIREMENTS,
                "source_folder_path": entry.folder,
                "tool_image_path": "",
                "is_venv_tool": True,
            }
            for entry in entries
        ],
        **{kind: [] for kind in _OTHERS},
    }


def read_pack(content: bytes, name: str | None = None) -> Pack:
    """Read a manifest. If a field is invalid, raises `BadUsage` with the name of the field. If there is a single
    template, `name` gives it another name."""
    try:
        manifest = json.loads(content.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise _bad(f"it is not JSON: {str(error)[:200]}") from error
    if not isinstance(manifest, dict):
        raise _bad("it is not a JSON object")
    if manifest.get("template_version") != VERSION:
        raise _bad(f'`template_version` must be "{VERSION}"')
    if not isinstance(manifest.get(_TOOLS), list):
        raise _bad(f"`{_TOOLS}` must be a list")
    for kind in _OTHERS:
        if not isinstance(manifest.get(kind, []), list):
            raise _bad(f"`{kind}` must be a list")
    if not isinstance(manifest.get(_WORKFLOW), dict | None):
        raise _bad(f"`{_WORKFLOW}` must be an object")
    if name is not None:
        if len(manifest[_TOOLS]) != 1:
            raise BadUsage(f"a name is for one template, but there are {len(manifest[_TOOLS])}: nothing is installed")
        manifest[_TOOLS] = [{**item, "name": name} if isinstance(item, dict) else item for item in manifest[_TOOLS]]
    entries = [_entry(item, f"{_TOOLS}[{at}]") for at, item in enumerate(manifest[_TOOLS])]
    _require_apart(entries)
    return Pack(tuple(entries), tuple(_left_out(manifest)))


def _entry(item: Any, where: str) -> Entry:
    if not isinstance(item, dict):
        raise _bad(f"`{where}` must be an object")
    for key in ("id", "name", "source_folder_path"):
        if not isinstance(item.get(key), str) or not 0 < len(item[key]) <= _LONGEST:
            raise _bad(f"`{where}.{key}` must be a text")
    name = item["name"]
    if not is_template_name(name):
        raise BadUsage(
            f"the {PACK_MANIFEST} is invalid, nothing is installed: `{where}.name` is `{shown(name[:80])}`",
            hint="a template's name has letters, digits and spaces; `--name` gives a single one another name",
        )
    for key, only in (("python_code_file_name", ENTRY), ("python_requirements_file_name", REQUIREMENTS)):
        if item.get(key) != only:
            raise _bad(f'`{where}.{key}` must be "{only}"')
    if not isinstance(item.get("is_venv_tool", True), bool):
        raise _bad(f"`{where}.is_venv_tool` must be true or false")
    image = item.get("tool_image_path") or ""
    if not isinstance(image, str) or (image and plain_path(image) is None):
        raise _bad(f"`{where}.tool_image_path` must be the path of a file in the archive")
    folder = plain_path(item["source_folder_path"])
    if folder is None:
        raise _bad(f"`{where}.source_folder_path` must be the path of a folder in the archive")
    return Entry(name, folder)


def _require_apart(entries: Sequence[Entry]) -> None:
    """Raise `BadUsage` unless each template has its own name and its own folder."""
    names: dict[str, Entry] = {}
    for entry in entries:
        other = names.setdefault(slug_of(entry.name), entry)
        if other is not entry:
            raise _bad(
                f"`{other.name}` in `{shown(other.folder)}` and `{entry.name}` in `{shown(entry.folder)}` "
                "have the same name"
            )
    before: Entry | None = None
    for entry in sorted(entries, key=lambda one: one.folder.split("/")):
        if before is not None and f"{entry.folder}/".startswith(f"{before.folder}/"):
            raise _bad(f"`{before.name}` and `{entry.name}` have the same folder, or one inside the other")
        before = entry


def _left_out(manifest: dict[str, Any]) -> Iterator[str]:
    for kind, items in manifest.items():
        if kind == _TOOLS or not isinstance(items, list) or not items:
            continue
        names = [shown(str(one.get("name"))[:80]) for one in items[:_MOST_NAMED] if isinstance(one, dict)]
        yield f"{len(items)} of `{shown(kind[:80])}`" + (f" ({', '.join(names)})" if names else "")
    workflow = manifest.get(_WORKFLOW)
    if isinstance(workflow, dict) and any(workflow.get(key) for key in ("agent_template_ids", "task_template_ids")):
        yield f"the workflow `{shown(str(workflow.get('name'))[:80])}`"
    images = [item["tool_image_path"] for item in manifest[_TOOLS] if item.get("tool_image_path")]
    if images:
        yield f"{len(images)} image{'s' * (len(images) > 1)}"


def _bad(what: str) -> BadUsage:
    return BadUsage(f"the {PACK_MANIFEST} is invalid, nothing is installed: {what}")
