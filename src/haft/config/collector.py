"""Collects the settings of all sources, such as files and variables, one after the other, the weakest first."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from haft.config.files import ConfigFile, unknown_setting
from haft.config.narrowing import FREE_TABLES, NOTHING, Ignored, narrowed, narrowed_rules
from haft.config.placeholders import (
    MissingVariable,
    expanded,
    filled_secrets,
    has_placeholder,
    missing_in,
    why_unfilled,
    with_places,
)
from haft.config.renamed_settings import current_name
from haft.config.rule_sets import RuleSet
from haft.config.settings import BY_NAME, RENAMED, SETTINGS, WHY_NOT, Setting
from haft.config.values import MISSING_VARIABLES, UNUSABLE
from haft.contracts import BadConfig, secret_names, texts_in
from haft.values import dataclass

if TYPE_CHECKING:
    from haft.policy import RuleOrigin

CALLER: Final = "the caller"
BY_ENTRY: Final = frozenset(
    {"cli", "config", "plugins", "subagents.types", "templates.instances", "templates.paths", "toolbox.paths"}
)
"""Settings whose entries are independent: if an entry needs a variable that is not set, haft ignores only this entry.
In any other setting, a missing variable is an error: the setting applies to every call, and a guessed value could
permit what it should forbid."""


@dataclass(frozen=True, slots=True)
class ProviderTables:
    """The MCP servers that one source names."""

    source: str
    """The path of the file; `the caller` if the embedding program names them."""
    tables: Mapping[str, Any]
    """The servers by name, with placeholders as they are written. A value may be anything."""
    is_trusted: bool = True
    """False if the file belongs to a workspace that nobody has trusted."""


class SettingsCollector:
    """The settings of all sources that were added so far. Add the weakest source first."""

    def __init__(self, workspace: str | None, env: Mapping[str, str]) -> None:
        self._workspace = os.path.realpath(workspace or "/")
        self._env = env
        self.values: dict[str, Any] = {setting.name: setting.default for setting in SETTINGS}
        self.sources = dict.fromkeys(self.values, "default")
        self.ignored: list[Ignored] = []
        self.files: list[str] = []
        self.lists: dict[str, list[tuple[str, tuple[str, ...]]]] = {}
        self.rule_sets: list[RuleSet] = []
        self.written: dict[str, Any] = {}
        self.unset: list[MissingVariable] = []
        self.filled: set[str] = set()
        """The secret values of variables that were filled in for placeholders."""
        self.providers: list[ProviderTables] = []
        """The MCP servers of each source, the strongest source last, with placeholders as they are written."""
        self.agent_types: list[tuple[str, Mapping[str, Any]]] = []
        """The types of sub-agents of each source, the strongest source first."""
        self.for_other_tools: dict[str, tuple[Any, str]] = {}
        """For settings that an untrusted workspace sets only for its own tools: the value for all other tools, and the
        source of that value."""

    def add_file(self, file: ConfigFile, origin: RuleOrigin) -> None:
        """Add all settings of a file."""
        self.files.append(file.path)
        for name, written in file.settings():
            written = self._with_places(written, file)
            if name != "config" and (needed := secret_names(written)):
                place = f"${{secret:{needed[0]}}}"
                raise BadConfig(
                    f"{file.where(place)}: `{name}` contains `{place}`, which only `[config]` may contain",
                    hint="haft fills it in for one call of a bash plugin; a process of all callers cannot have it",
                )
            if name == "providers":
                self.filled.update(filled_secrets(written, self._env))
                self.add(name, _checked(BY_NAME[name], written, file.path), file.path)
                continue
            written, unset = self._split_by_variables(name, written, file)
            try:
                value = expanded(
                    _without_missing(written, self._env) if name == "templates.instances" else written, self._env
                )
            except ValueError as error:
                where = file.where(missing_in(written, self._env) or name)
                raise BadConfig(f"{where}: `{name}` {error}") from None
            self.filled.update(filled_secrets(written, self._env))
            value = _checked(BY_NAME[name], value, file.path, written)
            if name == "permissions":
                self._add_rules(RuleSet(origin, file.shown, value, file.lines(len(value)), self._workspace), file.path)
                continue
            if name in ("tools.timeout", "subagents.models"):
                value = {**self.values[name], **value}
            self.add(name, value, file.path, has_placeholder(written) and written)
            self.unset += unset

    def add_untrusted_file(self, file: ConfigFile) -> None:
        """Add the settings that an untrusted workspace's file may set, such as those that only restrict."""
        self.files.append(file.path)
        for name, written in file.settings():
            if name == "permissions":
                self._add_untrusted_rules(file, _checked(BY_NAME[name], written, file.path))
                continue
            setting = BY_NAME[name]
            written = self._with_places(written, file)
            if name == "providers":
                self._add_untrusted_providers(setting, _checked(setting, written, file.path), file.path)
                continue
            is_whole = name == "templates.instances" or not has_placeholder(written)
            value = _checked(setting, written, file.path) if is_whole else written
            if name == "sandbox.network" and self.values[name] == "never" and is_whole:
                self.add(name, value, file.path)  # `add` ignores the value, trusted or not.
                continue
            kept, aside = narrowed(setting, value, self.values, file.path)
            self.ignored += aside
            if name == "tools.timeout" and kept is not NOTHING:
                kept = {**self.values[name], **kept}
            if kept is not NOTHING:
                for_other_tools = self.values[name], self.sources[name]
                self.add(name, kept, file.path)
                if setting.narrowing == "own-tools":
                    self.for_other_tools[name] = for_other_tools

    def _add_untrusted_providers(self, setting: Setting, tables: dict[str, Any], source: str) -> None:
        """Add the MCP servers of an untrusted file. Each starts only after a person trusted it, or the whole file."""
        known = self.values[setting.name]
        waiting = {name: one for name, one in tables.items() if known.get(name) != one}
        if waiting:
            self.ignored.append(Ignored(setting.name, waiting, source, WHY_NOT[setting.narrowing]))
            self.providers.append(ProviderTables(source, waiting, is_trusted=False))

    def _split_by_variables(self, name: str, written: Any, file: ConfigFile) -> tuple[Any, list[MissingVariable]]:
        """A setting without the entries that need unset variables; and one `MissingVariable` for each of these
        entries."""
        if name not in BY_ENTRY or not isinstance(written, dict | list):
            return written, []
        entries: list[tuple[Any, Any]] = list(written.items() if isinstance(written, dict) else enumerate(written))
        kept, unset = [], []
        for key, one in entries:
            # `user_params` are not checked here: a tool with a missing parameter stays listed and reports it.
            is_tool = name == "templates.instances" and isinstance(one, dict)
            asked = {**one, "user_params": None} if is_tool else one
            why = why_unfilled(asked, self._env)
            if why is None:
                kept.append((key, one))
                continue
            place = missing_in(asked, self._env) or ""
            shown = next((text for text in texts_in(asked) if place in text), place)
            entry = key if isinstance(key, str) else str(one.get("name", shown)) if is_tool else shown
            unset.append(MissingVariable(name, entry, why, file.where(shown, entry)))
        return (dict(kept) if isinstance(written, dict) else [one for _number, one in kept]), unset

    def _add_untrusted_rules(self, file: ConfigFile, tables: list[dict[str, Any]]) -> None:
        from haft.policy import rule_source

        lines = file.lines(len(tables))
        sources = [rule_source(file.shown, number, lines) for number in range(len(tables))]
        counting, aside = narrowed_rules(tables, sources)
        self.ignored += aside
        self._add_rules(RuleSet("workspace", file.shown, tables, lines, self._workspace, tuple(counting)), file.path)

    def _add_rules(self, rules: RuleSet, source: str) -> None:
        counting = range(len(rules.tables)) if rules.counting is None else rules.counting
        name = "permissions"
        self.rule_sets.insert(0, rules)
        self.values[name] = [*(rules.tables[number] for number in counting), *self.values[name]]
        if counting:
            self.sources[name] = f"{source}, {self.sources[name]}" if self._is_set(name) else source

    def add(self, name: str, value: Any, source: str, written: Any = None) -> None:
        """Add a checked value from a source that is stronger than all sources added before. `written` is the value
        before its placeholders were filled; None if it had no placeholders."""
        self.for_other_tools.pop(name, None)
        if name == "permissions":
            self._add_rules(RuleSet("caller", source, value, None, self._workspace), source)
            return
        if name == "providers":
            self.providers.append(ProviderTables(source, value))
            value = {**value, **self.values[name]}
            source = f"{self.sources[name]}, {source}" if self._is_set(name) else source
        if name == "subagents.types":
            self.agent_types.insert(0, (source, value))
            value = {**self.values[name], **value}
            source = f"{self.sources[name]}, {source}" if self._is_set(name) else source
        if name == "sandbox.network" and self.values[name] == "never" and value != "never":
            why = f"{self.sources[name]} sets it to `never`, which no other source can change"
            self.ignored.append(Ignored(name, value, source, why, waits=False))
            return
        if BY_NAME[name].narrowing == "adds":
            self.lists.setdefault(name, []).append((source, tuple(value)))
            before = self.values[name]
            new = [number for number, one in enumerate(value) if one not in before]
            if written or name in self.written:
                written = [*self.written.get(name, before), *((written or value)[number] for number in new)]
            value = [*before, *(value[number] for number in new)]
            source = f"{self.sources[name]}, {source}" if self._is_set(name) else source
        else:
            self.unset = [one for one in self.unset if one.setting != name]
        self.values[name], self.sources[name] = value, source
        self.written.pop(name, None)
        if written:
            self.written[name] = written

    def _with_places(self, value: Any, file: ConfigFile) -> Any:
        return with_places(value, {"CONFIG_DIR": os.path.dirname(file.path), "WORKING_DIR": self._workspace})

    def _is_set(self, name: str) -> bool:
        return self.sources[name] != "default"


