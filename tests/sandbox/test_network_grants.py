"""Hosts as a grant names them, and as the sandbox and people see them."""

import pytest

from haft.contracts import PACKAGE_INDEXES, BadUsage, HostGrant, host_grant
from haft.sandbox.network_grants import network_hosts, shown_hosts

INDEXES = (
    HostGrant(PACKAGE_INDEXES, "index.example", ports=((443, 443),), private=True),
    HostGrant(PACKAGE_INDEXES, "::1", ports=((8080, 8080),), literal=True),
)


def test_a_group_is_replaced_by_its_hosts():
    network = ("one.example", PACKAGE_INDEXES, "two.example:22")
    hosts = network_hosts(network, lambda: INDEXES)
    assert hosts == (host_grant("one.example"), *INDEXES, host_grant("two.example:22"))
    assert shown_hosts(network, hosts) == ("one.example", "index.example:443", "[::1]:8080", "two.example:22")


def test_indexes_are_looked_up_only_for_the_group():
    assert network_hosts(("one.example",), lambda: pytest.fail("looked up")) == (host_grant("one.example"),)


@pytest.mark.parametrize("word", ["*.com", "*.github.io", "localhost", "one example", "a:0"])
def test_a_host_that_cannot_be_granted_is_refused(word):
    with pytest.raises(BadUsage, match=word.replace("*", r"\*").replace(".", r"\.")):
        network_hosts((word,))
