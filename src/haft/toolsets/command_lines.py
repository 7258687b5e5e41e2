"""The command lines that a configuration offers as tools: `[cli.NAME]`."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Final

from haft.contracts import Provenance, near_miss
from haft.sources.cli import CommandLine, CommandLines
from haft.toolsets.formats import Host

_KEYS: Final = ("spec", "click", "argparse", "python", "program", "prefix")


class CommandLineSource(CommandLines):
    """The command lines of one workspace and its user."""

    def __init__(self, host: Host) -> None:
        self._workspace = host.workspace
        source = host.config.sources["cli"]
        lines = [self._line(name, told, source) for name, told in host.config.values["cli"].items()]
        super().__init__(lines, host.definitions, host.workspace)

    def _line(self, name: str, told: Mapping[str, Any], source: str) -> CommandLine:
        is_file = os.path.isabs(source)
        base = os.path.dirname(source) if is_file else self._workspace
        inside = is_file and os.path.realpath(base) == self._workspace
        provenance: Provenance = "workspace" if inside else "user"
        problem = _problem(name, told, source)
        if problem is not None:
            return CommandLine(name, source, provenance, problem=problem)

        def place(path: str) -> str:
            return os.path.normpath(os.path.join(base, os.path.expanduser(path)))

        form = next((key for key in ("click", "argparse") if key in told), None)
        program = told.get("program", [])
        python = told.get("python")
        return CommandLine(
            name,
            source,
            provenance,
            spec=place(told["spec"]) if "spec" in told else None,
            form=form,
            reference=told.get(form, "") if form else "",
            python=place(python) if python and os.sep in python else python,
            program=(program,) if isinstance(program, str) else tuple(program),
            prefix=told.get("prefix"),
            here=inside or not is_file,
        )


def _problem(name: str, told: Mapping[str, Any], source: str) -> str | None:
    where = f"[cli.{name}] in {source}"
    for key in told:
        if key not in _KEYS:
            near = near_miss(key, _KEYS)
            return f"{where} has no `{key}`" + (f"; did you mean `{near}`?" if near else "")
    ways = [key for key in ("spec", "click", "argparse") if key in told]
    if len(ways) != 1:
        return f"{where} needs one of `spec`, `click` and `argparse`"
    program = told.get("program", "")
    texts = [told[key] for key in _KEYS if key in told and key != "program"]
    texts += program if isinstance(program, list) else [program]
    return None if all(isinstance(one, str) for one in texts) else f"{where} has a value that is not a text"
