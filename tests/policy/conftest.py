"""Lines may be analysed for longer than usual in tests, because the machine may be busy."""

import pytest

from haft.policy.analysis.deadline import Deadline


@pytest.fixture(autouse=True)
def patience(monkeypatch):
    monkeypatch.setattr(Deadline.__init__, "__defaults__", (0.3,))
