"""The entry point of the command `haft` and of `python -m haft`. It checks the platform before it imports anything."""

import gc
import sys
from typing import Any


def main() -> None:
    """Run the command line and exit."""
    if sys.platform == "win32":
        sys.exit("error: haft needs Linux or macOS; on Windows it runs in WSL")
    gc.set_threshold(100_000, 50, 100)  # Imports create tens of thousands of objects, and none of them is garbage.
    try:
        from haft.surfaces.cli.main import main as run_and_exit

        run_and_exit(servers={"mcp": _serve_mcp})
    finally:
        gc.freeze()  # The process ends anyway: a last garbage collection would take a tenth of a short command's time.


def _serve_mcp(**options: Any) -> int:
    from haft.surfaces.mcp.options import ServeOptions

    if options["http"] is not None:
        from haft.surfaces.mcp import http

        return http.serve(ServeOptions(**options))
    from haft.surfaces.mcp import stdio

    return stdio.serve(ServeOptions(**options))


if __name__ == "__main__":
    main()
