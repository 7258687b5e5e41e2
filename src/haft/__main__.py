"""The entry of the command `haft` and of `python -m haft`. It imports nothing before it knows that haft runs here."""

import gc
import sys


def main() -> None:
    """Run the command line and exit."""
    if sys.platform == "win32":
        sys.exit("error: haft needs Linux or macOS; on Windows it runs in WSL")
    gc.set_threshold(100_000, 50, 100)  # Loading makes tens of thousands of objects, and they all stay.
    try:
        from haft.surfaces.cli.main import main as run_and_exit

        run_and_exit()
    finally:
        gc.freeze()  # All of it goes with the process: looking for circles first is a tenth of a short command.


if __name__ == "__main__":
    main()
