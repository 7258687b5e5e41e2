"""Runs a short program outside of any call, and blocks until it has ended. `testing` uses it to make git repositories,
and `service` to show notifications and to read secrets. It has no sandbox, so it must never run anything that a tool or
a scenario chose."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence

from haft.values import dataclass


@dataclass(frozen=True)
class BlockingExit:
    """How a program ended."""

    code: int
    stderr: str


def run_blocking(argv: Sequence[str], *, cwd: str, env: Mapping[str, str], seconds: float = 60) -> BlockingExit:
    """Run a program with exactly these variables and without stdin; its stdout is dropped. Raises `OSError` if it
    cannot be started, or does not end in time."""
    try:
        ended = subprocess.run(
            list(argv),
            cwd=cwd,
            env=dict(env),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            timeout=seconds,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise TimeoutError(f"`{argv[0]}` did not end in {seconds:g} seconds") from error
    return BlockingExit(ended.returncode, ended.stderr.decode("utf-8", "replace"))


def read_output(argv: Sequence[str], *, env: Mapping[str, str], seconds: float) -> bytes:
    """The stdout of a program that a trusted configuration names, such as a password manager. Its stderr is dropped,
    because it may quote a secret. Raises `OSError` if the program cannot be started, does not end in time, or fails."""
    try:
        ended = subprocess.run(
            list(argv),
            cwd="/",
            env=dict(env),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=seconds,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise TimeoutError(f"`{argv[0]}` did not end in {seconds:g} seconds") from error
    if ended.returncode != 0:
        raise OSError(f"`{argv[0]}` ended with the status {ended.returncode}")
    return ended.stdout
