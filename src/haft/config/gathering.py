"""What every source of settings says, taken in one after the other, the weakest first."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from haft.config.files import ConfigFile, unknown_setting
from haft.config.narrowing import FREE_TABLES, NOTHING, Ignored, narrowed, narrowed_rules
from haft.config.placeholders import (
    Unset,
    expanded,
    filled_secrets,
    has_placeholder,
    missing_in,
    why_unfilled,
    with_places,
)
from haft.config.renamed import name_of_today
from haft.config.rule_sets import RuleSet
from haft.config.settings import BY_NAME, RENAMED, SETTINGS, Setting
from haft.config.values import UNSET
from haft.contracts import BadConfig, texts_in

if TYPE_CHECKING:
    from haft.policy import RuleOrigin

CALLER: Final = "the caller"
BY_ENTRY: Final = frozenset(
    {"cli", "config", "plugins", "providers", "templates.instances", "templates.paths", "toolbox.paths"}
)
"""Settings whose entries stand for themselves: one that asks for a variable which is not set disables what uses it. Any
other setting holds for every call, and guessing its value could open what it was to close."""


class Gathered:
    """What the sources said so far, the weakest first."""

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
        self.unset: list[Unset] = []
        self.filled: set[str] = set()
        """Secrets that were filled in."""
        self.beneath: dict[str, tuple[Any, str]] = {}
        """Of settings that a workspace sets for its own tools alone: what counts for others, and its source."""

    def take_file(self, file: ConfigFile, origin: RuleOrigin) -> None:
        """All of a file."""
        self.files.append(file.path)
        for name, written in file.settings():
            written = self._with_places(written, file)
            written, unset = self._parted(name, written, file)
            try:
                value = expanded(_settled(written, self._env) if name == "templates.instances" else written, self._env)
            except ValueError as error:
                where = file.where(missing_in(written, self._env) or name)
                raise BadConfig(f"{where}: `{name}` {error}") from None
            self.filled.update(filled_secrets(written, self._env))
            value = _checked(BY_NAME[name], value, file.path, written)
            if name == "permissions":
                self._take_rules(RuleSet(origin, file.shown, value, file.lines(len(value)), self._workspace), file.path)
                continue
            if name == "tools.timeout":
                value = {**self.values[name], **value}
            self.take(name, value, file.path, has_placeholder(written) and written)
            self.unset += unset

    def take_untrusted(self, file: ConfigFile) -> None:
        """Of a workspace's file what narrows."""
        self.files.append(file.path)
        for name, written in file.settings():
            if name == "permissions":
                self._take_untrusted_rules(file, _checked(BY_NAME[name], written, file.path))
                continue
            setting = BY_NAME[name]
            written = self._with_places(written, file)
            is_whole = name == "templates.instances" or not has_placeholder(written)
            value = _checked(setting, written, file.path) if is_whole else written
            if name == "sandbox.network" and self.values[name] == "never" and is_whole:
                self.take(name, value, file.path)  # Trust would not change what becomes of it.
                continue
            kept, aside = narrowed(setting, value, self.values, file.path)
            self.ignored += aside
            if name == "tools.timeout" and kept is not NOTHING:
                kept = {**self.values[name], **kept}
            if kept is not NOTHING:
                beneath = self.values[name], self.sources[name]
                self.take(name, kept, file.path)
                if setting.narrowing == "own-tools":
                    self.beneath[name] = beneath

    def _parted(self, name: str, written: Any, file: ConfigFile) -> tuple[Any, list[Unset]]:
        """The entries of a setting whose variables are set, and the others."""
        if name not in BY_ENTRY or not isinstance(written, dict | list):
            return written, []
        entries: list[tuple[Any, Any]] = list(written.items() if isinstance(written, dict) else enumerate(written))
        kept, unset = [], []
        for key, one in entries:
            # The tool itself says which of its user parameters is missing.
            is_tool = name == "templates.instances" and isinstance(one, dict)
            asked = {**one, "user_params": None} if is_tool else one
            why = why_unfilled(asked, self._env)
            if why is None:
                kept.append((key, one))
                continue
            place = missing_in(asked, self._env) or ""
            told = next((text for text in texts_in(asked) if place in text), place)
            entry = key if isinstance(key, str) else str(one.get("name", told)) if is_tool else told
            unset.append(Unset(name, entry, why, file.where(told, entry)))
        return (dict(kept) if isinstance(written, dict) else [one for _number, one in kept]), unset

    def _take_untrusted_rules(self, file: ConfigFile, tables: list[dict[str, Any]]) -> None:
        from haft.policy import rule_source

        lines = file.lines(len(tables))
        sources = [rule_source(file.shown, number, lines) for number in range(len(tables))]
        counting, aside = narrowed_rules(tables, sources)
        self.ignored += aside
        self._take_rules(RuleSet("workspace", file.shown, tables, lines, self._workspace, tuple(counting)), file.path)

    def _take_rules(self, rules: RuleSet, source: str) -> None:
        counting = range(len(rules.tables)) if rules.counting is None else rules.counting
        name = "permissions"
        self.rule_sets.insert(0, rules)
        self.values[name] = [*(rules.tables[number] for number in counting), *self.values[name]]
        if counting:
            self.sources[name] = f"{source}, {self.sources[name]}" if self._is_set(name) else source

    def take(self, name: str, value: Any, source: str, written: Any = None) -> None:
        """A checked value of a source stronger than all before."""
        self.beneath.pop(name, None)
        if name == "permissions":
            self._take_rules(RuleSet("caller", source, value, None, self._workspace), source)
            return
        if name == "sandbox.network" and self.values[name] == "never" and value != "never":
            why = f"{self.sources[name]} says `never`, which stays"
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
    """The settings that variables set, checked. One that is misspelt is an error."""
    every = {_variable(name): name for name in (*BY_NAME, *RENAMED)}
    variables = {variable: name for variable, name in every.items() if BY_NAME[RENAMED.get(name, name)].variable}
    prefixes = tuple({f"HAFT_{name.split('.')[0].upper()}_" for name in every.values() if "." in name})
    written: dict[str, str] = {}
    for variable, text in env.items():
        if variable in variables:
            old = variables[variable]
            name = name_of_today(old, variable, written, new=_variable(RENAMED.get(old, old)))
            yield name, _checked(BY_NAME[name], text, variable), variable
        elif variable in every:
            hint = "write it into a file, or pass it as `settings`"
            raise BadConfig(f"{variable}: `{every[variable]}` cannot be set by a variable", hint=hint)
        elif variable.startswith(prefixes):
            raise unknown_setting(variable, variables, "the environment")


