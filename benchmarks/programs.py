"""`haft run --times 3` on a repository of 100,000 files: how long each program waits for its start, and the memory that
haft itself and its helpers take, beside three copies of the repository.

`make bench-programs` prints the numbers, `python -m benchmarks.programs FILES` those of another repository. Nothing is
promised.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time

TIMES = 3
SCRIPT = 'date +%s.%N; echo "$$" > own.txt; sleep 1'


def make_repository(place: str, files: int) -> None:
    """A git repository with so many small files."""
    for number in range(files):
        if number % 100 == 0:
            directory = os.path.join(place, f"d{number // 10_000}", f"e{number // 100}")
            os.makedirs(directory)
        with open(os.path.join(directory, f"f{number}.txt"), "w") as file:
            file.write(f"file {number}\n")
    subprocess.run(["git", "init", "-q"], cwd=place, check=True)


def memory_of(root: int) -> int:
    """The memory in bytes that a process and its descendants have for themselves: shared pages count in part."""
    parents: dict[int, int] = {}
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/stat", "rb") as file:
                parents[int(name)] = int(file.read().rsplit(b")", 1)[1].split()[1])
        except OSError:
            continue
    family = {root}
    while more := {pid for pid, parent in parents.items() if parent in family} - family:
        family |= more
    total = 0
    for pid in family:
        try:
            with open(f"/proc/{pid}/smaps_rollup") as file:
                total += sum(int(line.split()[1]) * 1024 for line in file if line.startswith("Pss:"))
        except OSError:
            continue
    return total


def main() -> None:
    files = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    with tempfile.TemporaryDirectory(prefix="haft-programs-", dir="/var/tmp") as place:
        repository = os.path.join(place, "repository")
        os.mkdir(repository)
        make_repository(repository, files)
        env = {**os.environ, "HAFT_HOME": os.path.join(place, "state")}
        words = [sys.executable, "-m", "haft", "run", "-q", "--json"]
        for count in (1, TIMES):
            began = time.time()
            times = ["--times", str(count)] if count > 1 else []
            process = subprocess.Popen(
                [*words, *times, "--", "bash", "-c", SCRIPT],
                cwd=repository,
                env=env,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
            )
            most = 0
            while process.poll() is None:
                most = max(most, memory_of(process.pid))
                time.sleep(0.1)
            taken = time.time() - began
            assert process.stdout is not None
            found = json.loads(process.stdout.read())
            outputs = [each["output"] for each in (found["runs"] if count > 1 else [found])]
            starts = ", ".join(f"{float(each.split()[0]) - began:.2f} s" for each in outputs)
            print(f"{count} at once over {files:_} files: started after {starts}; {taken - 1:.2f} s beside the program")
            print(f"  memory of haft, its helpers and the programs: {most / 1e6:.0f} MB")
        began = time.time()
        shutil.copytree(repository, os.path.join(place, "copy"))
        print(f"one copy of the repository instead of a layer: {time.time() - began:.2f} s")


if __name__ == "__main__":
    main()
