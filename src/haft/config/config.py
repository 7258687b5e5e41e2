"""The settings in force, and where each comes from.

Strongest first: what the program or command line passes, `HAFT_*` variables, the workspace's `haft.toml` or
`haft.json`, the user's file, the default. Lists that narrow and rules add up instead. A workspace is not trusted to
widen: what allows more than stands without it is set aside, and said so, until someone has trusted the file.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

from haft.config.files import ConfigFile, user_config, workspace_config
from haft.config.gathering import Gathered, from_caller, from_environment
from haft.config.narrowing import Ignored
from haft.config.placeholders import Unset
from haft.config.rule_sets import RuleSet
from haft.config.settings import ChangesEngine, SandboxMode
from haft.contracts import BadConfig, HaftError, Limits, Secrets, named_secrets, texts_in
from haft.policy import Enablement, Feature, NameList
from haft.values import dataclass, field, replace

if TYPE_CHECKING:
    from haft.config.trusted_texts import SinceTrusted
    from haft.pipeline import Durability
    from haft.policy import Rule


__all__ = ["Config", "Ignored", "configured", "load_config"]


@dataclass(frozen=True)
class Config:
    """Values by name, with their sources."""

    values: Mapping[str, Any]
    sources: Mapping[str, str]
    ignored: tuple[Ignored, ...] = ()
    files: tuple[str, ...] = ()
    """The files that were read."""
    trusted: bool = False
    """Whether the workspace's file counts as a whole."""
    lists: Mapping[str, tuple[tuple[str, tuple[str, ...]], ...]] = field(default_factory=dict)
    """Of the lists that add up: each source, and what it wrote."""
    rule_sets: tuple[RuleSet, ...] = ()
    written: Mapping[str, Any] = field(default_factory=dict)
    """Values with their placeholders, where those were filled: what was filled in may be secret."""
    unset: tuple[Unset, ...] = ()
    """Entries that ask for variables which are not set. They do not count."""
    filled: frozenset[str] = field(default=frozenset(), repr=False)
    """Values of variables that were filled in and are secret."""
    beneath: Mapping[str, tuple[Any, str]] = field(default_factory=dict)
    """Of settings that a workspace, before it is trusted, sets for its own tools alone: what counts for others, and its
    source."""
    since_trusted: SinceTrusted | None = None
    """How the workspace's file differs from what was trusted, where it is not trusted as it is."""

    @cached_property
    def secrets(self) -> Secrets:
        """What is masked in all that calls say: values under names that say secret, in `[config]`, of providers and in
        the user parameters of templates, and the variables that were filled in as such."""
        tables = [self.values["config"], self.values["providers"]]
        tables += (one.get("user_params", {}) for one in self.values["templates.instances"])
        return Secrets((*self.filled, *(value for table in tables for value in named_secrets(table))))

    @cached_property
    def rules(self) -> tuple[Rule, ...]:
        """The rules that count: the caller's, the workspace's, the user's. `BadConfig` where one is wrong."""
        rules = (rule for one in self.rule_sets for rule in one.rules())
        if self.never_network is None:
            return tuple(rules)
        return tuple(replace(rule, grant=replace(rule.grant, network=False)) for rule in rules)

    @cached_property
    def enablement(self) -> Enablement:
        """Which tools may be called at all. `BadConfig` where a pattern is wrong."""

        def listed(name: str) -> tuple[NameList, ...]:
            return tuple(NameList(patterns, source) for source, patterns in self.lists.get(name, ()))

        is_on = self.values["subagents.enabled"]
        off = () if is_on else (Feature("task", "subagents.enabled", self.sources["subagents.enabled"]),)
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
    def sandbox_network(self) -> bool:
        return self.values["sandbox.network"] is True

    @property
    def keeps_scratch(self) -> bool:
        """Whether threads keep their `/tmp` between calls."""
        return bool(self.values["sandbox.scratch"] == "thread")

    @property
    def never_network(self) -> str | None:
        """Where it is written that no call gets the network, if it is."""
        return self.sources["sandbox.network"] if self.values["sandbox.network"] == "never" else None

    @property
    def changes_engine(self) -> ChangesEngine:
        return cast("ChangesEngine", self.values["changes.engine"])

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
    def answers_without_sandbox(self) -> bool:
        return bool(self.values["approval.without_sandbox"])

    def is_set(self, name: str) -> bool:
        """Whether someone set it; False where the default stands."""
        return self.sources[name] != "default"

    def shown(self, name: str) -> Any:
        """A value as it may be printed: placeholders stay what they are, and what is secret is masked."""
        return self.secrets.masked(self.written.get(name, self.values[name]))


def working_directory(config: Config, workspace: str) -> str:
    """Where tools work, relative to the workspace. `BadConfig` where that is outside of it."""
    said, source = config.values["working_directory"], config.sources["working_directory"]
    base = os.path.dirname(source) if os.path.isabs(source) else workspace
    root = os.path.realpath(workspace)
    place = os.path.normpath(os.path.join(os.path.realpath(base), os.path.expanduser(said)))
    if place != root and not place.startswith(root.rstrip("/") + "/"):
        if source != "default" and os.path.dirname(source) != root and not os.path.isabs(said):
            return "."  # The user's own file lies elsewhere: what is relative to it says nothing about this workspace.
        raise BadConfig(f"{source}: `working_directory` must lie inside the workspace, not at {place}")
    return os.path.relpath(place, root)


def kept_secret(config: Config) -> set[str]:
    """Texts that are kept out of the audit log: what was filled in from the environment, and the parameters that a
    person sets for templates."""
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
    """Read every source and let the stronger win. `trust_home` is the state home, where it is kept which files are
    trusted; without one, none is."""
    file = workspace_config(workspace)
    trusted = False
    if file is not None and workspace is not None and trust_home is not None:
        from haft.config.trusting import is_trusted

        trusted = is_trusted(trust_home, workspace, file)
    config = configured(workspace, file, env, passed, trusted=trusted)
    if config.ignored and not trusted and file is not None and workspace is not None and trust_home is not None:
        from haft.config.trusted_texts import since_trusted
        from haft.config.trusting import trusted_text

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
    """The same, for a workspace's file that was read already."""
    gathered = Gathered(workspace, env)
    own = user_config(env)
    if own is not None:
        gathered.take_file(own, "user")
    if file is not None and trusted:
        gathered.take_file(file, "workspace")
    elif file is not None:
        gathered.take_untrusted(file)
    for name, value, source in (*from_environment(env), *from_caller(passed or {})):
        gathered.take(name, value, source)
    return Config(
        gathered.values,
        gathered.sources,
        tuple(gathered.ignored),
        tuple(gathered.files),
        trusted,
        {name: tuple(lists) for name, lists in gathered.lists.items()},
        tuple(gathered.rule_sets),
        gathered.written,
        tuple(gathered.unset),
        frozenset(gathered.filled),
        gathered.beneath,
    )


def not_trusted_before(
    ignored: Sequence[Ignored], change: SinceTrusted | None, env: Mapping[str, str]
) -> Sequence[Ignored]:
    """Of what is set aside that which was not in the file that was trusted; all of it where none was."""
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