def _variable(name: str) -> str:
    return f"HAFT_{name.replace('.', '_').upper()}"


def from_caller(passed: Mapping[str, Any]) -> Iterator[tuple[str, Any, str]]:
    """The settings that a program passes, checked."""
    written: dict[str, str] = {}
    for old, value in passed.items():
        name = name_of_today(old, CALLER, written)
        if name not in BY_NAME:
            raise unknown_setting(name, BY_NAME, CALLER)
        yield name, _checked(BY_NAME[name], value, CALLER), CALLER


def _settled(instances: Any, env: Mapping[str, str]) -> Any:
    """Tools made of templates without the parameters whose variables are not set: such a tool says what it needs, and
    the others work."""
    if not isinstance(instances, list):
        return instances
    found = []
    for one in instances:
        given = one.get("user_params") if isinstance(one, dict) else None
        if isinstance(given, dict):
            unset = {key: why for key, each in given.items() if (why := why_unfilled(each, env)) is not None}
            kept = {key: each for key, each in given.items() if key not in unset}
            one = {**one, "user_params": kept, **({UNSET: unset} if unset else {})}
        found.append(one)
    return found


def _checked(setting: Setting, value: Any, source: str, written: Any = None) -> Any:
    """`written` is shown instead of the value, which may hold what a placeholder was filled with."""
    try:
        return setting.check(value)
    except ValueError as error:
        # What may be secret is not printed, whatever is wrong beside it.
        shown = "" if setting.name in FREE_TABLES else f", not {value if written is None else written!r}"
        raise BadConfig(f"{source}: `{setting.name}` {error}{shown}") from error
