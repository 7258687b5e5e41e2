"""Tools as Python functions: `plugins = ["python:./words.py"]`. haft runs each call in the sandbox."""

from collections import Counter
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, Field

from haft import tool


class WordCount(BaseModel):
    word: str
    count: int


@tool(readonly=True)
def frequent_words(
    path: str,
    limit: Annotated[int, Field(ge=1, le=100)] = 3,
    shortest: Annotated[int, Field(ge=1)] = 4,
) -> list[WordCount]:
    """The most frequent words of a text file. Use this instead of reading a long file to see what it is about.

    Args:
        path: The file, relative to the workspace.
        limit: How many words at most.
        shortest: Words with fewer letters do not count.
    """
    words = (each.strip(".,;:!?()\"'").lower() for each in Path(path).read_text().split())
    counts = Counter(each for each in words if len(each) >= shortest)
    ordered = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))
    return [WordCount(word=word, count=count) for word, count in ordered[:limit]]


@tool(idempotent=True)
def clean_text(path: str, line_ends: Literal["lf", "crlf"] = "lf") -> str:
    """Remove trailing space and empty lines at the end of a text file, and make all line ends the same.

    Use this instead of rewriting a file whose text stays the same.

    Args:
        path: The file, relative to the workspace.
        line_ends: How each line ends afterwards.
    """
    file = Path(path)
    before = file.read_bytes()
    end = {"lf": b"\n", "crlf": b"\r\n"}[line_ends]
    lines = [line.rstrip() for line in before.splitlines()]
    while lines and not lines[-1]:
        lines.pop()
    after = b"".join(line + end for line in lines)
    if after == before:
        return f"{path} is clean"
    file.write_bytes(after)
    return f"{path}: {len(before)} bytes before, {len(after)} after"
