"""The source of Agent Studio templates in one workspace.

Templates are not run to describe them: haft reads what their `tool.py` says. The result is kept until a file changes,
so listing reads nothing twice.
"""

from __future__ import annotations

import ast
import hashlib
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from haft.contracts import NO_SECRETS, Definitions, DescribeLauncher, DiscoveredTool, Environments, Secrets, ToolSpec
from haft.sources.agent_studio.discover import (
    ConfiguredInstance,
    Instance,
    TemplateDirectory,
    identity_of_template,
    instances,
    own_folders,
)
from haft.sources.agent_studio.parse import parse_source
from haft.sources.agent_studio.preload import preloadable_statements
from haft.sources.agent_studio.template import Problem
from haft.sources.agent_studio.template_reader import read_template
from haft.sources.agent_studio.tool import TemplateTool, bare_spec, spec_of, why_unset
from haft.sources.port import ProgressCallback, Target, ToolSource

if TYPE_CHECKING:
    from haft.sources.checks.findings import Report

GROUP: Final = "agent-studio:"
FORM: Final = 4
"""The version of the cache entries."""
LARGEST: Final = 1_000_000

CacheEntry = dict[str, Any]


class Templates(ToolSource):
    """The source of Agent Studio templates."""

    name = "agent-studio"

    def __init__(
        self,
        directories: Callable[[], Sequence[TemplateDirectory]],
        instances: Callable[[], Sequence[ConfiguredInstance]],
        definitions: Definitions,
        environments: Environments,
        cold: Collection[str] = (),
    ) -> None:
        """`cold` has the names of templates and tools that the warm pool never keeps loaded."""
        self._directories = directories
        self._instances = instances
        self._definitions = definitions
        self._environments = environments
        self._cold = frozenset(cold)
        self._seen: list[Instance] = []
        self._kept: dict[str, dict[str, CacheEntry]] = {}
        self._unsaved: set[str] = set()
        self._secrets = NO_SECRETS

    @property
    def secrets(self) -> Secrets:
        """The values of the secret user parameters of all tools."""
        return self._secrets

    def find(self) -> Iterable[DiscoveredTool]:
        self._look()
        return list(self.found())

    async def refresh(
        self, launcher: DescribeLauncher, progress: ProgressCallback, *, retry_name: str | None = None
    ) -> Iterable[DiscoveredTool] | None:
        import asyncio

        return list(self.found()) if await asyncio.to_thread(self._look) else None

    def _look(self) -> bool:
        """Look for templates again. Returns whether anything changed."""
        before, self._seen = self._seen, instances(self._directories(), self._instances())
        return self._seen != before

    def places(self) -> Iterable[str]:
        yield from (place.directory for place in self._directories())
        for folder in self.folders():
            yield from own_folders(folder)

    def is_current(self, spec: ToolSpec) -> bool:
        seen = next((each for each in self._seen if each.folder == spec.origin), None)
        return seen is not None and identity_of_template(seen.folder) == seen.identity

    def folders(self) -> list[str]:
        """The folders of all templates."""
        return [each.folder for each in self._seen]

    async def check(self, target: Target, launcher: DescribeLauncher, reserved: Collection[str]) -> Sequence[Report]:
        from haft.sources.agent_studio.check import check_template

        return [check_template(target.path, reserved)]

    def cure(self, spec: ToolSpec) -> str:
        return f"haft templates check {spec.origin}"

    def found(self) -> Iterator[DiscoveredTool]:
        """Every tool. For a template that gives no tool, the reason."""
        holders: dict[tuple[str | None, str], str] = {}
        for each in self._seen:
            one = self._found(each)
            if isinstance(one.tool, TemplateTool):
                self._secrets |= one.tool.secrets
            scope = each.workflow, one.spec.name
            if one.tool is not None and one.state == "ready" and scope in holders:
                among = "without a workflow" if each.workflow is None else f"in the workflow `{each.workflow}`"
                reason = f"the name `{each.name}` is taken by {holders[scope]}: names are unique {among}"
                yield DiscoveredTool(one.spec, None, "duplicate", reason)
                continue
            if one.tool is not None and one.state == "ready":
                holders[scope] = each.folder
            yield one
        self._save()

    def _found(self, each: Instance) -> DiscoveredTool:
        if each.problem is not None:
            return DiscoveredTool(bare_spec(each), None, "broken", each.problem)
        known = self._known(each)
        if "problem" in known:
            return DiscoveredTool(bare_spec(each), None, "broken", known["problem"])
        spec = spec_of(known, each)
        is_warm = self._cold.isdisjoint((each.name, spec.name))
        tool = TemplateTool(spec, each, known, self._environments, is_warm)
        why = why_unset(each, known)
        return DiscoveredTool(spec, tool) if why is None else DiscoveredTool(spec, tool, "needs-config", why)

    def _known(self, each: Instance) -> CacheEntry:
        group = f"{GROUP}{os.path.dirname(each.folder)}"
        if group not in self._kept:
            self._kept[group] = self._definitions.load(group)
        known = self._kept[group].get(each.folder, {})
        if known.get("identity") != each.identity or known.get("form") != FORM:
            known = {"identity": each.identity, "form": FORM, **read(each)}
            self._kept[group] = {**self._kept[group], each.folder: known}
            self._unsaved.add(group)
        return known

    def _save(self) -> None:
        seen = {each.folder for each in self._seen}
        for group in self._unsaved:
            self._definitions.save(group, {key: one for key, one in self._kept[group].items() if key in seen})
        self._unsaved.clear()


def read(instance: Instance) -> CacheEntry:
    """The cache entry of a template, read from its `tool.py`. If the template cannot be used, the entry has only a
    `problem`."""
    try:
        with open(instance.entry, "rb") as file:
            source = file.read(LARGEST)
    except OSError as error:
        return {"problem": f"{instance.entry} cannot be read: {error.strerror}"}
    found = read_template(source)
    if isinstance(found, Problem) or found.breaches:
        first = found if isinstance(found, Problem) else found.breaches[0]
        where = f"{instance.entry}:{first.line}" if first.line else instance.entry
        return {"problem": f"{where}: {first.message}; `haft templates check {instance.folder}` says more"}
    return {
        "digest": hashlib.sha256(source).hexdigest(),
        "description": found.description,
        "inputSchema": dict(found.tool.schema),
        "userSchema": dict(found.user.schema),
        "userParameters": [
            {
                "name": one.name,
                "key": one.key,
                "type": _type(one.schema),
                "required": one.required,
                "description": one.description,
            }
            for one in found.user.fields
        ],
        "isStrict": found.is_strict,
        "userNulls": list(found.user.null_when_absent),
        "toolNulls": list(found.tool.null_when_absent),
        "outputKey": found.output_key,
        "imports": list(found.imports),
        "ahead": _ahead(source, instance),
    }


def _type(schema: Mapping[str, Any]) -> str:
    """The type of a user parameter, in a few words."""
    options = schema.get("anyOf", [schema])
    return " | ".join(dict.fromkeys(str(one.get("type", "any")) for one in options))


def _ahead(source: bytes, instance: Instance) -> int:
    """The number of the template's statements that can run before a call is known."""
    module = parse_source(source)
    beside = {os.path.splitext(os.path.relpath(path, instance.folder).split("/")[0])[0] for path in instance.files}
    return (preloadable_statements(module, beside) or 0) if isinstance(module, ast.Module) else 0
