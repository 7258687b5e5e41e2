"""Templates for tests, an environment for them that nobody has to build, and a service that says which calls of it were
answered from a fork."""

import asyncio
import os
import re
import sys
import textwrap
import time
from pathlib import Path

from haft.contracts import Environment
from haft.files.links import steps_of
from haft.sandbox import warm_pool as nurseries
from haft.service import TemplateEnvironments, ToolService

assert TemplateEnvironments  # Loaded before tests replace the class where it is defined: the face keeps what it found.

SMALL_PYDANTIC = """
class BaseModel:
    def __init__(self, **given):
        for each in reversed(type(self).__mro__):
            for name in vars(each).get("__annotations__", ()):
                setattr(self, name, getattr(type(self), name, None))
        vars(self).update(given)

def Field(default=None, **_words):
    return default
"""
"""Enough of it for templates that are about something else: the real one takes longer to load than most tests."""

WHOLE = '''"""
{name}
"""
from pydantic import BaseModel, Field
from typing import Any
import json, argparse, sys, os
{top}
class UserParameters(BaseModel):
    {user}


class ToolParameters(BaseModel):
    x: str = "a"


def run_tool(config: UserParameters, args: ToolParameters) -> Any:
{run}


{key}

if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--user-params", required=True)
    parser.add_argument("--tool-params", required=True)
    args = parser.parse_args()
    config = UserParameters(**json.loads(args.user_params))
    params = ToolParameters(**json.loads(args.tool_params))
    output = run_tool(config, params)
    print({said}output)
'''


def written(
    folder: Path, run: str, top: str = "", user: str = "pass", key: str = 'OUTPUT_KEY = "tool_output"', **beside
):
    """A template whose `run_tool` is `run`. What else lies in its folder goes by names with `__` for dots."""
    folder.mkdir(parents=True, exist_ok=True)
    body = textwrap.indent(textwrap.dedent(run).strip("\n"), "    ")
    said = "OUTPUT_KEY, " if key else ""
    source = WHOLE.format(name=folder.name, top=textwrap.dedent(top), user=user, run=body, key=key, said=said)
    (folder / "tool.py").write_text(source)
    (folder / "requirements.txt").write_text("pydantic\n")
    for name, words in beside.items():
        (folder / name.replace("__", ".")).write_text(textwrap.dedent(words))
    return folder


class OwnEnvironment:
    """One for all templates: this interpreter, with libraries that a test wrote, and those of these tests on wish."""

    def __init__(self, where: Path) -> None:
        self._where = where
        base = os.path.abspath(getattr(sys, "_base_executable", None) or sys.executable)
        self.libraries = where / "lib" / f"python{sys.version_info[0]}.{sys.version_info[1]}" / "site-packages"
        self.libraries.mkdir(parents=True)
        (where / "bin").mkdir()
        (where / "bin" / "python").symlink_to(base)
        (where / "pyvenv.cfg").write_text(f"home = {os.path.dirname(base)}\ninclude-system-site-packages = false\n")
        (self.libraries / "pydantic.py").write_text(SMALL_PYDANTIC)
        self.mark = "first"
        self._steps = [os.path.dirname(step) for step in steps_of(base)]
        self._shown: list[str] = []

    def library(self, name: str, source: str) -> None:
        (self.libraries / f"{name}.py").write_text(textwrap.dedent(source))

    def show_real_libraries(self) -> None:
        import pydantic

        (self.libraries / "pydantic.py").unlink()
        place = os.path.dirname(os.path.dirname(pydantic.__file__))
        (self.libraries / "real.pth").write_text(f"{place}\n")
        self._shown.append(place)

    def current(self, _folder: str) -> Environment:
        readable = tuple(dict.fromkeys((str(self._where), sys.base_prefix, *self._steps, *self._shown)))
        return Environment(str(self._where / "bin" / "python"), readable, self.mark)

    async def prepare(self, folder: str, _told=None, *, may_build: bool = False) -> Environment:
        return self.current(folder)


