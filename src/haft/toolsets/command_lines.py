"""The command lines that a configuration offers as tools: `[cli.NAME]`."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Final

from haft.config.config import Config
from haft.contracts import AskingLauncher, Definitions, Provenance, near_miss
from haft.registry import Catalogue
from haft.sources.cli.source import CommandLines, Line

CLI: Final = "cli"
_KEYS: Final = ("spec", "click", "argparse", "python", "program", "prefix")


class ConfiguredCommandLines:
    """Those of one workspace and its user."""

    def __init__(self, config: Config, workspace: str, definitions: Definitions) -> None:
        self._workspace = os.path.realpath(workspace)
        source = config.sources["cli"]
        lines = [self._line(name, told, source) for name, told in config.values["cli"].items()]
        self.source = CommandLines(lines, definitions, self._workspace)

    def fill(self, catalogue: Catalogue) -> bool:
        """Put in what is known; whether there is anything to ask."""
        self.source.look()
        catalogue.take(CLI, self.source.found())
        return bool(self.source.unknown())

    async def renew(self, catalogue: Catalogue, launcher: AskingLauncher) -> None:
        """Look again, ask what is not known, and put in what there is."""
        changed = self.source.look()
        if self.source.unknown():
            await self.source.ask(launcher)
            changed = True
        if changed:
            catalogue.take(CLI, self.source.found())

    def _line(self, name: str, told: Mapping[str, Any], source: str) -> Line:
        is_file = os.path.isabs(source)
        base = os.path.dirname(source) if is_file else self._workspace
        inside = is_file and os.path.realpath(base) == self._workspace
        provenance: Provenance = "workspace" if inside else "user"
        problem = _problem(name, told, source)
        if problem is not None:
            return Line(name, source, provenance, problem=problem)

        def place(path: str) -> str:
            return os.path.normpath(os.path.join(base, os.path.expanduser(path)))

        form = next((key for key in ("click", "argparse") if key in told), None)
        program = told.get("program", [])
        python = told.get("python")
        return Line(
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
    return None if all(isinstance(one, str) for one in texts) else f"{where} has a value that is no text"
