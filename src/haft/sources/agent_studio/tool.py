"""One template as a tool: its environment, its parameters, and its call."""

from __future__ import annotations

import functools
import hashlib
import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from haft.contracts import (
    Answer,
    AnswerBasis,
    BadConfig,
    Command,
    Environments,
    Exit,
    Failure,
    Secrets,
    ToolContext,
    ToolFailed,
    ToolName,
    ToolSpec,
    WarmProgram,
    clean_tool_name,
    named_secrets,
    texts_in,
)
from haft.sources.agent_studio.discover import Instance, identity_of_template
from haft.sources.agent_studio.names import slug_of
from haft.sources.agent_studio.template import sent_as

RUNNER: Final = os.path.join(os.path.dirname(os.path.abspath(__file__)), "runner.py")


@dataclass(frozen=True, slots=True)
class TemplateTool:
    """A template as a tool. A call runs in a new process of the template's own Python, or in a fork of a process that
    has already loaded the libraries."""

    spec: ToolSpec
    instance: Instance
    known: Mapping[str, Any]
    environments: Environments
    is_warm: bool = True

    @property
    def secrets(self) -> Secrets:
        return secrets_of(self.instance.user, self.known)

    def configured(self, config: Mapping[str, Any]) -> TemplateTool:
        """The tool with other user parameters, for one call. Raises `BadConfig` if required parameters are still
        missing."""
        fields = self.known["userParameters"]
        names = {name: one["name"] for one in fields for name in (one["name"], one["key"])}
        if strange := [name for name in config if name not in names]:
            listed = ", ".join(f"`{one['name']}`" for one in fields) or "none"
            raise BadConfig(
                f"`{self.spec.name}` has no user parameter `{strange[0][:80]}`", hint=f"its user parameters: {listed}"
            )
        given = {names[name] for name in config}
        user = {name: value for name, value in self.instance.user.items() if names.get(name) not in given}
        unset = {name: why for name, why in self.instance.unset.items() if names.get(name) not in given}
        instance = replace(self.instance, user={**user, **config}, unset=unset)
        if (why := why_unset(instance, self.known)) is not None:
            needed = next((one["name"] for one in fields if one["required"]), "NAME")
            raise BadConfig(
                f"`{self.spec.name}` cannot be called, it needs configuration: {why}",
                hint=f"for one call: --config {needed}=…",
            )
        return replace(self, instance=instance)

    async def preprocess(self, arguments: dict[str, Any], context: ToolContext) -> dict[str, Any]:
        from haft.sources.agent_studio.coercion import coerce_arguments

        return coerce_arguments(arguments, self.spec.input_schema)

    async def prepare(self, progress: Callable[[str], None]) -> None:
        """Make the template's virtual environment, if there is none that fits its requirements."""
        if self.environments.current(self.instance.folder) is None:
            is_own = self.instance.provenance != "workspace"
            await self.environments.prepare(self.instance.folder, progress, may_build=is_own)

    def answer_basis(self, _places: list[str]) -> AnswerBasis:
        environment = self.environments.current(self.instance.folder)
        known = () if environment is None else (environment.root, environment.python, environment.mark)
        return AnswerBasis(versions=(self.instance.identity, *known))

    def allow_build(self, requirements: str) -> None:
        """Record that a person approved building the packages of these requirements."""
        self.environments.allow_build(self.instance.folder, requirements)

    async def invoke(self, arguments: dict[str, Any], context: ToolContext) -> Answer:
        from haft.sources.agent_studio.template_output import TemplateOutput

        folder = self.instance.folder
        environment = self.environments.current(folder)
        if identity_of_template(folder) != self.instance.identity or environment is None:
            raise ToolFailed(f"{folder} has changed since the call started", hint="call it again")
        plan = json.dumps(
            {
                "file": self.instance.entry,
                "digest": self.known["digest"],
                "imports": self.known["imports"],
                "ahead": self.known["ahead"],
            }
        )
        argv = [environment.python, RUNNER, plan]
        version = f"{self.known['digest']} {environment.mark}"
        output = TemplateOutput(context, self.known["outputKey"], self.instance.user)
        command = Command(
            argv,
            cwd=context.workspace.locate(context.cwd),
            env={**context.env, "VIRTUAL_ENV": environment.root, "PYTHONDONTWRITEBYTECODE": "1"},
            stdin=self._request(arguments),
            readable=(folder, os.path.realpath(folder), RUNNER, *environment.readable),
            warm=WarmProgram(folder, version, (*argv, "serve")) if self.is_warm else None,
        )
        end = await context.launcher.run(command, output)
        result = output.close()
        failure = None if end.code == 0 else Failure("tool-failed", self._failed(end, output.failure_text()))
        return Answer(result=result if failure is None else None, exit_code=end.code, failure=failure)

    def _request(self, arguments: Mapping[str, Any]) -> bytes:
        """The content of stdin for the runner, which puts the user parameters and the tool parameters on the template's
        command line. The parameters come on stdin, because the user parameters are secret, and because the kernel
        limits the length of a command line."""
        keys = {one["name"]: one["key"] for one in self.known["userParameters"]}
        user = json.dumps(sent_as(self.instance.user, keys, self.known["userNulls"]))
        tool = json.dumps(sent_as(arguments, {}, self.known["toolNulls"]))
        return json.dumps({"user": user, "tool": tool}).encode()

    def _failed(self, end: Exit, failure_text: str) -> str:
        if failure_text:
            return f"`{self.spec.name}` failed: {failure_text}"
        how = f"was ended by signal {end.signal}" if end.signal is not None else f"exited {end.code}"
        return f"`{self.spec.name}` {how}"


