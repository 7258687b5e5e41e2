"""Check that every import inside a function pays. `python scripts/late_imports.py`; exit 1 if one does not.

An import belongs in a function only if a command that must be quick loads the file but not the imported module: listing
tools or templates, showing one, the help of any command, two calls, and the first lines of programs that embed haft.
This script runs each of these and measures what it loads, with tools of every format and without tools. All other
imports belong at the top.
"""

import ast
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

TOP = Path(__file__).parent.parent
ROOT = TOP / "src"

PROGRAMS = (
    "haft.helper",
    "haft.sources.agent_studio.runner",
    "haft.sources.cli.introspector",
    "haft.sources.cli.wrapper_main",
    "haft.sources.python.worker",
    "haft.sources.python_plugin.program",
    "haft.surfaces.hook.start",
)
"""Programs that run in their own processes, and load as little there as possible."""

SETTINGS = f"""
plugins = ["bash:{TOP}/examples/bash-read-line-range/read_line_range.bash", "python:{TOP}/examples/functions.py"]
[templates]
paths = ["{TOP}/examples/json-reader"]
[cli.cdd]
click = "cdd.cli:main"
[providers.local]
command = "npx"
args = ["-y", "no-such-server"]
[providers.remote]
url = "https://mcp.example/mcp"
[providers.small]
command = "{sys.executable}"
args = ["{TOP}/tests/sources/mcp/servers.py"]
"""
"""One tool of every format, so that listing them is measured too."""

QUICK = (
    ["tools", "list"],
    ["tools", "show", "shell"],
    ["tools", "search", "read"],
    ["templates", "list"],
    ["providers", "list"],
    ["tools", "use", "list_directory"],
    ["tools", "use", "shell", "--command", "true", "--approve"],
)

LIGHT = (
    "import haft",
    "import haft.builtin",
    "import haft.sources.python.worker",
    "import haft.toolsets.environments",
    "from haft import tool; tool(lambda: None)",
    "import haft.__main__",
    "import haft.__main__; import haft.surfaces.mcp.command_line; import haft.surfaces.mcp.first_answer",
    "import haft.surfaces.hook.serving",
    "import haft.surfaces.hook.hook_calls",
    "import haft.testing.plugin",
    "from haft.testing.reading import scenarios_from; from haft.testing.running import Watch, run_scenarios",
)
"""The first statements of programs that embed haft, of workers, of `haft serve mcp` and of the resident of hooks, whose
first answers must be quick. And of every run of pytest, and of what starts the workers that run scenarios."""

MEASURE = """
import os, sys
from haft.surfaces.cli.main import run
words = WORDS
if words != ["--help"]:
    run(words)
    print(*sys.modules, file=sys.stderr)
    sys.exit()
from haft.surfaces.cli.app import HAFT

def commands(group, above=()):
    for name, place in group._places.items():
        yield (*above, name)
        if hasattr(place, "_places"):
            yield from commands(place, (*above, name))

for command in [(), *commands(HAFT)]:
    if not os.fork():
        try:
            run([*command, "--help"])
        except SystemExit:
            pass
        print(*sys.modules, file=sys.stderr, flush=True)
        os._exit(0)
    os.wait()
"""


def furnish(home: str) -> None:
    """Write a configuration, and a tool and a skill into the workspace."""
    Path(home, "config/haft/haft.toml").write_text(SETTINGS)
    Path(home, "workspace/.agents/skills/reading/SKILL.md").write_text("---\nname: reading\ndescription: Reads.\n---\n")
    tool = Path(home, "workspace/.agents/tools/hello")
    tool.write_text("#!/bin/sh\necho 'name: hello'\necho 'description: Says hello.'\n")
    tool.chmod(0o755)


def loaded_by(words: list[str], *, is_empty: bool = False) -> list[set[str]]:
    """The modules that each process of this command had loaded at its end."""
    with tempfile.TemporaryDirectory() as home:
        for directory in ("workspace/.agents/tools", "workspace/.agents/skills/reading", "config/haft"):
            os.makedirs(f"{home}/{directory}")
        if not is_empty:
            furnish(home)
        env = {**os.environ, "HOME": home, "XDG_CONFIG_HOME": f"{home}/config", "HAFT_HOME": f"{home}/state"}
        if not is_empty and words != ["--help"]:
            restart = [sys.executable, "-m", "haft", "-q", "providers", "restart", "small"]
            subprocess.run(restart, cwd=f"{home}/workspace", env=env, stdout=subprocess.DEVNULL, check=True)
        for _ in range(2):  # The first run describes the tools; the second one has their descriptions.
            done = subprocess.run(
                [sys.executable, "-c", MEASURE.replace("WORDS", repr(words))],
                cwd=f"{home}/workspace",
                env=env,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                text=True,
                check=True,
            )
    return [set(line.split()) for line in done.stderr.splitlines() if line.startswith("sys builtins ")]


def loaded_after(statement: str) -> set[str]:
    """The modules that a program has loaded after this statement."""
    words = [sys.executable, "-c", f"{statement}; import sys; print(*sys.modules)"]
    return set(subprocess.run(words, stdout=subprocess.PIPE, text=True, check=True).stdout.split())


def home_of(module: str, name: str) -> str:
    """The module that is loaded when this name is imported, possibly through a face."""
    place = ROOT.joinpath(*module.split("."))
    if not place.is_dir():
        return module
    if (place / name).is_dir() or (place / f"{name}.py").exists():
        return f"{module}.{name}"
    for node in ast.walk(ast.parse((place / "__init__.py").read_bytes())):
        if isinstance(node, ast.ImportFrom) and node.module and any(alias.name == name for alias in node.names):
            return home_of(node.module, name)
    return module


def late(file: Path) -> Iterator[tuple[int, set[str]]]:
    """Line and modules of each import inside a function."""
    found: dict[int, set[str]] = {}
    for function in ast.walk(ast.parse(file.read_bytes())):
        if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        optional = {inner for node in ast.walk(function) if isinstance(node, ast.Try) for inner in node.body}
        for node in set(ast.walk(function)) - optional:  # An import in `try` may be missing.
            if isinstance(node, ast.Import):
                found[node.lineno] = {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module:
                found[node.lineno] = {home_of(node.module, alias.name) for alias in node.names}
    yield from sorted(found.items())


def main() -> int:
    quick = [modules for words in (*QUICK, ["--help"]) for modules in loaded_by(words)]
    quick += [modules for words in QUICK for modules in loaded_by(words, is_empty=True)]
    quick += [loaded_after(statement) for statement in LIGHT]
    found = []
    for file in sorted((ROOT / "haft").rglob("*.py")):
        name = ".".join(file.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
        if name.startswith(PROGRAMS):
            continue
        for line, modules in late(file):
            if not any(name in loaded and modules - loaded for loaded in quick):
                found.append(
                    f"{file.relative_to(ROOT)}:{line}: {', '.join(sorted(modules))} can be imported at the top"
                )
    print("\n".join(found) or "every import inside a function keeps a quick command quick")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
