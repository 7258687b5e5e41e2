"""The bash plugins of one workspace: their files, what is known of each, and the tools that come of it."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from haft.contracts import Command, Definitions, Found, Launcher, State, ToolSpec, clean_tool_name
from haft.sources.amp_toolbox.starting import own_places
from haft.sources.answers import FAIR_SECONDS, NOT_ASKED, UNWALLED, Answers, Known, Told
from haft.sources.bash_plugin.finding import PluginFile
from haft.sources.bash_plugin.tool import BashPluginTool, Policy, spec_of
from haft.sources.identity import identity_at

NOT_ALLOWED: Final = "bash tools are not allowed: set `plugin_policy.allow_bash_tools = true`"


class BashPlugins:
    """The source of bash plugins. `files` gives those that are configured; `why_disabled` says of one why it is off."""

    def __init__(
        self,
        files: Callable[[], Sequence[PluginFile]],
        definitions: Definitions,
        policy: Policy,
        why_disabled: Callable[[PluginFile], str | None] = lambda _file: None,
    ) -> None:
        self._files = files
        self._answers = Answers(definitions)
        self._policy = policy
        self._why_disabled = why_disabled
        self._seen: list[PluginFile] = []
        self._unasked: frozenset[str] = frozenset()

    def look(self) -> bool:
        """See what lies there now; whether that is anything else than before."""
        before, self._seen = self._seen, list(self._files())
        return self._seen != before

    def is_current(self, path: str) -> bool:
        """Whether a file is still the one that was seen."""
        seen = next((each for each in self._seen if each.path == path), None)
        return seen is not None and identity_at(path) == seen.identity

    def unknown(self) -> list[PluginFile]:
        """The files that have to be asked what they are. None where their tools could not be called anyway."""
        return [each for each in self._seen if self._why_not(each) is None and self._answers.is_outdated(each)]

    async def ask(
        self, launcher: Launcher, told: Told = lambda _done, _all: None, *, but: frozenset[str] = frozenset()
    ) -> None:
        """Ask those that are not known, and keep what they say; `but` those of these provenances."""
        self._unasked = but
        wanted = [each for each in self.unknown() if each.provenance not in but]
        if wanted:
            await self._answers.ask(wanted, self._seen, describe, launcher, told)

    def found(self) -> Iterator[Found]:
        """Every file, as the tool that it is, or why it is none."""
        for each in self._seen:
            why_not = self._why_not(each)
            if why_not is not None:
                yield Found(_bare(each), None, *why_not)
                continue
            known = self._answers.of(each)
            if known.get("identity") != each.identity:
                why = UNWALLED if each.provenance in self._unasked else NOT_ASKED
                yield Found(_bare(each), None, "broken", why)
            elif "problem" in known:
                yield Found(_bare(each), None, "broken", f"{each.path}: {known['problem']}")
            else:
                yield as_found(known, each, self._policy)

    def _why_not(self, each: PluginFile) -> tuple[State, str] | None:
        if each.problem is not None:
            return "broken", f"{each.path}: {each.problem}"
        if not self._policy.is_allowed:
            return "disabled", NOT_ALLOWED
        why = self._why_disabled(each)
        return None if why is None else ("disabled", why)


def as_found(known: Mapping[str, Any], each: PluginFile, policy: Policy) -> Found:
    """A tool from what is known of it."""
    spec = spec_of(known, each, policy)
    return Found(spec, BashPluginTool(spec, each, known, policy))


async def describe(file: PluginFile, launcher: Launcher, seconds: float) -> Known:
    """What a file says of itself."""
    from haft.sources.asking import ask, tail_of
    from haft.sources.bash_plugin.schema import BadSchema, read_schema

    command = Command(
        ["bash", file.path, "schema"],
        env={"AGENT_TOOL_PYTHON": sys.executable},
        readable=tuple(own_places(file.path, file.folder)),
    )
    said = await ask(command, launcher, seconds=seconds)
    known: Known = {"identity": file.identity}
    again = f"`haft tools check {file.path}` asks it again"
    try:
        if said.failure is not None:
            raise BadSchema(f"it could not be asked for its schema: {said.failure}", again)
        if said.is_flood:
            raise BadSchema("it said more than anyone reads when asked for its schema", "print one JSON object")
        if said.is_late:
            raise BadSchema(f"it did not print its schema within {seconds:.2g} s", again)
        if said.exit_code != 0:
            raise BadSchema(f"`schema` exited {said.exit_code}", "print the schema and exit 0")
        return known | read_schema(said.stdout)
    except BadSchema as error:
        stderr = f"; stderr: {tail_of(said.stderr)}" if said.stderr.strip() else ""
        known["problem"] = f"{error.message}; {error.cure}{stderr}"
        known["passing"] = said.is_machine or (said.is_late and seconds < FAIR_SECONDS)
    return known


def _bare(each: PluginFile) -> ToolSpec:
    """What can be said of a file that has not spoken."""
    stem = os.path.splitext(os.path.basename(each.path))[0]
    return ToolSpec(
        name=clean_tool_name(stem),
        kind="bash-plugin",
        description="",
        input_schema={"type": "object", "properties": {}},
        provenance=each.provenance,
        origin=each.path,
        hosting="per-call",
        meta={"plugin": {"reference": each.reference.written}},
    )
