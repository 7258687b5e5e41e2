"""All types of sub-agents of one workspace: from the embedding program, the configuration, Markdown files, and haft.

The first usable type with a name counts. The built-in types come last, but their names are never given to other types.
Nothing is read before somebody asks.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from haft.agents.agent_type import AgentType, ListedType
from haft.agents.builtin_types import BUILTIN_TYPES
from haft.agents.front_matter import parse_definition
from haft.agents.type_files import (
    CLAUDE_CODE_PLACE,
    USER_PLACE,
    WORKSPACE_PLACE,
    TypeFile,
    file_paths,
    files_in,
)
from haft.agents.type_reader import Unusable, read_type
from haft.contracts import BadUsage, Provenance, near_miss
from haft.files import digest_of
from haft.values import dataclass, replace

_WITHOUT_TRUST: Final = "nobody trusts it yet: `haft trust` shows it"


@dataclass(frozen=True, slots=True)
class TypeTables:
    """The types that one place of the configuration names."""

    source: str
    provenance: Provenance
    tables: Mapping[str, Any]
    is_trusted: bool = True


class AgentTypes:
    """The types of one workspace."""

    def __init__(
        self,
        workspace: str,
        tables: Sequence[TypeTables] = (),
        trusted: Callable[[], Mapping[str, str]] = dict,
        env: Mapping[str, str] = os.environ,
    ) -> None:
        """`tables` are the types in the configuration, the strongest place first. `trusted` returns the files of
        the workspace that a person trusts now: the path of each, and the digest of its bytes."""
        self._workspace = workspace
        self.tables = tables
        self._trusted = trusted
        home = env.get("HOME") or os.path.expanduser("~")
        self._home = home if os.path.isabs(home) else ""

    def listed(self) -> list[ListedType]:
        """Every type, also those that cannot be used, in the order in which they count."""
        found: list[ListedType] = []
        taken: dict[str, str] = {}
        for one in self._all():
            if one.is_usable and one.name in taken:
                one = replace(one, state="hidden", problem=f"{taken[one.name]} has a type of this name, which counts")
            elif one.is_usable:
                taken[one.name] = one.origin
            found.append(one)
        return found

    def usable(self) -> list[AgentType]:
        """The types that can be used."""
        return [one.type for one in self.listed() if one.is_usable and one.type is not None]

    def named(self, name: str) -> AgentType:
        """The usable type with this name. Raises `BadUsage` if there is none."""
        builtin = next((one for one in BUILTIN_TYPES if one.name == name), None)
        if builtin is not None:
            return builtin
        found = self.listed()
        named = [one for one in found if one.name == name]
        for one in named:
            if one.is_usable and one.type is not None:
                return one.type
        if named:
            where = f" ({named[0].origin})" if named[0].origin else ""
            raise BadUsage(f"the sub-agent `{name}`{where} cannot be used: {named[0].problem}")
        usable = [one.name for one in found if one.is_usable]
        near = near_miss(name[:80], usable)
        hint = f"did you mean `{near}`?" if near else f"the types are {', '.join(usable)}"
        raise BadUsage(f"there is no type of sub-agent called `{name[:80]}`", hint=hint)

    def names(self) -> list[str]:
        """The names that types probably have: of files, only their own names are read."""
        names = [name for one in self.tables if one.is_trusted for name in one.tables]
        for place in self.places():
            names += [os.path.basename(path).removesuffix(".md") for path in file_paths(place)]
        return list(dict.fromkeys([*(one.name for one in BUILTIN_TYPES), *names]))

    def places(self) -> list[str]:
        """The folders with Markdown files, in the order in which they count."""
        return [*self._own_places(), *self._places_of_claude_code()]

    def waiting_files(self) -> list[TypeFile]:
        """The files of the workspace that define a type and wait for trust."""
        trusted = self._trusted()
        return [
            file
            for place in self.places()
            for file in files_in(place, self._workspace)
            if file.problem is None and not _is_trusted(file, trusted)
        ]

    def _all(self) -> Iterator[ListedType]:
        own, trusted = self._own_places(), self._trusted()
        for one in self.tables:
            if one.provenance != "user":
                yield from types_in_tables(one)
        yield from self._in_folder(own[0], trusted)
        for one in self.tables:
            if one.provenance == "user":
                yield from types_in_tables(one)
        for place in (*own[1:], *self._places_of_claude_code()):
            yield from self._in_folder(place, trusted)
        for builtin in BUILTIN_TYPES:
            yield ListedType(builtin.name, "", "builtin", builtin)

    def _own_places(self) -> list[str]:
        return self._both(WORKSPACE_PLACE, USER_PLACE)

    def _places_of_claude_code(self) -> list[str]:
        return self._both(CLAUDE_CODE_PLACE, CLAUDE_CODE_PLACE)

    def _both(self, in_workspace: str, in_home: str) -> list[str]:
        """A folder of the workspace, and one of the user. If the home directory is the workspace, they may be the
        same."""
        first, second = os.path.join(self._workspace, in_workspace), os.path.join(self._home, in_home)
        is_other = self._home and os.path.realpath(second) != os.path.realpath(first)
        return [first, second] if is_other else [first]

    def _in_folder(self, place: str, trusted: Mapping[str, str]) -> Iterator[ListedType]:
        for file in files_in(place, self._workspace):
            listed = type_of_file(file)
            if listed.is_usable and not _is_trusted(file, trusted):
                listed = replace(listed, state="untrusted", problem=_WITHOUT_TRUST)
            yield listed


def _is_trusted(file: TypeFile, trusted: Mapping[str, str]) -> bool:
    return file.inside is None or trusted.get(file.inside) == digest_of(file.data)


def type_of_file(file: TypeFile) -> ListedType:
    """The type that a file defines, whether or not somebody trusts the file."""
    broken = ListedType(file.stem, file.path, file.provenance, None, "broken")
    if file.problem is not None:
        return replace(broken, problem=file.problem)
    found = parse_definition(file.data)
    if found.problem is not None:
        return replace(broken, problem=found.problem)
    try:
        read = read_type(found.keys, found.prompt, provenance=file.provenance, origin=file.path)
    except Unusable as error:
        return replace(broken, problem=str(error))
    return ListedType(read.name, file.path, file.provenance, read)


def types_in_tables(named: TypeTables) -> Iterator[ListedType]:
    """The types that one place of the configuration defines, in the order of its tables."""
    for name, table in named.tables.items():
        broken = ListedType(str(name), named.source, named.provenance, None, "broken")
        if not isinstance(table, Mapping):
            yield replace(broken, problem="it is not a table")
            continue
        prompt = table.get("prompt", "")
        keys = {key: value for key, value in table.items() if key != "prompt"}
        try:
            if not isinstance(prompt, str):
                raise Unusable("its `prompt` is not a text")
            if "name" in keys:
                raise Unusable("its name is the name of its table; leave out `name`")
            read = read_type({"name": name, **keys}, prompt, provenance=named.provenance, origin=named.source)
        except Unusable as error:
            yield replace(broken, problem=str(error))
            continue
        listed = ListedType(read.name, named.source, named.provenance, read)
        yield listed if named.is_trusted else replace(listed, state="untrusted", problem=_WITHOUT_TRUST)
