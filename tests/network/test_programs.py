"""Real programs in real calls: each reaches a granted host, and none that is not granted; as root, and as an ordinary
user."""

import sys

import pytest
from checks import cases

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="there is no sandbox elsewhere")


def hosts(found, *, allowed):
    return {f"{each['host']}:{each['port']}" for each in found["connections"] if each["allowed"] == allowed}


@cases(lambda check: check.group == "programs" and check.reaches)
def test_a_program_reaches_a_granted_host_and_the_connection_is_on_record(kind, check, result):
    found = result(kind, check)
    assert (found["status"], check.shows in found["output"]) == ("done", True), found
    assert hosts(found, allowed=True) == {*check.network}
    for each in found["connections"]:
        assert each["allowed"] and each["sent"] + each["received"] > 0, each
        assert each["grant"] in check.network


@cases(lambda check: check.group == "programs" and not check.reaches)
def test_the_same_program_does_not_reach_a_host_that_is_not_granted_and_this_is_on_record(kind, check, result):
    found = result(kind, check)
    assert check.shows not in found["output"]
    assert hosts(found, allowed=True) == set()
    assert hosts(found, allowed=False) >= {*check.refused}
    error = found["error"] or {}
    told = [*found["notes"], error.get("hint") or "", error.get("message") or ""]
    assert [text for text in told if f"--network={check.refused[0]}" in text], told


@cases(lambda check: check.group == "hosts")
def test_each_form_of_a_grant_opens_its_hosts_and_ports_only(kind, check, result):
    found = result(kind, check)
    assert (check.shows in found["output"]) == check.reaches, found


@cases(lambda check: check.group == "proxied")
def test_where_the_machine_has_a_proxy_granted_hosts_are_reached_through_it_and_others_are_not(
    kind, check, result, world
):
    found = result(kind, check)
    assert (check.shows in found["output"]) == check.reaches, found
    assert hosts(found, allowed=False) == {*check.refused}
    assert "20.0.0.5" not in found["output"]
    seen = world(kind)["seen"]
    before = seen[: seen.index({"controls": True})]  # Then come calls with the whole network.
    asked = {each["connect"] for each in before if "connect" in each and each["address"] == "20.0.0.5"}
    assert asked <= {"good.example:443"}
    assert asked or not check.reaches