def why_unset(each: Instance, known: Mapping[str, Any]) -> str | None:
    """Which user parameters are missing, and what to do; None if none is missing. The values are not checked: a number
    may come as text from the environment, and the template decides whether to accept it."""
    if each.unset:
        unset = "; ".join(f"`{name}` {why}" for name, why in each.unset.items())
        return f"in `user_params` of `{each.name}` in {each.source}, {unset}"
    fields = known["userParameters"]
    missing = [one["name"] for one in fields if one["required"] and not _is_set(one, each.user)]
    if not missing:
        return None
    declared = {name for one in fields for name in (one["name"], one["key"])}
    strange = [name for name in each.user if name not in declared]
    also = f" ({', '.join(f'`{name}`' for name in strange)} is not one of its parameters)" if strange else ""
    return f"it needs {', '.join(f'`{name}`' for name in missing)}{also}: {_how_to_set(each, fields)}"


def _is_set(one: Mapping[str, Any], user: Mapping[str, Any]) -> bool:
    return one["name"] in user or one["key"] in user


def _how_to_set(each: Instance, fields: list[Mapping[str, Any]]) -> str:
    if each.source is not None:
        return f"set it in `user_params` of `{each.name}` in {each.source}"
    needed = ", ".join(f'{one["name"]} = "…"' for one in fields if one["required"])
    return (
        f'add [[templates.instances]] with name = "{each.name}", template = "{each.folder}" and '
        f"user_params = {{{needed}}}"
    )


def secrets_of(user: Mapping[str, Any], known: Mapping[str, Any]) -> Secrets:
    """The values of the secret user parameters: those with a name that sounds secret, and those that the template
    declares secret (`SecretStr`)."""
    schemas = known["userSchema"].get("properties", {})
    names = {name: one["name"] for one in known["userParameters"] for name in (one["name"], one["key"])}
    fields = {one["name"]: one["key"] for one in known["userParameters"]}
    declared = [
        value
        for name, value in user.items()
        if any(_is_declared(schemas.get(each)) for each in (name, names.get(name), fields.get(name)))
    ]
    return Secrets((*named_secrets(user), *texts_in(declared)))


def _is_declared(schema: Any) -> bool:
    """Whether a schema says anywhere that a value is secret."""
    if isinstance(schema, Mapping):
        says = schema.get("format") == "password" or schema.get("writeOnly") is True
        return says or any(_is_declared(one) for one in schema.values())
    return isinstance(schema, list) and any(map(_is_declared, schema))


def spec_of(known: Mapping[str, Any], instance: Instance) -> ToolSpec:
    """The spec of a tool, from the cache entry of its template."""
    return ToolSpec(
        name=tool_name(instance),
        kind="agent-studio",
        description=known["description"] or instance.name,
        input_schema=known["inputSchema"],
        provenance=instance.provenance,
        origin=instance.folder,
        effects=instance.effects,
        digest=_digest(known["digest"], instance.user),
        hosting="per-call",
        preprocesses=not known["isStrict"],
        prepares=True,
        files=instance.files,
        meta={
            "template": {
                "name": instance.name,
                "folder": instance.folder,
                "workflow": instance.workflow,
                "userParameters": [
                    {**one, "set": _is_set(one, instance.user) and one["name"] not in instance.unset}
                    for one in known["userParameters"]
                ],
            }
        },
    )


@functools.lru_cache(maxsize=200)
def _slow_hash(text: str, salt: str) -> str:
    """A digest that is slow to compute, so that nobody can find short secrets by trying all of them."""
    return hashlib.pbkdf2_hmac("sha256", text.encode("utf-8", "surrogatepass"), salt.encode(), 20_000).hex()


def _digest(source: str, user: Mapping[str, Any]) -> str:
    """The digest of a tool's definition. It includes the user parameters, because an approval of the tool covers them
    too."""
    return _slow_hash(json.dumps(user, sort_keys=True), source) if user else source


def bare_spec(instance: Instance) -> ToolSpec:
    """The spec of a template that could not be read."""
    return ToolSpec(
        name=tool_name(instance),
        kind="agent-studio",
        description="",
        input_schema={"type": "object", "properties": {}},
        provenance=instance.provenance,
        origin=instance.folder,
        hosting="per-call",
        meta={"template": {"name": instance.name, "folder": instance.folder, "workflow": instance.workflow}},
    )


def tool_name(instance: Instance) -> ToolName:
    """The tool name: the template's name in lower case, with `_` for spaces."""
    return clean_tool_name(slug_of(instance.name))
