"""`python -m cdd`: the same program as the command `cdd`."""

from __future__ import annotations

from cdd.cli import main

if __name__ == "__main__":
    main(prog_name="cdd")
