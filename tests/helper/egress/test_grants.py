"""Which real addresses a granted name may lead to."""

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from haft.contracts.host_grants import host_grant
from haft.helper.egress.grants import Grant, inner_addresses


def grant(text):
    return Grant(host_grant(text).to_json())


PUBLIC = ["20.0.0.1", "8.8.8.8", "2600::1", "64:ff9b::808:808", "2002:808:808::1"]
NEVER = [
    "127.0.0.1", "127.9.9.9", "0.0.0.0", "169.254.169.254", "169.254.0.1", "224.0.0.1", "240.0.0.1", "255.255.255.255",
    "100.100.100.200", "168.63.129.16", "192.0.0.192", "::1", "::", "fe80::1", "fe80::1%lo", "ff02::1", "fd00:ec2::254",
    "fd20:ce::254", "::ffff:127.0.0.1", "::ffff:169.254.169.254", "::127.0.0.1", "64:ff9b::7f00:1",
    "64:ff9b::a9fe:a9fe", "64:ff9b:1::a9fe:a9fe", "2002:7f00:1::", "2002:a9fe:a9fe::1", "::ffff:0:7f00:1", "fec0::1",
]  # fmt: skip
"""Neither a public nor a private name may lead there."""
PRIVATE = ["10.1.2.3", "172.16.0.1", "192.168.1.1", "fd12:3456::1"]
CARRIED = [
    "::ffff:10.1.2.3",
    "::10.1.2.3",
    "64:ff9b::a01:203",
    "2002:a01:203::1",
    "64:ff9b:1::a01:203",
    "::ffff:0:a01:203",
]


@pytest.mark.parametrize("address", PUBLIC)
def test_any_name_may_lead_to_a_public_address(address):
    for text in ("good.example", "*.good.example", "db.internal", "mirror.example=10.0.0.0/8"):
        assert grant(text).problem_of(address) is None


@pytest.mark.parametrize("address", [*NEVER, *PRIVATE, *CARRIED, "100.64.0.1"])
def test_a_public_name_leads_to_public_addresses_only(address):
    for text in ("good.example", "*.good.example", "*.internal", "good.example:*"):
        assert "address" in grant(text).problem_of(address)


@pytest.mark.parametrize("address", NEVER)
def test_a_private_name_does_not_lead_to_this_machine_or_to_metadata(address):
    for text in ("db.internal", "printer.lan", "db"):
        assert "address" in grant(text).problem_of(address)


@pytest.mark.parametrize("address", PRIVATE)
def test_a_private_name_leads_to_private_addresses(address):
    for text in ("db.internal:5432", "printer.lan", "db"):
        assert grant(text).problem_of(address) is None


def test_a_network_in_the_grant_opens_it_and_no_other():
    mirror = grant("mirror.example=10.1.0.0/16")
    assert mirror.problem_of("10.1.2.3") is None
    assert mirror.problem_of("10.2.2.3") is not None
    assert mirror.problem_of("127.0.0.1") is not None
    assert grant("mirror.example:80=169.254.169.254/32").problem_of("169.254.169.254") is None
    assert grant("mirror.example=127.0.0.0/8").problem_of("127.0.0.1") is None
    assert grant("mirror.example=fd00::/8").problem_of("fd00:ec2::254") is None


def test_an_address_leads_to_itself_only():
    assert grant("169.254.169.254:80").problem_of("169.254.169.254") is None
    assert grant("10.0.0.7:22").problem_of("10.0.0.8") is not None
    assert grant("[fd00::1]:22").problem_of("fd00:0::1") is None


def test_localhost_is_this_machine_only():
    assert grant("localhost:5432").problem_of("127.0.0.1") is None
    assert grant("localhost:5432").problem_of("::1") is None
    assert grant("localhost:5432").problem_of("20.0.0.1") is not None


@given(st.one_of(st.ip_addresses(), st.sampled_from([*PUBLIC, *NEVER, *PRIVATE, *CARRIED])))
def test_a_name_that_leads_to_an_address_leads_to_every_address_that_it_carries(address):
    found = ipaddress.ip_address(str(address).partition("%")[0])
    for text in ("good.example", "db.internal", "mirror.example=10.0.0.0/8"):
        if grant(text).problem_of(str(address)) is None:
            for inner in inner_addresses(found):
                assert not (inner.is_loopback or inner.is_link_local or inner.is_multicast or inner.is_unspecified)
                if text == "good.example":
                    assert inner.is_global


@given(
    st.sampled_from(
        ["good.example", "x.good.example", "a.b.good.example", "xgood.example", "example", "good.example.x"]
    ),
    st.integers(1, 65535),
)
def test_what_is_covered_here_is_what_the_contract_says(name, port):
    for text in ("good.example", "*.good.example:443", "good.example:1-200", "*.good.example:*"):
        assert grant(text).covers(name, port) == host_grant(text).covers(name, port)
