"""Tools as plain Python functions: `plugins = ["python:./functions.py"]`."""

from haft import tool


@tool(readonly=True)
def count_words(text: str) -> int:
    """Count the words of a text."""
    return len(text.split())
