"""The settings in force, and the source that each comes from.

The strongest source first: arguments of the program or command line, `HAFT_*` variables, the workspace's `haft.toml` or
`haft.json`, the user's file, the default. Rules of all sources count together, and do not replace each other. The same
holds for lists that only restrict. An untrusted workspace cannot widen anything: a value that permits more than the
other sources is ignored, with a notice, until someone trusts the file.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

from haft.config.collector import ProviderTables, SettingsCollector, from_caller, from_environment
from haft.config.files import ConfigFile, user_config, workspace_config
from haft.config.narrowing import Ignored
from haft.config.placeholders import MissingVariable
from haft.config.rule_sets import RuleSet
from haft.config.settings import ChangesEngine, SandboxMode
from haft.contracts import (
    BadConfig,
    HaftError,
    Isolation,
    Limits,
    Network,
    Secrets,
    named_secrets,
    secret_names,
    texts_in,
)
from haft.policy import Enablement, Feature, NameList
from haft.values import dataclass, field, replace

if TYPE_CHECKING:
    from haft.config.trusted_texts import SinceTrusted
    from haft.pipeline import Durability
    from haft.policy import Rule


__all__ = ["Config", "Ignored", "configured", "load_config"]


@dataclass(frozen=True)
class Config:
    """The values of all settings, and their sources."""

    values: Mapping[str, Any]
    sources: Mapping[str, str]
    ignored: tuple[Ignored, ...] = ()
    files: tuple[str, ...] = ()
    """The files that were read."""
    trusted: bool = False
    """Whether the workspace's file is trusted, so that all settings in it count."""
    lists: Mapping[str, tuple[tuple[str, tuple[str, ...]], ...]] = field(default_factory=dict)
    """For each setting whose lists from all sources count together: every source, with the entries that it adds."""
    rule_sets: tuple[RuleSet, ...] = ()
    written: Mapping[str, Any] = field(default_factory=dict)
    """The values that contain placeholders, as they are written in the file. They are printed instead of the filled
    values, which may be secret."""
    unset: tuple[MissingVariable, ...] = ()
    """Entries that are ignored because they need variables that are not set."""
    filled: frozenset[str] = field(default=frozenset(), repr=False)
    """The secret values of variables that were filled in for placeholders."""
    for_other_tools: Mapping[str, tuple[Any, str]] = field(default_factory=dict)
    """For settings that an untrusted workspace sets only for its own tools: the value for all other tools, and the
    source of that value."""
    since_trusted: SinceTrusted | None = None
    """How the workspace's file differs from its trusted version, if settings of it are ignored; None if haft does not
    know a trusted version."""
    providers: tuple[ProviderTables, ...] = ()
    """The MCP servers of each source, also of an untrusted workspace. Those of the user come first."""
    agent_types: tuple[tuple[str, Mapping[str, Any]], ...] = ()
    """The types of sub-agents of each source, the strongest source first. Types of an untrusted workspace are not
    among them."""

    @cached_property
    def secrets(self) -> Secrets:
        """Values that are masked in everything that a call prints. These are, first, values whose name suggests a
        secret, in `[config]`, in providers and in user parameters of templates; second, values of secret environment
        variables that replaced placeholders."""
        # The placeholders of providers are not filled here. `haft.toolsets.providers` knows the filled values.
        in_providers = (value for value in named_secrets(self.values["providers"]) if "${" not in value)
        tables = [self.values["config"]]
        tables += (one.get("user_params", {}) for one in self.values["templates.instances"])
        in_tables = (value for table in tables for value in named_secrets(table) if not secret_names(value))
        return Secrets((*self.filled, *in_providers, *in_tables))

    @cached_property
    def rules(self) -> tuple[Rule, ...]:
        """The rules in force: those of the embedding program, of the workspace and of the user. Raises `BadConfig` if a
        rule is wrong."""
        rules = (rule for one in self.rule_sets for rule in one.rules())
        if self.never_network is None:
            return tuple(rules)
        return tuple(replace(rule, grant=replace(rule.grant, network=False)) for rule in rules)

    @cached_property
    def enablement(self) -> Enablement:
        """Which tools may be called at all. Raises `BadConfig` if a pattern is wrong."""

        def listed(name: str) -> tuple[NameList, ...]:
            return tuple(NameList(patterns, source) for source, patterns in self.lists.get(name, ()))

        is_on = self.values["subagents.enabled"]
        off = () if is_on else (Feature("task", "Sub-agents not enabled"),)
        return Enablement(listed("tools.disable"), listed("tools.enable"), off)

    @property
    def limits(self) -> Limits:
        return Limits(
            **{name.removeprefix("limits."): value for name, value in self.values.items() if name.startswith("limits.")}
        )

    @property
    def tool_seconds(self) -> Mapping[str, float]:
        return cast("Mapping[str, float]", self.values["tools.timeout"])

    @property
    def durability(self) -> Durability:
        return cast("Durability", self.values["audit.durability"])

    @property
    def sandbox_mode(self) -> SandboxMode:
        return cast("SandboxMode", self.values["sandbox.mode"])

    @property
    def sandbox_network(self) -> Network:
        """The network that all confined calls get without a grant."""
        value = self.values["sandbox.network"]
        return tuple(value) if isinstance(value, list) else value is True

    @property
    def network_ask_seconds(self) -> float:
        return float(self.values["sandbox.network_ask_seconds"])

    @property
    def keeps_scratch(self) -> bool:
        """Whether threads keep their `/tmp` between calls."""
        return bool(self.values["sandbox.scratch"] == "thread")

    @property
    def never_network(self) -> str | None:
        """The source that forbids the network for every call; None if no source does."""
        return self.sources["sandbox.network"] if self.values["sandbox.network"] == "never" else None

    @property
    def changes_engine(self) -> ChangesEngine:
        return cast("ChangesEngine", self.values["changes.engine"])

    @property
    def isolation(self) -> Isolation:
        return cast("Isolation", self.values["changes.isolation"])

    @property
    def flush_seconds(self) -> float:
        return float(self.values["changes.flush_seconds"])

    @property
    def store_bytes(self) -> int:
        return int(self.values["changes.store_bytes"])

    @property
    def store_days(self) -> int:
        return int(self.values["changes.store_days"])

    @property
    def approval_seconds(self) -> float:
        return float(self.values["approval.expires_seconds"])

    @property
    def four_eyes(self) -> bool:
        return bool(self.values["approval.four_eyes"])

    @property
    def answers_without_sandbox(self) -> bool:
        return bool(self.values["approval.without_sandbox"])

    @property
    def trusted_clients(self) -> tuple[str, ...]:
        return tuple(self.values["approval.trusted_clients"])

    def is_set(self, name: str) -> bool:
        """Whether any source sets the setting `name`; False if the setting has its default."""
        return self.sources[name] != "default"

    def shown(self, name: str) -> Any:
        """The value in a form that may be printed: with placeholders not filled, and with secrets masked."""
        return self.secrets.masked(self.written.get(name, self.values[name]))


