"""The values of haft's own options of `tools use`, checked before anything runs."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable, Mapping
from typing import Any, cast, get_args

from haft.contracts import BadUsage, Grants, Isolation, Outcome, RunId, ThreadId, ToolName, ToolSpec, near_miss
from haft.surfaces.cli.words.network_option import granted_network
from haft.surfaces.cli.words.parameters import Line
from haft.values import dataclass


@dataclass(frozen=True, slots=True)
class UseOptions:
    """The values of haft's own options of one `tools use`."""

    tool: str
    only: str | None
    stream: bool
    approve: bool
    trial: bool
    """Whether to make a trial run."""
    uses_cache: bool
    """Whether the call may be answered from the cache."""
    preview: bool
    """Whether to print only the tool's preview."""
    wait: float | None
    """How many seconds the call waits for an answer in the inbox."""
    timeout: float | None
    thread: str | None
    isolation: Isolation | None
    config: Mapping[str, Any]
    config_texts: Mapping[str, str]
    """The values of `config` as the person typed them."""
    grants: Grants

    @classmethod
    def from_line(cls, line: Line) -> UseOptions:
        assert line.name is not None
        texts = dict(_pair(text) for text in line.options.get("--config", ()))
        use_options = cls(
            tool=line.name,
            only=_field(line.value("--only")),
            stream=line.flag("--stream"),
            approve=line.flag("--approve"),
            trial=line.flag("--try"),
            uses_cache=not line.flag("--no-cache"),
            preview=line.flag("--preview"),
            wait=seconds_of("--wait", line.value("--wait")),
            timeout=seconds_of("--timeout", line.value("--timeout")),
            thread=line.value("--thread"),
            isolation=isolation_of(line.value("--isolation")),
            config={name: _read(text) for name, text in texts.items()},
            config_texts=texts,
            grants=Grants(
                network=granted_network(line.options.get("--network", ())),
                scratch=line.flag("--scratch"),
                env=granted_variables(line.options.get("--env", ()), os.environ),
                read=granted_places("--read", line.options.get("--read", ())),
                write=granted_places("--write", line.options.get("--write", ())),
            ),
        )
        if use_options.stream and use_options.only:
            raise BadUsage("`--stream` and `--only` cannot be used together")
        return use_options

    def config_for(self, spec: ToolSpec | None) -> Mapping[str, Any]:
        """The configuration values for a tool. Values that a template declares as text stay as typed, because an API
        key, for example, may look like a number."""
        declared = () if spec is None else spec.meta.get("template", {}).get("userParameters", ())
        texts = {each for one in declared if "string" in one["type"] for each in (one["name"], one["key"])}
        return {
            name: self.config_texts[name] if name in texts and not isinstance(value, str) else value
            for name, value in self.config.items()
        }


def _field(name: str | None) -> str | None:
    fields = Outcome(RunId(""), ToolName(""), "done", "", ThreadId("")).to_json()
    if name is not None and name not in fields:
        near = near_miss(name, fields)
        hint = f"{f'did you mean `{near}`? ' if near else ''}the fields are {', '.join(fields)}"
        raise BadUsage(f"an outcome has no field `{name}`", hint=hint)
    return name


def isolation_of(text: str | None) -> Isolation | None:
    """The value of `--isolation`; None if the option is not given."""
    choices = get_args(Isolation)
    if text is not None and text not in choices:
        raise BadUsage(f"`--isolation` is {' or '.join(f'`{each}`' for each in choices)}, not `{text}`")
    return cast("Isolation | None", text)


def seconds_of(option: str, text: str | None) -> float | None:
    """The number of seconds that an option names; None if the option is not given."""
    if text is None:
        return None
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not 0 < seconds < math.inf:
        raise BadUsage(f"`{option}` must be a number of seconds, more than 0, not `{text}`")
    return seconds


def _pair(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not (key and equals):
        raise BadUsage(f"`--config` takes KEY=VALUE, not `{text}`")
    return key, value


def _read(value: str) -> Any:
    try:
        return json.loads(value)
    except ValueError:
        return value


def granted_places(option: str, texts: Iterable[str]) -> tuple[str, ...]:
    """The paths of `--read` or `--write`, as absolute paths. Each must exist, because the sandbox can only open
    existing paths. The exception is a path of `--write` below the current directory: it may be in the workspace, where
    calls can create files anyway."""
    found = []
    for text in texts:
        try:
            place = os.path.abspath(os.path.expanduser(text))
            may_be_made = option == "--write" and place.startswith(os.getcwd().rstrip("/") + "/")
        except FileNotFoundError as error:
            raise BadUsage(
                "the current directory does not exist any more", hint=f"`{option}` takes full paths too"
            ) from error
        if not text or not (may_be_made or os.path.exists(place)):
            missing = "create it first, or grant its directory" if option == "--write" else None
            raise BadUsage(
                f"`{option}`: `{text}` does not exist" if text else f"`{option}` is empty",
                hint=missing if text else f"`{option} .` is the current directory",
            )
        found.append(place)
    return tuple(dict.fromkeys(found))


def granted_variables(names: Iterable[str], host: Mapping[str, str] | None = None) -> tuple[str, ...]:
    """The variables of `--env`. If `host` is given, it is the environment of the host, and each variable must be set in
    it."""
    from haft.contracts import why_not_granted

    found = tuple(dict.fromkeys(names))
    for name in found:
        if "=" in name:
            raise BadUsage(
                "`--env` takes the name of a variable, without a value", hint="set the variable before haft starts"
            )
        if (why := why_not_granted(name)) is not None:
            raise BadUsage(f"`--env`: {why}", hint="put the tool's own parameter of that name after `--`")
        if host is not None and name not in host:
            near = near_miss(name, host)
            hint = f"did you mean {near}?" if near else f"set {name}, and call the tool again"
            raise BadUsage(f"`--env {name}`: {name} is not set here", hint=hint)
    return found
