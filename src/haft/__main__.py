"""The entry of the command `haft` and of `python -m haft`. It imports nothing before it knows that haft runs here."""

import sys

from haft.surfaces.cli.main import main as run_and_exit


def main() -> None:
    """Run the command line and exit."""
    if sys.platform == "win32":
        sys.exit("error: haft needs Linux or macOS; on Windows it runs in WSL")

    run_and_exit()


if __name__ == "__main__":
    main()
