"""The built-in tool `skill`, with which an agent reads a skill and gets the tools of that skill.

The tool counts as read-only: it only changes which tools are active in the thread of the call, and haft decides
separately about each call of these tools.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from haft.contracts import Answer, BadUsage, Effects, InvalidArguments, Listing, ToolContext, ToolName, ToolSpec
from haft.files import digest_of, shown
from haft.sources.skills.activations import Activations
from haft.sources.skills.discover import Skills
from haft.sources.skills.skill import SKILL_FILE, Skill
from haft.sources.skills.texts import server_names

NAME: Final = "skill"
MOST_LISTED: Final = 50
LONGEST_LINE: Final = 200

_ABOUT: Final = (
    "Read a skill: instructions for a kind of work, written for this workspace or by its user.\n"
    "Use it before you begin work that one of the skills below is about. It returns the skill's text, and you can call "
    "the skill's own tools for the rest of this thread. With `reference` it returns another text of the skill, such as "
    "one that its instructions name."
)

_PROPERTIES: Final[dict[str, Any]] = {
    "name": {"type": "string", "minLength": 1, "description": "The skill's name, as listed."},
    "reference": {
        "type": "string",
        "minLength": 1,
        "description": "A text in the skill's folder, such as `references/setup.md` or `setup`. Default: SKILL.md.",
    },
}


class SkillTool:
    """The tool `skill(name, reference?)`."""

    def __init__(
        self,
        skills: Skills,
        activations: Activations,
        changed: Callable[[], Awaitable[None] | None],
        listed: Callable[[str | None], Sequence[Listing]] = lambda _thread: (),
    ) -> None:
        """The tool calls `changed` after it has made a skill active, and awaits the result unless it is None. `listed`
        gets a thread and returns the tools of this thread."""
        self._listed = listed
        self._skills = skills
        self._activations = activations
        self._changed = changed
        self._described: tuple[tuple[Skill, ...], ToolSpec] | None = None

    @property
    def spec(self) -> ToolSpec:
        """The spec of this tool. Its description lists the skills that the last scan found."""
        found = self._skills.last_found()
        if self._described is None or self._described[0] is not found:
            self._described = (found, _spec([skill for skill in found if skill.is_usable]))
        return self._described[1]

    async def preprocess(self, arguments: dict[str, Any], context: ToolContext) -> dict[str, Any]:
        return arguments

    async def invoke(self, arguments: dict[str, Any], context: ToolContext) -> Answer:
        reference = arguments.get("reference")
        try:
            skill = self._skills.get(arguments["name"])
            text = self._skills.text(skill, reference)
        except BadUsage as error:
            raise InvalidArguments(NAME, [error.message], hint=error.hint) from error
        if self._activations.activate(skill.folder, context.thread):
            news = self._changed()
            if news is not None:
                await news
        own = [one for one in self._listed(context.thread) if one.spec.meta.get("skillFolder") == skill.folder]
        ready = [one.spec.name for one in own if one.enabled]
        others = {str(one.spec.name): _line(f"{one.state}: {one.reason}") for one in own if not one.enabled}
        try:
            servers, flaw = server_names(skill), None
        except BadUsage as error:
            servers, flaw = [], error.message
        notes = [*_after(skill, reference, ready, others), *_of_servers(servers, flaw)]
        return Answer(
            text=text.rstrip("\n") + "".join(f"\n\n[{sentence}]" for sentence in notes),
            result={
                "name": skill.name,
                "reference": reference or SKILL_FILE,
                "folder": skill.folder,
                "tools": ready,
                "notReady": others,
                "mcpServers": servers,
            },
        )


def _after(skill: Skill, reference: str | None, ready: Sequence[str], others: Mapping[str, str]) -> Iterator[str]:
    """The notes that follow the text of a skill: about the skill's other texts, and about its tools."""
    if reference is None and (texts := skill.references()):
        yield f"Other texts of this skill, by `reference`: {', '.join(shown(path) for path in texts)}."
    if ready:
        yield f"These tools of this skill can be called now: {', '.join(f'`{name}`' for name in ready)}."
    for name, reason in others.items():
        yield f"The tool `{name}` of this skill cannot be called, it is {reason}."


def _of_servers(servers: Sequence[str], flaw: str | None) -> Iterator[str]:
    if servers:
        named = ", ".join(f"`{_line(name)}`" for name in servers)
        yield f"MCP servers of this skill: {named}. A server starts only after the person has trusted it."
    if flaw is not None:
        yield _line(flaw)


def _spec(usable: list[Skill]) -> ToolSpec:
    lines = [f"- {skill.name}: {_line(skill.description)}" for skill in usable[:MOST_LISTED]]
    if len(usable) > MOST_LISTED:
        lines.append(f"- and {len(usable) - MOST_LISTED} more")
    listed = "\n".join(["Skills:", *lines]) if lines else "There are no skills here."
    description = f"{_ABOUT}\n\n{listed}"
    schema = {"type": "object", "properties": _PROPERTIES, "required": ["name"], "additionalProperties": False}
    definition = json.dumps([NAME, description, schema], sort_keys=True)
    return ToolSpec(
        name=ToolName(NAME),
        kind="builtin",
        description=description,
        input_schema=schema,
        effects=Effects(readonly=True, idempotent=True),
        provenance="builtin",
        origin=__name__,
        digest=digest_of(definition.encode()),
        hosting="in-process",
    )


def _line(text: str) -> str:
    line = shown(" ".join(text.split()))
    return line if len(line) <= LONGEST_LINE else line[: LONGEST_LINE - 1] + "…"
