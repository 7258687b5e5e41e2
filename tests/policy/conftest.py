"""Lines are looked into for longer than usual: how busy the machine is says nothing about them."""

import pytest

from haft.policy.analysis.deadline import Deadline


@pytest.fixture(autouse=True)
def patience(monkeypatch):
    monkeypatch.setattr(Deadline.__init__, "__defaults__", (0.3,))
