"""
Counts the words of a text file, and says how long a person reads it. A tool template of Agent Studio.
"""

import argparse
import json
from pathlib import Path
from typing import Any

from pydantic import BaseModel, Field


class UserParameters(BaseModel):
    words_per_minute: int = 200


class ToolParameters(BaseModel):
    path: str = Field(description="The text file, relative to the current directory.")
    skip_code: bool = Field(default=False, description="Whether blocks between ``` are left out.")


def prose(lines: list[str]) -> list[str]:
    kept = []
    in_code = False
    for line in lines:
        if line.startswith("```"):
            in_code = not in_code
        elif not in_code:
            kept.append(line)
    return kept


def run_tool(config: UserParameters, args: ToolParameters) -> Any:
    lines = Path(args.path).read_text().splitlines()
    words = sum(len(line.split()) for line in (prose(lines) if args.skip_code else lines))
    minutes = -(-words // config.words_per_minute)
    return {"words": words, "minutes": minutes, "is_short": minutes <= 1}


OUTPUT_KEY = "tool_output"

if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--user-params")
    parser.add_argument("--tool-params")
    words = parser.parse_args()

    config = UserParameters(**json.loads(words.user_params))
    params = ToolParameters(**json.loads(words.tool_params))
    print(OUTPUT_KEY, json.dumps(run_tool(config, params)))
