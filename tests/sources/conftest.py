"""A context that remembers what a tool told it, and on which thread."""

import threading

import pytest

from haft.contracts import NO_SECRETS


class Context:
    run, thread, who, cwd = "r_test", "T-test", "tester", "."
    workspace = launcher = limits = None
    env: dict = {}
    config: dict = {}
    secrets = NO_SECRETS
    cancelled = False
    chain: tuple = ()

    def can_ask(self, method="elicitation/create"):
        return False

    def __init__(self):
        self.events = []
        self.threads = set()

    def _remember(self, *event):
        self.threads.add(threading.current_thread())
        self.events.append(event)

    def output(self, stream, data):
        assert type(data) is bytes
        self._remember(stream, data)

    def processes_ended(self, children):
        self._remember("ended", children)

    def progress(self, message="", *, fraction=None, **facts):
        self._remember("progress", message, fraction)

    def text(self, stream):
        return b"".join(event[1] for event in self.events if event[0] == stream).decode()


@pytest.fixture
def context():
    return Context()
