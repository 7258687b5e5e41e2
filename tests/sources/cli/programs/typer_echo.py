"""Prints the arguments that it got, as JSON."""

import enum
import json
from typing import Annotated, Literal

import typer

app = typer.Typer(help="A program of many parts.")
remote = typer.Typer()
app.add_typer(remote, name="remote")


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


@app.command()
def say(
    text: str,
    rest: Annotated[list[str] | None, typer.Argument()] = None,
    name: Annotated[str, typer.Option("--name", "-n", help="Whose it is.")] = "nobody",
    times: int = 3,
    scale: float | None = None,
    loud: bool = True,
    dry: Annotated[bool, typer.Option("--dry")] = False,
    level: Annotated[int, typer.Option("--verbose", "-v", count=True)] = 0,
    tag: Annotated[list[str] | None, typer.Option()] = None,
    numbers: Annotated[list[int] | None, typer.Option("--number")] = None,
    pair: tuple[str, int] = ("", 0),
    colour: Colour = Colour.RED,
    size: Literal["small", "large"] = "small",
):
    """Say something."""
    print(json.dumps({"line": "say", **locals(), "colour": colour.value}))


@remote.command("add")
def add(name: str, url: Annotated[str, typer.Option()]):
    """Add one."""
    print(json.dumps({"line": "remote add", **locals()}))


def main():
    app()


if __name__ == "__main__":
    main()
