"""
Print the first lines of a text file.
Use this tool instead of reading a whole file when only its beginning matters, as in a long log or table.
It reads one file and changes nothing; it prints at most 1000 lines.
"""

# __NAME__ is a tool template: a folder with this file and requirements.txt, installed into an environment of its own.
#
# The text above is what an agent reads: say what the tool does, when to use it, and what it will not do.
# UserParameters   What a person sets once: keys, addresses. It is secret to the agent. It may be empty (`pass`).
# ToolParameters   What the agent gives with each call. Describe every field; one with a default may be left out.
# run_tool         Does the work. What it returns, text or something that JSON can hold, is the answer.
# OUTPUT_KEY       Only what is printed after this word reaches the agent; print what you like before it.
# These names are fixed: the template is read without being run. On an error, exit with another code than 0.
# The working directory is the workspace; files that come with the template lie beside `__file__`.
# By hand: python tool.py --user-params '{}' --tool-params '{"path": "FILE"}'

import argparse
import itertools
import json
import sys
from typing import Any, NoReturn

from pydantic import BaseModel, Field, ValidationError


class UserParameters(BaseModel):
    """Set once, when the tool is added."""

    encoding: str = Field(default="utf-8", description="The encoding of the files that are read.")


class ToolParameters(BaseModel):
    """Given with each call."""

    path: str = Field(min_length=1, description="The file to read, relative to the workspace.")
    limit: int = Field(default=10, ge=1, le=1000, description="How many lines to print, from 1 to 1000. Default: 10.")


def run_tool(config: UserParameters, args: ToolParameters) -> Any:
    """The first lines of the file, as they are."""
    with open(args.path, encoding=config.encoding, errors="replace", newline="") as file:
        return "".join(itertools.islice(file, args.limit))


OUTPUT_KEY = "tool_output"


def fail(problem: str) -> NoReturn:
    """Say what is wrong and what to do instead."""
    print(f"Error: {problem}", file=sys.stderr)
    print('Usage: provide {"path": "FILE", "limit": LINES}; limit may be left out', file=sys.stderr)
    sys.exit(1)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--user-params", required=True, help="UserParameters as JSON")
    parser.add_argument("--tool-params", required=True, help="ToolParameters as JSON")
    arguments = parser.parse_args()

    try:
        user_parameters = UserParameters(**json.loads(arguments.user_params))
        tool_parameters = ToolParameters(**json.loads(arguments.tool_params))
        output = run_tool(user_parameters, tool_parameters)
    except ValidationError as error:
        fail("; ".join(f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in error.errors()))
    except (OSError, LookupError) as error:
        fail(str(error))
    print(OUTPUT_KEY, output)
