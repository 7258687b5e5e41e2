"""A hooked shell call, as an agent waits for it, compared with the agent's own `bash -c`.

Each call asks the hook first, and then runs the rewritten line in bash, with a warm resident. Run alone, this module
prints its table.
"""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import struct
import subprocess
import tempfile

from benchmarks.measure import Row, in_turns_blocking, print_table
from benchmarks.unapproved import prepare
from haft.surfaces.hook.line import hook_words

ROUNDS = 15


def rows() -> list[Row]:
    """`true` and `git status` that only read, and a command that writes a file."""
    found = []
    with tempfile.TemporaryDirectory() as place:
        workspace, home, config = (os.path.join(place, name) for name in ("workspace", "home", "config"))
        for path in (workspace, home, os.path.join(config, "haft")):
            os.makedirs(path)
        prepare(workspace)
        with open(os.path.join(config, "haft", "haft.toml"), "w") as file:
            file.write('[[permissions]]\ntool = "shell"\naction = "allow"\nmatches = {command = "touch *"}\n')
        env = {**os.environ, "HAFT_HOME": home, "XDG_CONFIG_HOME": config}
        try:
            for command in ("true", "git status", "touch made"):

                def ours(command: str = command) -> None:
                    line = _rewritten(command, workspace, env)
                    subprocess.run(["bash", "-c", line], check=True, cwd=workspace, env=env, capture_output=True)

                def floor(command: str = command) -> None:
                    subprocess.run(["bash", "-c", command], check=True, cwd=workspace, capture_output=True)

                haft, theirs = in_turns_blocking(ours, floor, rounds=ROUNDS)
                found.append(Row(f"hooked `{command}`, hook and line", haft, "the agent's own bash -c", theirs))
        finally:
            _end_resident(home)
    return found


def _rewritten(command: str, workspace: str, env: dict[str, str]) -> str:
    """The line that the hook gives for a command."""
    event = {
        "session_id": "benchmark",
        "cwd": workspace,
        "permission_mode": "default",
        "hook_event_name": "PreToolUse",
        "tool_name": "Bash",
        "tool_input": {"command": command},
        "tool_use_id": os.urandom(8).hex(),
    }
    words = hook_words("claude-code")
    done = subprocess.run(words, input=json.dumps(event).encode(), cwd=workspace, env=env, capture_output=True)
    answer = json.loads(done.stdout)["hookSpecificOutput"]
    return str(answer["updatedInput"]["command"])


def _end_resident(home: str) -> None:
    with socket.socket(socket.AF_UNIX) as asked:
        asked.connect(os.path.join(home, "hook", "socket"))
        told = asked.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    process = int(struct.unpack("3i", told)[0])
    watched = os.pidfd_open(process)
    os.kill(process, signal.SIGTERM)
    select.select([watched], [], [], 20)
    os.close(watched)


if __name__ == "__main__":
    print_table(rows())
