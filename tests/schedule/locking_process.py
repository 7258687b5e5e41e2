"""A process that takes locks as it is told on stdin, and says on stdout what became of it.

`locking_process.py DIRECTORY HOST`; a line is `claim RUN PATHS CALLERS`, `release RUN` or `person RUN`,
with lists joined by commas or `-`.
"""

import asyncio
import os
import sys

from haft.contracts import Deadlock
from haft.files import HeldLock, noted
from haft.schedule import Locks, Wanted


def locks_in(directory, host):
    """The locks of a host, whose life is a lock on a file, and the lock."""
    own = HeldLock.create(f"{directory}/{host}.lock")
    return Locks(f"{directory}/claims", host, lambda other: noted(f"{directory}/{other}.lock") is not None), own


def wanted(run, paths, callers=(), resources=()):
    return Wanted(run, "tool", tuple(paths), tuple(resources), tuple(callers))


async def main(directory, host):
    locks, own = locks_in(directory, host)
    holds, tasks = {}, []

    def say(*words):
        print(*words, flush=True)

    async def claim(run, paths, callers):
        try:
            holds[run] = hold = await locks.claim(wanted(run, paths, callers))
        except Deadlock:
            say("deadlock", run)
            return
        if hold.must_wait:
            await hold.wait(lambda holder, is_person: say("waits", run, holder, "person" if is_person else "-"))
        say("granted", run)

    say("ready")
    while line := await asyncio.to_thread(sys.stdin.readline):
        verb, run, *rest = line.split()
        if verb == "claim":
            paths, callers = (tuple(filter(None, each.replace("-", "").split(","))) for each in rest)
            tasks.append(asyncio.create_task(claim(run, paths, callers)))
        elif verb == "release":
            holds.pop(run).release()
        else:
            holds[run].begin_person()
    locks.close()
    own.release(unlink=True)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
    os._exit(0)
