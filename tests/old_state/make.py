"""Makes a state home as a version of haft leaves it, for later versions to be tried on.

    python tests/old_state/make.py VERSION

writes VERSION.tar.xz and VERSION-killed.tar.xz beside this file: the state home of calls that ended, and the same after
two hosts were killed, and VERSION.json: which run is which, and the head of the audit log. State homes name workspaces
by their absolute path, so both archives are unpacked at `PLACE`. Nothing of it is ever made anew: it is what that
version wrote.
"""

from __future__ import annotations

import json
import os
import pty
import shutil
import signal
import subprocess
import sys
import tarfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

PLACE = Path("/var/tmp/haft-old-state")
HERE = Path(__file__).parent
PROGRAM = [sys.executable, "-m", "haft.surfaces.cli.main"]
TIMES = "times.json"
LONGEST = str(1_000_000_000)

GREET = """\
#!/bin/sh
# Greets. It is asked about, and was approved for always.
case "$TOOLBOX_ACTION" in
describe) printf 'name: greet\\ndescription: Greets someone.\\nwho: string whom to greet\\n' ;;
execute) cat > /dev/null; echo hello >> greetings.txt; echo hello ;;
esac
"""
SKILL = """\
---
name: notes
description: How notes are kept here.
---
Notes lie in `notes.txt`, one on a line.
"""
SETTINGS = """\
[record]
durability = "full"

[[permissions]]
tool = "shell"
action = "allow"
matches = {command = "touch allowed*"}
"""

UNWRITTEN = """
import asyncio, os, signal
from haft import ToolService
from haft.runs import run_writer

run_writer.GROUP_SECONDS = 3_600  # Nothing leaves the journal.


async def main():
    async with ToolService.open(".", approver=lambda _request: True) as service:
        done = await service.call("shell", {"command": "echo j > journalled.txt"})
        run = service.call("shell", {"command": "echo u > unfinished.txt; sleep 60"})
        await asyncio.sleep(3)
        print(done.run_id, run.id, flush=True)
        os.kill(os.getpid(), signal.SIGKILL)


asyncio.run(main())
"""


def env() -> dict[str, str]:
    """The environment of every call, then and now."""
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(PLACE / "user"),
        "HAFT_HOME": str(PLACE / "home"),
        "XDG_CONFIG_HOME": str(PLACE / "config"),
        "AMP_TOOLBOX": "",
        "HAFT_APPROVAL_EXPIRES_SECONDS": LONGEST,
        "USER": "root",
        "LANG": "C.UTF-8",
    }


def haft(*words: str, fails: bool = False) -> Any:
    """What a command prints as JSON."""
    done = subprocess.run(
        [*PROGRAM, *words], cwd=PLACE / "workspace", env=env(), capture_output=True, stdin=subprocess.DEVNULL
    )
    if not fails and done.returncode:
        raise SystemExit(f"{words} exited {done.returncode}: {done.stderr.decode()}")
    return json.loads(done.stdout) if done.stdout.lstrip()[:1] in (b"{", b"[") else done.stdout.decode()


def shell(command: str, *options: str, fails: bool = False) -> str:
    """The run of a command."""
    outcome = haft("tools", "use", *options, "shell", "--command", command, fails=fails)
    assert outcome["run"], outcome["error"]
    return str(outcome["run"])


def start(*words: str) -> subprocess.Popen[bytes]:
    nowhere = subprocess.DEVNULL
    return subprocess.Popen(
        [*PROGRAM, *words], cwd=PLACE / "workspace", env=env(), stdin=nowhere, stdout=nowhere, stderr=nowhere
    )


def until(find: Callable[[], Any]) -> Any:
    end = time.monotonic() + 60
    while time.monotonic() < end:
        if found := find():
            return found
        time.sleep(0.05)
    raise SystemExit("it did not come")


def answered(key: str, *words: str) -> None:
    """Call something on a terminal, and answer the question with a key."""
    master, slave = pty.openpty()
    call = subprocess.Popen(
        [*PROGRAM, *words], cwd=PLACE / "workspace", env={**env(), "TERM": "xterm"}, stdin=slave, stdout=slave,
        stderr=slave, start_new_session=True,
    )  # fmt: skip
    os.close(slave)
    seen = b""
    while b"[y/N" not in seen:
        seen += os.read(master, 4096)
    os.write(master, f"{key}\n".encode())
    call.wait()
    os.close(master)


def killed(process: subprocess.Popen[bytes]) -> None:
    process.send_signal(signal.SIGKILL)
    process.wait()


