"""Test scenarios: 200 of them run by `haft tools test`, against an ideal packing of their serial times; and what the
pytest plugin adds to pytest in an empty folder.

Each scenario's serial time is measured in the same run, with one job. No packing on the cores is shorter than the sum
divided by the cores, nor than the longest scenario. The time of `haft tools test` counts as a whole, from the start of
the process to its end.

`python -m benchmarks.testing` prints this part alone.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from importlib.metadata import entry_points
from typing import Any

from benchmarks.measure import Row, in_turns_blocking, print_table

EACH = 50
"""Cases of each of the four formats."""

TOOLBOX = """#!/bin/sh
if [ "$TOOLBOX_ACTION" = describe ]; then
    echo '{"name": "count_lines", "description": "Count lines.", "inputSchema":
           {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}}'
    exit
fi
path=$(sed 's/.*"path": *"\\([^"]*\\)".*/\\1/')
wc -l < "$path" | tr -d ' ' | tee COUNT
"""
PYTHON = '''from pathlib import Path

from haft import tool


@tool
def shout(path: str) -> str:
    """Write a file in capital letters."""
    text = Path(path).read_text().upper()
    Path(path).write_text(text)
    return text
'''
PLUGIN = os.path.join(os.path.dirname(__file__), "..", "examples", "bash-read-line-range")


def write_scenarios(place: str) -> int:
    """Write tools of four formats with their scenarios, and return how many scenarios there are."""
    tools = os.path.join(place, "tools")
    os.mkdir(tools)
    executable = os.path.join(tools, "count_lines")
    for path, text in ((executable, TOOLBOX), (os.path.join(tools, "shout.py"), PYTHON)):
        with open(path, "w") as file:
            file.write(text)
    os.chmod(executable, 0o755)
    for name, scenario in _scenarios().items():
        with open(os.path.join(tools, f"{name}.scenario.json"), "w") as file:
            json.dump(scenario, file)
    return EACH * len(_scenarios())


def _scenarios() -> dict[str, dict[str, Any]]:
    numbers = range(1, EACH + 1)
    lines = {number: "".join(f"line {each}\n" for each in range(number)) for number in numbers}
    return {
        "count_lines": {
            "tool": "tb__count_lines",
            "args": {"path": "a.txt"},
            "cases": [
                {
                    "name": f"toolbox {number}",
                    "files": {"a.txt": lines[number]},
                    "expect": {"output": f"{number}\n", "files": {"COUNT": f"{number}\n"}},
                }
                for number in numbers
            ],
        },
        "lines": {
            "tool": "read_line_range",
            "load": [os.path.abspath(PLUGIN)],
            "files": {"a.txt": lines[EACH]},
            "cases": [
                {
                    "name": f"plugin {number}",
                    "args": {"path": "a.txt", "start_line": number, "end_line": number},
                    "expect": {"output": f"line {number - 1}\n", "only_changed": []},
                }
                for number in numbers
            ],
        },
        "shout": {
            "tool": "shout",
            "load": ["shout.py"],
            "args": {"path": "a.txt"},
            "cases": [
                {
                    "name": f"python {number}",
                    "files": {"a.txt": lines[number]},
                    "expect": {"files": {"a.txt": lines[number].upper()}},
                }
                for number in numbers
            ],
        },
        "builtin": {
            "tool": "edit_file",
            "files": {"a.txt": lines[EACH]},
            "cases": [
                {
                    "name": f"built-in {number}",
                    "args": {"path": "a.txt", "old_string": "line 0\n", "new_string": f"edited {number}\n"},
                    "expect": {"files": {"a.txt": lines[EACH].replace("line 0\n", f"edited {number}\n")}},
                }
                if number % 2
                else {
                    "name": f"built-in {number}",
                    "tool": "shell",
                    "args": {"command": f"head -n {number} a.txt > b.txt"},
                    "expect": {"files": {"b.txt": lines[number]}},
                }
                for number in numbers
            ],
        },
    }


class Tested:
    """One run of `haft tools test`: its seconds, and those of each scenario."""

    def __init__(self, place: str, *words: str) -> None:
        line = [sys.executable, "-m", "haft", "tools", "test", "tools", "--json", *words]
        env = {**os.environ, "HAFT_HOME": os.path.join(place, "state"), "HOME": place}
        start = time.perf_counter()
        done = subprocess.run(line, cwd=place, env=env, check=True, stdout=subprocess.PIPE)
        self.seconds = time.perf_counter() - start
        results = json.loads(done.stdout)
        assert all(each["passed"] for each in results)
        self.each = [each["seconds"] for each in results]


def scenarios(place: str) -> tuple[Row, str]:
    """All scenarios at once against an ideal packing, and a line about what both are made of."""
    count = write_scenarios(place)
    Tested(place, "-k", f" {EACH}")  # The first run is slower: it reads everything from the disk.
    cores = len(os.sched_getaffinity(0))
    serial, single, parallel = Tested(place, "-j", "1"), Tested(place, "-k", "toolbox 1", "-j", "1"), Tested(place)
    assert len(serial.each) == len(parallel.each) == count
    ideal = max(sum(serial.each) / cores, max(serial.each))
    start_up = single.seconds - sum(single.each)
    return Row(f"{count} scenarios on {cores} cores", parallel.seconds, "ideal packing", ideal, 2.0), (
        f"the {count} scenarios take {sum(serial.each):.1f} s one after another, the longest {max(serial.each):.2f} s; "
        f"start and end of `haft tools test` take {start_up:.2f} s, {start_up / parallel.seconds:.0%} of its time"
    )


def collecting(place: str) -> tuple[Row, str]:
    """`pytest --collect-only` in an empty folder, with the plugin of haft and without. Other plugins are off, because
    the time that they take would hide a difference."""
    folder = os.path.join(place, "empty")
    os.mkdir(folder)
    words = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", "--rootdir", folder]
    others = {each.name for each in entry_points(group="pytest11")} - {"haft"}
    words += [word for name in sorted(others) for word in ("-p", f"no:{name}")]

    # Without compiled files, pytest would compile the plugin each time.
    env = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}

    def run(*more: str) -> int:
        done = subprocess.run([*words, *more], cwd=folder, env=env, stdout=subprocess.DEVNULL)
        assert done.returncode == 5, "there are tests in the empty folder"
        return done.returncode

    ours, bare = in_turns_blocking(run, lambda: run("-p", "no:haft"), rounds=21)
    row = Row("pytest --collect-only, empty folder", ours, "without the plugin", bare, 1.1)
    return row, f"the plugin adds {(ours - bare) * 1000:.1f} ms to pytest"


def rows(scratch: str) -> tuple[list[Row], str]:
    """The rows of the table, and what else there is to say."""
    packed, times = scenarios(scratch)
    collected, added = collecting(scratch)
    return [packed, collected], f"{times}\n{added}"


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as directory:
        measured, told = rows(directory)
        print_table(measured)
        print(f"\n{told}")
