"""The key that seals request states, and the marks of states that were used: in the state home, for all processes."""

import stat
import time

import pytest

from haft.contracts import BadConfig
from haft.service import SealedStates


@pytest.fixture
def home(tmp_path):
    return tmp_path / "state"


def test_the_key_is_the_owners_alone_and_the_same_in_every_process(home):
    key = SealedStates(home, seconds=60).key()
    assert len(key) == 32 and SealedStates(home, seconds=60).key() == key
    file = home / "request-states/key"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    file.chmod(0o644)
    with pytest.raises(BadConfig, match="others can read it"):
        SealedStates(home, seconds=60).key()
    file.chmod(0o600)
    file.write_bytes(b"short")
    with pytest.raises(BadConfig, match="damaged"):
        SealedStates(home, seconds=60).key()


@pytest.mark.parametrize("nonce", ["", "../key", "0" * 31, "0" * 33, "A" * 32, "0" * 31 + "\n"])
def test_only_a_nonce_of_ours_is_marked(home, nonce):
    assert not SealedStates(home, seconds=60).use(nonce)
    assert not (home / "request-states").exists()


def test_marks_are_kept_until_their_state_has_expired(home, monkeypatch):
    states = SealedStates(home, seconds=60)
    nonce = states.new_nonce()
    assert states.use(nonce) and not states.use(nonce)
    now = time.time()
    monkeypatch.setattr("haft.service.sealed_states.time.time", lambda: now + 59)
    states.prune()
    assert not states.use(nonce)
    monkeypatch.setattr("haft.service.sealed_states.time.time", lambda: now + 1000)
    states.prune()
    assert list((home / "request-states/used").iterdir()) == []