def from_environment(env: Mapping[str, str]) -> Iterator[tuple[str, Any, str]]:
    """Yield the checked settings that environment variables set, each with its name and its variable. Raises
    `BadConfig` if a variable looks like a setting but is not one of the settings."""
    every = {_variable(name): name for name in (*BY_NAME, *RENAMED)}
    variables = {variable: name for variable, name in every.items() if BY_NAME[RENAMED.get(name, name)].variable}
    prefixes = tuple({f"HAFT_{name.split('.')[0].upper()}_" for name in every.values() if "." in name})
    written: dict[str, str] = {}
    for variable, text in env.items():
        if variable in variables:
            old = variables[variable]
            name = current_name(old, variable, written, new=_variable(RENAMED.get(old, old)))
            yield name, _checked(BY_NAME[name], text, variable), variable
        elif variable in every:
            hint = "write it into a configuration file, or pass it in `settings`"
            raise BadConfig(f"{variable}: `{every[variable]}` cannot be set by a variable", hint=hint)
        elif variable.startswith(prefixes):
            raise unknown_setting(variable, variables, "the environment")


def _variable(name: str) -> str:
    return f"HAFT_{name.replace('.', '_').upper()}"


def from_caller(passed: Mapping[str, Any]) -> Iterator[tuple[str, Any, str]]:
    """Yield the checked settings that the embedding program passes, each with its name and its source."""
    written: dict[str, str] = {}
    for old, value in passed.items():
        name = current_name(old, CALLER, written)
        if name not in BY_NAME:
            raise unknown_setting(name, BY_NAME, CALLER)
        yield name, _checked(BY_NAME[name], value, CALLER), CALLER


def _without_missing(instances: Any, env: Mapping[str, str]) -> Any:
    """Instances of templates without the parameters that need unset variables. The reasons go under
    `MISSING_VARIABLES`, so that the tool can report what it needs."""
    if not isinstance(instances, list):
        return instances
    found = []
    for one in instances:
        given = one.get("user_params") if isinstance(one, dict) else None
        if isinstance(given, dict):
            unset = {key: why for key, each in given.items() if (why := why_unfilled(each, env)) is not None}
            kept = {key: each for key, each in given.items() if key not in unset}
            one = {**one, "user_params": kept, **({MISSING_VARIABLES: unset} if unset else {})}
        found.append(one)
    return found


def _checked(setting: Setting, value: Any, source: str, written: Any = None) -> Any:
    """The checked value. Errors show `written`, because the value itself may contain a secret from the environment."""
    try:
        return setting.check(value)
    except ValueError as error:
        # Values that may be secret are not printed.
        is_told = setting.name in FREE_TABLES or str(error).startswith(UNUSABLE)
        shown = "" if is_told else f", not {value if written is None else written!r}"
        raise BadConfig(f"{source}: `{setting.name}` {error}{shown}") from error
