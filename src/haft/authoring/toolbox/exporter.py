"""Exports tools as executables for other agents. The executables call haft, so that rules, limits, undo and the audit
log apply there too.

A line in the executable names the original tool. If haft finds the executable in a toolbox, it calls the original tool
and does not start the executable.
"""

from __future__ import annotations

import json
import os
import pprint
import shutil
import sys
from collections.abc import Mapping, Sequence
from typing import Any, Final

from haft.authoring.toolbox.executables import IMPORTS, WrittenExecutable, in_a_docstring, place
from haft.contracts import BadUsage, Listing, ToolSpec
from haft.sources.amp_toolbox import MARK, PREFIX, Export

WAIT_SECONDS: Final = 600
EVERYWHERE: Final = ("builtin", "installed")
_TEXT: Final = '''#!/usr/bin/env python3
{mark}
"""{summary}

A toolbox executable for a tool of haft, made by `haft toolbox export`. It starts `haft tools use`, so that approval,
limits, undo and the audit log of haft apply. A call that needs approval waits in the inbox.
"""

{imports}
HAFT = {haft}
DESCRIPTION = {description}


def main() -> int:
    action = os.environ.get("TOOLBOX_ACTION")
    if action == "describe":
        print(json.dumps(DESCRIPTION, indent=2))
        return 0
    if action != "execute":
        print("usage: TOOLBOX_ACTION=describe|execute " + sys.argv[0], file=sys.stderr)
        return 2
    if os.environ.get("HAFT_INSIDE"):
        print("haft cannot run inside one of its own calls: let the agent call the tool directly", file=sys.stderr)
        return 1
    words = ["tools", "use", os.path.abspath(__file__), "--args", "-", "--only", "output", "--wait", "{wait}"]
    env = {{name: value for name, value in os.environ.items() if name != "TOOLBOX_ACTION"}}
    for program in (HAFT, "haft"):
        try:
            os.execvpe(program, [program, *words], env)
        except OSError as error:
            why = error
    print("haft cannot be started: " + str(why), file=sys.stderr)
    return 127


if __name__ == "__main__":
    sys.exit(main())
'''


def export(
    listings: Sequence[Listing], directory: str, workspace: str, *, force: bool = False
) -> list[WrittenExecutable]:
    """Write an executable for each tool, all of them or none."""
    texts: dict[str, str] = {}
    for listing in listings:
        spec = listing.spec
        if spec.provenance == "embedded":
            raise BadUsage(f"`{spec.name}` cannot be exported: it exists only in the program that added it")
        if spec.hosting == "session":
            raise BadUsage(f"`{spec.name}` cannot be exported: it keeps state for its workspace")
        if "export" in spec.meta:
            raise BadUsage(f"`{spec.name}` is exported already: {spec.origin}")
        name = spec.name.removeprefix(PREFIX)
        if name in texts:
            raise BadUsage(
                f"`{name}` and `{PREFIX}{name}` would be the same file", hint="export them to different directories"
            )
        texts[name] = executable(name, spec, None if spec.provenance in EVERYWHERE else workspace)
    return place(texts, directory, force=force)


def executable(name: str, spec: ToolSpec, workspace: str | None) -> str:
    """The text of the executable for a tool."""
    mark = MARK + json.dumps(Export(name, spec.name, workspace).to_json())
    description: Mapping[str, Any] = {
        "name": name,
        "description": spec.description,
        "inputSchema": json.loads(json.dumps(spec.input_schema, default=dict)),
    }
    return _TEXT.format(
        mark=mark,
        imports=IMPORTS,
        summary=in_a_docstring(spec.summary) or name,
        haft=repr(_own_program()),
        description=pprint.pformat(description, width=110, sort_dicts=False),
        wait=WAIT_SECONDS,
    )


def _own_program() -> str:
    """The path of `haft`: beside the Python that runs it, else from PATH."""
    beside = os.path.join(os.path.dirname(sys.executable), "haft")
    return beside if os.access(beside, os.X_OK) else shutil.which("haft") or "haft"
