"""Prints the arguments that it got, as JSON."""

import enum
import json

import click


def echo(**given):
    print(json.dumps({"line": click.get_current_context().command_path.split(" ", 1)[-1], **given}))


class Weekday(enum.Enum):
    MONDAY = 1
    SUNDAY = 7


@click.group()
@click.option("--debug", is_flag=True)
def main(debug):
    """A program of many parts."""


@main.command()
@click.argument("text")
@click.argument("rest", nargs=-1)
@click.option("--name", "-n", default="nobody", help="Whose it is.")
@click.option("--times", type=int, default=3)
@click.option("--scale", type=click.FloatRange(-1e300, 1e300))
@click.option("--loud/--quiet", default=True)
@click.option("--dry", is_flag=True)
@click.option("-v", "--verbose", "level", count=True)
@click.option("--tag", multiple=True)
@click.option("--pair", nargs=2, type=(str, int))
@click.option("--colour", type=click.Choice(["red", "blue"]))
@click.option("--day", type=click.Choice(Weekday))
@click.option("--upper", "case", flag_value="upper")
@click.option("--lower", "case", flag_value="lower")
@click.option("--no-frame", "frame", is_flag=True, flag_value=False, default=True)
@click.option("-s", "short")
@click.option("--sure", type=bool)
@click.option("--hidden", hidden=True)
@click.version_option("1.0")
def say(hidden, day, **given):
    """Say something.

    \b
    As often as wanted.
    \f
    Nobody reads this.
    """
    echo(day=day and day.name, **given)


@main.group()
def remote():
    """What is far away."""


@remote.command("add")
@click.argument("name")
@click.option("--url", required=True)
def add(**given):
    """Add one."""
    echo(**given)


@remote.group()
def deep():
    pass


@deep.command("set-it")
@click.argument("first", required=False)
@click.argument("second", required=False)
@click.option("--word", prompt=True)
@click.confirmation_option(prompt="Really?")
def set_it(**given):
    echo(**given)


@main.command(hidden=True)
def unseen():
    pass


if __name__ == "__main__":
    main()