def working_directory(config: Config, workspace: str) -> str:
    """The directory in which tools work, relative to the workspace. Raises `BadConfig` if it is outside of the
    workspace."""
    written, source = config.values["working_directory"], config.sources["working_directory"]
    base = os.path.dirname(source) if os.path.isabs(source) else workspace
    root = os.path.realpath(workspace)
    place = os.path.normpath(os.path.join(os.path.realpath(base), os.path.expanduser(written)))
    if place != root and not place.startswith(root.rstrip("/") + "/"):
        if source != "default" and os.path.dirname(source) != root and not os.path.isabs(written):
            return "."  # A relative path in the user's own file cannot mean a directory of this workspace.
        raise BadConfig(f"{source}: `working_directory` must lie inside the workspace, not at {place}")
    return os.path.relpath(place, root)


def secret_texts(config: Config) -> set[str]:
    """Texts that must not appear in the audit log: values filled in from the environment, and parameters that a person
    sets for templates."""
    given = [one.get("user_params", {}) for one in config.values["templates.instances"]]
    return _filled_in(config) | set(texts_in(given)) | config.secrets.values


def _filled_in(config: Config) -> set[str]:
    found: set[str] = set()
    for name, written in config.written.items():
        left: list[tuple[Any, Any]] = [(written, config.values[name])]
        while left:
            before, after = left.pop()
            if isinstance(before, Mapping) and isinstance(after, Mapping):
                left += [(before[key], after[key]) for key in before if key in after]
            elif isinstance(before, list) and isinstance(after, list):
                left += zip(before, after, strict=False)
            elif isinstance(after, str) and before != after:
                found.add(after)
    return found


def load_config(
    workspace: str | None,
    env: Mapping[str, str],
    passed: Mapping[str, Any] | None = None,
    trust_home: str | None = None,
) -> Config:
    """The configuration from all sources. `trust_home` is the state home, which records the trusted files; without it,
    no file is trusted."""
    file = workspace_config(workspace)
    trusted = False
    if file is not None and workspace is not None and trust_home is not None:
        from haft.config.trust_store import is_trusted

        trusted = is_trusted(trust_home, workspace, file)
    config = configured(workspace, file, env, passed, trusted=trusted)
    if config.ignored and not trusted and file is not None and workspace is not None and trust_home is not None:
        from haft.config.trust_store import trusted_text
        from haft.config.trusted_texts import since_trusted

        return replace(config, since_trusted=since_trusted(trusted_text(trust_home, workspace, file), file, env))
    return config


def configured(
    workspace: str | None,
    file: ConfigFile | None,
    env: Mapping[str, str],
    passed: Mapping[str, Any] | None = None,
    *,
    trusted: bool,
) -> Config:
    """The configuration from all sources, with `file`, which was already read, as the workspace's file."""
    collector = SettingsCollector(workspace, env)
    own = user_config(env)
    if own is not None:
        collector.add_file(own, "user")
    if file is not None and trusted:
        collector.add_file(file, "workspace")
    elif file is not None:
        collector.add_untrusted_file(file)
    for name, value, source in (*from_environment(env), *from_caller(passed or {})):
        collector.add(name, value, source)
    return Config(
        collector.values,
        collector.sources,
        tuple(collector.ignored),
        tuple(collector.files),
        trusted,
        {name: tuple(lists) for name, lists in collector.lists.items()},
        tuple(collector.rule_sets),
        collector.written,
        tuple(collector.unset),
        frozenset(collector.filled),
        collector.for_other_tools,
        providers=tuple(collector.providers),
        agent_types=tuple(collector.agent_types),
    )


def newly_ignored(ignored: Sequence[Ignored], change: SinceTrusted | None, env: Mapping[str, str]) -> Sequence[Ignored]:
    """The ignored values that were not in the trusted version of the file; all ignored values if haft does not know a
    trusted version."""
    if change is None:
        return ignored
    workspace = os.path.dirname(change.before.path)
    try:
        before = configured(workspace, change.before, env, trusted=False).ignored
        now = configured(workspace, change.now, env, trusted=False).ignored
    except HaftError:
        return ignored
    counted = [(one.name, one.value) for one in before]
    new = {(one.name, one.source) for one in now if (one.name, one.value) not in counted}
    known = {(one.name, one.source) for one in now} - new
    return [one for one in ignored if (one.name, one.source) not in known]
