"""The entry point of the command `haft` and of `python -m haft`. It checks the platform before it imports anything.

Surfaces do not import each other: this module gives the command line the servers that `haft serve` starts, and the
program behind `haft hook`.
"""

import contextlib
import gc
import os
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from haft.surfaces.mcp.first_answer import FirstAnswers


def main() -> None:
    """Run the command line and exit."""
    if sys.platform == "win32":
        sys.exit("error: haft needs Linux or macOS; on Windows it runs in WSL")
    gc.set_threshold(100_000, 50, 100)  # Imports create tens of thousands of objects, and none of them is garbage.
    if sys.argv[1:3] == ["hook", "--resident"]:  # An agent waits: the command line would only cost time.
        sys.exit(_serve_hooks(sys.argv[3:]))
    if sys.argv[1:2] == ["hook"] and not {"--help", "-h"} & {*sys.argv[2:]}:
        # Not through the command line: some agents let a call pass after its exit code 1, and inside `haft run` it
        # refuses to run, although the run itself answers hooks.
        sys.exit(_answer_agent(sys.argv[2:]))
    if "serve" in sys.argv and os.environ.get("HAFT_INSIDE"):
        _serve_inside_run()
    first = _first_answers(sys.argv[1:]) if "serve" in sys.argv else None
    try:
        from haft.surfaces.cli.main import main as run_and_exit

        run_and_exit(
            servers={
                "mcp": lambda **options: _serve_mcp(first, **options),
                "http": lambda **options: _serve_http(**options),
                "hook": _run_hook,
            }
        )
    finally:
        gc.freeze()  # The process ends anyway: a last garbage collection would take a tenth of a short command's time.


def _serve_inside_run() -> None:
    """Serve an MCP client without tools, and exit, if this process is inside `haft run`."""
    from haft.surfaces.mcp.inside_run import outer_run, serve_nothing

    run = outer_run()
    if run is not None:
        sys.exit(serve_nothing(run))


def _first_answers(words: list[str]) -> "FirstAnswers | None":
    """Begin to answer an MCP client before anything else is imported; None if the command serves no client on stdin, or
    if the command line has to be parsed first."""
    from haft.surfaces.mcp.command_line import serves_stdio

    if os.environ.get("HAFT_INSIDE") or not serves_stdio(words):
        return None
    from haft.surfaces.mcp import first_answer

    return first_answer.begin(words)


def _serve_mcp(first: "FirstAnswers | None", **options: Any) -> int:
    from haft.surfaces.mcp.options import ServeOptions

    if options["http"] is not None:
        from haft.surfaces.mcp.over_http import app as http

        return http.serve(ServeOptions(**options))
    from haft.surfaces.mcp import stdio

    return stdio.serve(ServeOptions(**options), first)


def _serve_http(**options: Any) -> int:
    from haft.surfaces.http.options import HttpOptions
    from haft.surfaces.http.serve import serve
    from haft.surfaces.mcp.over_http.part import HttpPart

    return serve(HttpOptions(**options), HttpPart)


def _serve_hooks(words: list[str]) -> int:
    from haft.surfaces.hook.serving import serve_resident

    return serve_resident(int(words[1]) if words[:1] == ["--ready"] else None)


def _answer_agent(words: list[str]) -> int:
    """Become the hook's program: `haft hook AGENT`. If that fails, the call is denied: exit code 2."""
    try:
        from haft.surfaces.hook.line import run_line

        return run_line(" ".join(words))
    except BaseException as error:
        why = f"its hook could not start: {type(error).__name__}: {error}"
        with contextlib.suppress(OSError):
            os.write(2, f"haft denied this call, because {why}. `haft doctor` says more.\n".encode(errors="replace"))
        return 2


def _run_hook(agent: str | None, resident: bool) -> int:
    if resident:
        return _serve_hooks([])
    from haft.surfaces.hook.line import run_line

    return run_line(agent)


if __name__ == "__main__":
    main()
