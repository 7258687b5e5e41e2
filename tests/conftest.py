"""What tests of processes share: a mark that everything a test starts carries, and a way to find what is left of it."""

import os
import time
import uuid

import pytest
from hypothesis import settings

# How long an example takes says nothing: the machine may be busy.
settings.register_profile("haft", deadline=None)
settings.load_profile("haft")

# Nobody answers in tests that do not say otherwise: what would wait in the inbox is refused at once.
os.environ.setdefault("HAFT_APPROVAL_EXPIRES_SECONDS", "0")


def _left_of(mark: str) -> list[str]:
    """The processes, zombies aside, that carry `mark` in their environment or arguments."""
    wanted, found = mark.encode(), []
    for name in os.listdir("/proc"):
        if not name.isdigit() or int(name) == os.getpid():
            continue
        try:
            with open(f"/proc/{name}/stat", "rb") as file:
                if file.read().rsplit(b")", 1)[1].split()[0] in (b"Z", b"X"):
                    continue
            with open(f"/proc/{name}/cmdline", "rb") as file:
                arguments = file.read()
            with open(f"/proc/{name}/environ", "rb") as file:
                environment = file.read()
        except OSError:
            continue
        if wanted in arguments or wanted in environment:
            found.append(f"{name}: {arguments.replace(bytes(1), b' ').decode(errors='replace')}")
    return found


@pytest.fixture
def mark() -> str:
    return f"mark-{uuid.uuid4().hex}"


@pytest.fixture
def left_of():
    return _left_of


@pytest.fixture
def eventually():
    """Wait until a condition holds; fails when it does not within a generous time."""

    def eventually(condition, seconds: float = 20.0, what: str = ""):
        deadline = time.monotonic() + seconds
        while not (found := condition()):
            if time.monotonic() >= deadline:
                pytest.fail(f"did not happen within {seconds:g} s: {what or condition}")
            time.sleep(0.01)
        return found

    return eventually