def ended() -> dict[str, Any]:
    """What calls leave behind that come to their end."""
    runs = {
        "ended": shell("echo one > a.txt; echo two > b.txt", "--approve"),
        "failed": shell("exit 3", "--approve", fails=True),
        "denied": shell("echo x > /etc/haft-was-here", "--approve", fails=True),
        "held": shell("echo half > half.txt; sleep 60", "--approve", "--timeout", "2", fails=True),
        "tried": shell("echo tried > tried.txt", "--try"),
        "rejected": shell("echo never > never.txt", fails=True),
        "undone": shell("echo gone > gone.txt", "--approve"),
        "kept": shell("echo 1 > kept.txt", "--approve"),
    }
    runs["undo"] = str(haft("undo", runs["undone"], "--json")["undo"])
    answered("a", "tools", "use", "tb__greet", "--who", "you")
    haft("skills", "activate", "notes")
    haft("toolbox", "export", "read_file", "--to", str(PLACE / "exported"))
    exported = PLACE / "exported/read_file"
    exported.write_text(exported.read_text().replace(f"{sys.prefix}/bin", "/usr/local/bin"))
    runs["remembered"] = str(haft("tools", "use", "tb__greet", "--who", "you")["run"])
    runs["head"] = haft("audit", "verify", "--json")
    return runs


def after_kills() -> dict[str, str]:
    """What hosts leave behind that are killed: one while it waits for a person, one in the middle of a call."""
    runs = {}
    asking = start("tools", "use", "shell", "--command", "echo pending > pending.txt", "--wait", LONGEST)
    runs["pending"] = until(lambda: haft("inbox", "--json"))[0]["run"]
    working = start("tools", "use", "shell", "--command", "echo k > killed.txt; touch /tmp/on; sleep 60", "--approve")
    runs["killed"] = until(lambda: haft("log", "--status", "in-progress", "--json"))[0]["id"]
    time.sleep(1)
    killed(working)
    killed(asking)
    command = [sys.executable, "-c", UNWRITTEN]
    said = subprocess.run(command, cwd=PLACE / "workspace", env=env(), stdout=subprocess.PIPE, text=True).stdout
    runs["journalled"], runs["unfinished"] = said.split()
    return runs


def pack(name: str) -> None:
    # An archive rounds times, and undo looks at them to the nanosecond.
    places = [PLACE, *PLACE.rglob("*")]
    times = {os.path.relpath(path, PLACE): path.lstat().st_mtime_ns for path in places}
    (PLACE / TIMES).write_text(json.dumps(times))
    with tarfile.open(HERE / f"{name}.tar.xz", "w:xz", format=tarfile.PAX_FORMAT) as archive:
        archive.add(PLACE, arcname=".", filter=lambda item: None if _is_local(item) else item)


def unpack(name: str) -> None:
    """Put it where it was made."""
    shutil.rmtree(PLACE, ignore_errors=True)
    with tarfile.open(HERE / f"{name}.tar.xz") as archive:
        archive.extractall(PLACE, filter="fully_trusted")
    times = json.loads((PLACE / TIMES).read_text())
    for path, time_ns in sorted(times.items(), reverse=True):
        if os.path.lexists(PLACE / path):
            os.utime(PLACE / path, ns=(time_ns, time_ns), follow_symlinks=False)


def _is_local(item: tarfile.TarInfo) -> bool:
    """Whether a file tells where this haft is installed: an entry of a cache."""
    return item.isfile() and str(HERE.parents[1]).encode() in (PLACE / item.name).read_bytes()


def main(version: str) -> None:
    shutil.rmtree(PLACE, ignore_errors=True)
    workspace = PLACE / "workspace"
    for each in ("workspace/.agents/tools", "workspace/.agents/skills/notes", "config/haft", "user"):
        (PLACE / each).mkdir(parents=True)
    (workspace / "haft.toml").write_text("")
    (workspace / "a.txt").write_text("before\n")
    (workspace / "notes.txt").write_text("buy milk\n")
    (workspace / ".agents/tools/greet").write_text(GREET)
    (workspace / ".agents/tools/greet").chmod(0o755)
    (workspace / ".agents/skills/notes/SKILL.md").write_text(SKILL)
    (PLACE / "config/haft/haft.toml").write_text(SETTINGS)
    runs = ended()
    pack(version)
    runs |= after_kills()
    pack(f"{version}-killed")
    (HERE / f"{version}.json").write_text(json.dumps(runs, indent=2) + "\n")
    shutil.rmtree(PLACE)


if __name__ == "__main__":
    main(sys.argv[1])
