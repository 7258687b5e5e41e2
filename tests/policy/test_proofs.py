"""Proofs of the approval passphrase: who can make them, and what they hold for."""

import pytest

from haft.contracts import BadConfig
from haft.policy import Answered, Verifier
from haft.values import replace

YES = Answered(approved=True, who="ann", seen="d1", at=1.0, grants={"network": True}, arguments={"b": [1], "a": 2})
RULE = {"tool": "shell", "action": "allow", "matches": {"command": "make"}}


@pytest.fixture(scope="module")
def verifier():
    return Verifier.made_from("open sesame")


@pytest.fixture(scope="module")
def signer(verifier):
    return verifier.signer("open sesame")


def test_only_the_passphrase_makes_proofs(verifier):
    assert verifier.signer("open sesam") is None
    assert verifier.signer("") is None


def test_a_proof_holds_for_exactly_this_answer_to_this_request(verifier, signer):
    signed = signer.answer("a_1", YES)
    assert verifier.proves_answer("a_1", signed)
    assert not verifier.proves_answer("a_2", signed)
    for changed in (
        {"approved": False},
        {"seen": "d2"},
        {"who": "bob"},
        {"grants": {"network": False}},
        {"arguments": {"a": 3}},
        {"scope": "always"},
        {"allow": 1},
        {"message": "x"},
        {"rule_proof": "00"},
        {"paths": ["a"]},
        {"proof": None},
        {"proof": "00" * 64},
        {"proof": "no hex"},
    ):
        assert not verifier.proves_answer("a_1", replace(signed, **changed)), changed


def test_the_order_of_keys_does_not_matter(verifier, signer):
    signed = signer.answer("a_1", YES)
    assert verifier.proves_answer("a_1", replace(signed, arguments={"a": 2, "b": [1]}))


def test_a_proof_of_a_rule_holds_for_exactly_this_rule(verifier, signer):
    proof = signer.rule("/w", RULE, "pin", None)
    assert verifier.proves_rule("/w", RULE, "pin", None, proof)
    assert not verifier.proves_rule("/v", RULE, "pin", None, proof)
    assert not verifier.proves_rule("/w", {**RULE, "matches": {"command": "*"}}, "pin", None, proof)
    assert not verifier.proves_rule("/w", RULE, "other", None, proof)
    assert not verifier.proves_rule("/w", RULE, "pin", "T", proof)
    assert not verifier.proves_rule("/w", RULE, "pin", None, None)


def test_the_verifier_makes_no_proofs_and_contains_no_passphrase(verifier, signer):
    told = verifier.to_json()
    assert set(told) == {"key", "salt", "cost"}
    assert signer.key.hex() not in str(told)
    assert signer.key.hex() not in repr(signer)
    again = Verifier.from_json(told)
    assert again == verifier
    assert again.proves_answer("a_1", signer.answer("a_1", YES))


def test_another_verifier_for_the_same_passphrase_accepts_nothing_of_this_one(signer):
    assert not Verifier.made_from("open sesame").proves_answer("a_1", signer.answer("a_1", YES))


@pytest.mark.parametrize(
    "told", [{}, {"key": "00", "salt": "00" * 16, "cost": 4}, {"key": "x", "salt": "y", "cost": "z"}, {"key": 1}]
)
def test_a_damaged_verifier_is_an_error(told):
    with pytest.raises(BadConfig):
        Verifier.from_json(told)
