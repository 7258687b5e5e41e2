"""The cost of an idle service: processor seconds for each minute, without tools and with thousands of them.

Each service is its own process, which opens, settles, and then does nothing for a while. Its children count too.
`idle_seconds` returns the cost for a number of tools; run alone, this module prints both costs and their ratio.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from haft.authoring import new_tool
from haft.sources.amp_toolbox.describe import read
from haft.sources.brief_run import ProgramOutput
from haft.sources.identity import identity_at
from haft.storage import DefinitionCache, StateHome
from haft.version import __version__

MANY = 3_000
SETTLE_SECONDS = 15.0
MEASURED_SECONDS = 60.0
LEAST_SECONDS = 0.02
"""Two ticks of the clock by which the kernel counts the use of children; smaller values count as this."""

TOOL = "#!/bin/sh\nprintf 'name: {name}\\ndescription: Says a word.\\n'\n"
TEMPLATE = Path(new_tool.__file__).parent / "templates" / "studio"

PROGRAM = """
import asyncio, json, os, resource, sys
from haft import ToolService

def used():
    own, theirs = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    living = 0
    for process in filter(str.isdigit, os.listdir("/proc")) if os.path.isdir("/proc") else ():
        try:
            with open(f"/proc/{process}/stat") as file:
                words = file.read().rpartition(")")[2].split()
        except OSError:
            continue
        if int(words[1]) == os.getpid() or int(words[2]) in groups:
            groups.add(int(words[2]))
            living += int(words[11]) + int(words[12])
    return sum((own.ru_utime, own.ru_stime, theirs.ru_utime, theirs.ru_stime)) + living / os.sysconf("SC_CLK_TCK")

groups = set()

async def idle(settle, measured):
    async with ToolService.open(".", installed=False) as service:
        await asyncio.sleep(settle)
        before = used()
        await asyncio.sleep(measured)
        print(json.dumps({"used": used() - before, "tools": len(service.tools())}))

asyncio.run(idle(*map(float, sys.argv[1:])))
"""


def idle_seconds(tools: int, *, settle: float = SETTLE_SECONDS, measured: float = MEASURED_SECONDS) -> float:
    """Processor seconds that an idle service with `tools` tools uses in a minute."""
    with tempfile.TemporaryDirectory() as directory:
        place = os.path.realpath(directory)
        workspace = Path(place, "workspace")
        workspace.mkdir()
        _fill(workspace, tools)
        for name in ("HOME", "XDG_CONFIG_HOME", "HAFT_HOME"):
            Path(place, name).mkdir()
        env = {**os.environ, **{name: str(Path(place, name)) for name in ("HOME", "XDG_CONFIG_HOME", "HAFT_HOME")}}
        env["AMP_TOOLBOX"] = os.pathsep.join(str(each) for each in sorted(workspace.glob("boxes/*")))
        _describe(workspace, env["HAFT_HOME"])
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM, str(settle), str(measured)],
            cwd=workspace,
            env=env,
            check=True,
            capture_output=True,
            text=True,
        )
    found = json.loads(done.stdout)
    if found["tools"] < tools:
        raise RuntimeError(f"only {found['tools']} of {tools} tools were found")
    return float(found["used"] * 60 / measured)


def _fill(workspace: Path, tools: int) -> None:
    """Make the tools: a tenth are templates, each in its own folder; the others are executables, a thousand in each
    directory."""
    if not tools:
        return
    templates = tools // 10
    for number in range(tools - templates):
        box = workspace / "boxes" / str(number // 1_000)
        box.mkdir(parents=True, exist_ok=True)
        tool = box / f"t{number}"
        tool.write_text(TOOL.format(name=tool.name))
        tool.chmod(0o755)
    for number in range(templates):
        folder = workspace / "templates" / f"template_{number}"
        folder.mkdir(parents=True)
        for name in ("tool.py", "requirements.txt"):
            shutil.copy(TEMPLATE / name, folder)
    (workspace / "haft.toml").write_text('[templates]\npaths = ["./templates"]\n')


def _describe(workspace: Path, home: str) -> None:
    """Store the descriptions of the executables, as if haft had described them: starting thousands of them is another
    matter."""
    definitions = DefinitionCache(StateHome(home).definitions, __version__)
    for box in workspace.glob("boxes/*"):
        known = {}
        for tool in box.iterdir():
            stdout = f"name: {tool.name}\ndescription: Says a word.\n".encode()
            known[str(tool)] = {
                "identity": identity_at(str(tool)),
                **read(ProgramOutput(stdout=stdout, exit_code=0), str(tool)),
            }
        definitions.save(f"amp-toolbox:{box}", known)


def idle_ratio(tools: int = MANY, *, settle: float = SETTLE_SECONDS, measured: float = MEASURED_SECONDS) -> float:
    """The use of an idle service with `tools` tools, as a multiple of that of a service without tools."""
    none, many = (idle_seconds(count, settle=settle, measured=measured) for count in (0, tools))
    print(f"idle, processor seconds a minute: {none:.3f} with no tools, {many:.3f} with {tools}")
    return max(many, LEAST_SECONDS) / max(none, LEAST_SECONDS)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tools", type=int, default=MANY)
    parser.add_argument("--settle", type=float, default=SETTLE_SECONDS)
    parser.add_argument("--measured", type=float, default=MEASURED_SECONDS)
    arguments = parser.parse_args()
    print(f"ratio: {idle_ratio(arguments.tools, settle=arguments.settle, measured=arguments.measured):.2f}")


if __name__ == "__main__":
    main()
