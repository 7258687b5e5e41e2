"""Prints the arguments that it got, as JSON."""

import argparse
import json


def build():
    parser = argparse.ArgumentParser(description="A program of many parts.")
    parser.add_argument("--version", action="version", version="1")
    parts = parser.add_subparsers(dest="part")
    say = parts.add_parser("say", aliases=["tell"], help="Say 100%% of something.")
    say.add_argument("text", help="What %(prog)s says.")
    say.add_argument("rest", nargs="*")
    say.add_argument("-n", "--name", default="nobody", help="Whose it is (%(default)s).")
    say.add_argument("--times", type=int, default=3)
    say.add_argument("--scale", type=float)
    say.add_argument("--loud", action=argparse.BooleanOptionalAction, default=True)
    say.add_argument("--dry", action="store_true")
    say.add_argument("--no-frame", dest="frame", action="store_false")
    say.add_argument("-v", "--verbose", dest="level", action="count", default=0)
    say.add_argument("--tag", action="append")
    say.add_argument("--more", action="extend", nargs="+")
    say.add_argument("--pair", nargs=2)
    say.add_argument("--pairs", nargs=2, action="append")
    say.add_argument("--size", type=int, choices=[1, 2, 4])
    say.add_argument("--colour", choices=["red", "blue"])
    say.add_argument("--port", type=int, choices=range(65536))
    say.add_argument("-s", dest="short")
    say.add_argument("--hidden", help=argparse.SUPPRESS)
    case = say.add_mutually_exclusive_group()
    case.add_argument("--upper", dest="case", action="store_const", const="upper")
    case.add_argument("--lower", dest="case", action="store_const", const="lower", help="Softly")
    key = say.add_mutually_exclusive_group(required=True)
    key.add_argument("--key")
    key.add_argument("--key-file")
    remote = parts.add_parser("remote").add_subparsers(dest="what")
    add = remote.add_parser("add", description="Add one.")
    add.add_argument("url", nargs="?")
    add.add_argument("--name", required=True)
    run = parts.add_parser("run")
    run.add_argument("words", nargs=argparse.REMAINDER)
    return parser


def main():
    print(json.dumps(vars(build().parse_args())))


if __name__ == "__main__":
    main()
