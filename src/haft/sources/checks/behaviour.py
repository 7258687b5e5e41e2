"""Checks how a program behaved while it was described, whatever it printed.

The program ran without the network, in a sandbox where it could write only to a temporary home directory and a
temporary /tmp, which haft does not look into. The kernel reports a denied access only to the program, so haft sees an
attempt only if the program mentions it on stderr.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from haft.contracts import error_or_last_line
from haft.schema import shortened
from haft.sources.brief_run import DESCRIBE_SECONDS, MAX_STDOUT, ProgramOutput
from haft.sources.checks.findings import Finding

SLOW_SECONDS: Final = 1.0
_WROTE: Final = re.compile(r"read-only file ?system|\bEROFS\b|Errno 30\b", re.IGNORECASE)
_REACHED: Final = re.compile(
    r"network is unreachable|could not resolve host|temporary failure in name resolution|name or service not known"
    r"|\bENETUNREACH\b|\bENOTFOUND\b|\bEAI_AGAIN\b|getaddrinfo|failed to lookup address|nodename nor servname"
    r"|unable to resolve host",
    re.IGNORECASE,
)


def check_behaviour(
    output: ProgramOutput, action: str = "describe", *, fetching: str | None = None
) -> Iterator[Finding]:
    """Check the time, stderr and attempted accesses. `action` is the action that the program was run with. `fetching`
    is the hint to give if the program's runner, such as `uv run`, may have failed to fetch packages; None if it fetches
    none."""
    noise = output.stderr.decode("utf-8", "replace")
    if output.start_failure is not None:
        yield Finding("describe-not-started", f"it could not be started: {output.start_failure}", None)
        return
    if output.timed_out:
        yield Finding(
            "describe-timeout",
            f"it did not answer `{action}` within {DESCRIBE_SECONDS:g} s",
            fetching or f"check for `{action}` before you read input or load anything, and answer at once",
        )
    elif output.is_too_long:
        yield Finding(
            "describe-flood", f"it printed more than {MAX_STDOUT:_} bytes for `{action}`", "print a description"
        )
    elif output.seconds > SLOW_SECONDS:
        yield Finding(
            "describe-slow",
            f"it took {output.seconds:.1f} s to answer `{action}`",
            "answer before heavy imports, and start no other program",
        )
    if output.left_processes and not output.timed_out and not output.is_too_long:
        left = shortened(output.left_processes[0], 80)
        yield Finding("describe-leaves-processes", f"it left `{left}` running", "start it when the tool is called")
    attempts = list(_attempts(noise, fetching))
    yield from attempts
    if output.exit_code:
        why = shortened(error_or_last_line(noise), 200)
        yield Finding(
            "describe-failed",
            f"`{action}` ended with exit code {output.exit_code}" + (f": {why}" if why else ""),
            fetching or "print the description and exit 0",
        )
    elif noise.strip() and not attempts:
        first = shortened(noise.strip().splitlines()[0].strip(), 200)
        yield Finding("describe-noise", f"`{action}` wrote to stderr: {first}", "print nothing to stderr")


def _attempts(noise: str, fetching: str | None) -> Iterator[Finding]:
    for line in noise.splitlines():
        if _WROTE.search(line):
            yield Finding(
                "writes-on-describe",
                f"it tried to write a file during describe: {shortened(line.strip(), 200)}",
                "write when the tool is called, never when it is described",
            )
            break
    for line in noise.splitlines():
        if _REACHED.search(line):
            yield Finding(
                "network-on-describe",
                f"it tried to reach the network during describe: {shortened(line.strip(), 200)}",
                fetching or "use the network when the tool is called, never when it is described",
            )
            break