class Watched(nurseries.WarmPool):
    """Remembers what each call got."""

    def __init__(self, **words) -> None:
        super().__init__(**words)
        self.taken: list[bool] = []

    def take(self, key, helper):
        starter = super().take(key, helper)
        self.taken.append(starter is not None)
        return starter

    def free(self, folder: Path) -> int:
        """How many are loaded of a template, and wait."""
        return sum(each.key.name == str(folder) and not each.is_busy for each in self._loaded)

    def why_not(self, folder: Path) -> str | None:
        return next((why for (name, _version), why in self.unfit.items() if name == str(folder)), None)


async def yes(_request) -> bool:
    return True


class Loaded:
    """A service with templates, to be entered."""

    def __init__(self, base: Path, environment: OwnEnvironment, workspace: Path | None = None, **settings) -> None:
        self.templates = base / "templates"
        self.workspace = workspace or base / "workspace"
        self.environment = environment
        for place in (self.templates, self.workspace):
            place.mkdir(parents=True, exist_ok=True)
        self.home = base / "home"
        self._settings = {"templates.paths": [str(self.templates)], **settings}
        self.warm_pool = Watched()

    def write(self, name: str, *words: str, **more: str) -> Path:
        return written(self.folder(name), *words, **more)

    def folder(self, name: str) -> Path:
        return self.templates / name

    async def __aenter__(self):
        service = ToolService.open(
            self.workspace, approver=yes, home=self.home, installed=False, settings=self._settings
        )
        self.service = await service.__aenter__()
        self.warm_pool._on_unfit = self.service._sandbox.on_unfit
        self.service._sandbox._warm_pool = self.warm_pool
        return self

    async def __aexit__(self, *error) -> None:
        await self.service.__aexit__(*error)

    async def call(self, name: str, x: str = "a", **words):
        return await self.service.call(name, {"x": x}, **words)

    async def settled(self, name: str, count: int = 1, seconds: float = 10.0) -> str | None:
        """Wait until a template is loaded that often, or given up: then why."""
        until = time.monotonic() + seconds
        folder = self.folder(name)
        while self.warm_pool.free(folder) < count and self.warm_pool.why_not(folder) is None:
            assert time.monotonic() < until, f"`{name}` was neither loaded nor given up"
            await asyncio.sleep(0.005)
        return self.warm_pool.why_not(folder)

    async def warmed(self, name: str, x: str = "a"):
        """The outcome of a first call, when the template is loaded."""
        outcome = await self.call(name, x)
        assert await self.settled(name) is None, self.warm_pool.unfit
        return outcome

    async def warm_call(self, name: str, x: str = "a", **words):
        """A call that is answered from a fork."""
        before = len(self.warm_pool.taken)
        outcome = await self.call(name, x, **words)
        assert self.warm_pool.taken[before:] == [True], f"`{name}` was started anew: {self.warm_pool.unfit}"
        return outcome


def seen(outcome, loaded: Loaded) -> dict:
    """What a caller can tell of an outcome, wherever its workspace lies."""

    def plain(words):
        if isinstance(words, str):
            words = words.replace(str(loaded.workspace), "WORKSPACE").replace(str(loaded.templates), "TEMPLATES")
            return re.sub("0x[0-9a-f]{8,}", "ADDRESS", words.replace(outcome.run_id, "RUN"))
        return words

    return {
        "status": outcome.status,
        "code": outcome.exit_code,
        "output": plain(outcome.output),
        "result": outcome.result,
        "error": outcome.error and (outcome.error.code, plain(outcome.error.message)),
        "stderr": plain(outcome.stderr),
        "truncated": outcome.truncated,
        "bytes": outcome.output_bytes,
        "changes": sorted((one.path, one.type) for one in outcome.changes.files),
        "children": [one.command for one in outcome.ended_children],
        "sandbox": (outcome.sandbox.layers, outcome.sandbox.profile, outcome.sandbox.network),
    }
