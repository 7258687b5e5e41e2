"""Attacks from real calls: nothing leaves that was not granted. Where an attack would work otherwise, the same command
is also run with the whole network, and there it does work."""

import sys

import pytest
from checks import KINDS, cases
from names import CHANGING, PROBE

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="there is no sandbox elsewhere")


def refused(found):
    return {f"{each['host']}:{each['port']}" for each in found["connections"] if not each["allowed"]}


@cases(lambda check: check.group == "attacks" and not check.scenario)
def test_an_attack_reaches_nothing_and_is_on_record(kind, check, result):
    found = result(kind, check)
    assert (check.shows in found["output"]) == check.reaches, found
    assert refused(found) >= {*check.refused}
    if check.reason:
        assert [each for each in found["connections"] if check.reason in (each["reason"] or "")], found["connections"]


@cases(lambda check: check.group == "controls")
def test_the_same_attack_works_where_the_whole_network_is_granted(kind, check, result, world):
    if CHANGING in check.command and not world(kind)["ownNames"]:
        pytest.skip("programs do not ask the name server of the world")
    assert check.shows in result(kind, check)["output"]


@cases(lambda check: "flood" in check.name or "tiny records" in check.name)
def test_a_flood_ends_and_the_record_of_it_is_bounded(kind, check, result):
    found = result(kind, check)
    assert "done" in found["output"], found
    assert len(found["connections"]) <= 2100


@cases(lambda check: check.scenario == "beside")
def test_a_call_does_not_find_the_connections_of_another_call(kind, check, result):
    intruder = result(kind, check)["intruder"]
    assert "tried all" in intruder["output"]
    assert "reached" not in intruder["output"] and "has a socket" not in intruder["output"]


@cases(lambda check: check.scenario == "outlived")
def test_a_child_that_would_outlive_its_call_connects_no_more(kind, check, result, world):
    found = result(kind, check)
    assert (found["output"], found["next"]) == ("left\n", "slept\n")
    assert not [each for each in world(kind)["seen"] if each.get("path") == "/outlived"]


@cases(lambda check: "later" in check.name and check.group == "attacks")
def test_a_name_is_looked_up_once_for_a_call_and_its_first_answer_is_kept(kind, check, result, world):
    if not world(kind)["ownNames"]:
        pytest.skip("programs do not ask the name server of the world")
    assert result(kind, check)["output"] == f"hello {CHANGING} at 20.0.0.1\n" * 3
    asked = [each for each in before_controls(world(kind)) if each.get("query") == CHANGING and each["kind"] == 1]
    assert len(asked) == 1


def before_controls(world):
    """What servers saw before calls with the whole network began."""
    return world["seen"][: next(at for at, each in enumerate(world["seen"]) if "controls" in each)]


@pytest.mark.parametrize("kind", KINDS)
def test_no_server_saw_anything_that_was_not_granted(kind, world):
    seen = before_controls(world(kind))
    assert seen
    assert not [each for each in seen if each.get("address") in ("20.0.0.66", "169.254.169.254")]
    assert not [each for each in seen if "tenant" in each.get("host", "")]
    assert {each.get("host", "inner.example") for each in seen if each.get("address") == "10.1.2.3"} <= {
        "inner.example"
    }
    assert {each.get("connect", "good.example:443") for each in seen if each.get("address") == "20.0.0.5"} <= {
        "good.example:443"
    }


@pytest.mark.parametrize("kind", KINDS)
def test_no_look_up_left_except_of_granted_names(kind, world):
    asked = {each["query"] for each in before_controls(world(kind)) if "query" in each}
    assert asked <= {CHANGING, PROBE, *(f"{PROBE}.{name}" for name in ("lan", "local"))}, asked
