"""Grants of the network by host: which forms are read, which hosts they cover, and what each error says."""

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from haft.contracts import Grants, check_owned, grant_for, grants_from, host_grant, hosts_in, joined_network
from haft.contracts.host_grants import MAX_HOSTS, MAX_PORTS

labels = st.from_regex(r"[a-z]([a-z0-9-]{0,8}[a-z0-9])?", fullmatch=True)
names = st.lists(labels, min_size=2, max_size=4).map(".".join)
ports = st.integers(1, 65535)
written_hosts = st.builds(
    lambda name, port, wild, network: (
        f"{'*.' if wild else ''}{name}{'' if port is None else f':{port}'}{'' if network is None else f'={network}'}"
    ),
    names,
    st.none() | st.just("*") | ports,
    st.booleans(),
    st.none() | st.sampled_from(["10.0.0.0/8", "10.1.0.0/16,10.2.0.0/16", "fd00::/8"]),
)


@given(names, ports, ports, labels)
def test_a_written_host_and_port_covers_exactly_that_port_of_that_host(name, port, other, below):
    grant = host_grant(f"{name}:{port}")
    assert grant.covers(name, port)
    assert grant.covers(name, other) is (other == port)
    assert not grant.covers(f"{below}.{name}", port) and not grant.covers(f"{below}{name}", port)


@given(names, ports, st.lists(labels, min_size=1, max_size=3))
def test_a_wildcard_covers_names_at_any_depth_and_not_the_domain_itself(name, port, below):
    grant = host_grant(f"*.{name}:{port}")
    assert grant.covers(".".join([*below, name]), port)
    assert not grant.covers(name, port)
    assert not grant.covers(f"{below[0]}{name}", port), "a name that only ends in the same letters"


@given(names, ports)
def test_a_host_without_a_port_means_80_and_443_and_a_star_means_all_ports(name, port):
    assert host_grant(name).covers(name, port) is (port in (80, 443))
    assert host_grant(f"{name}:*").covers(name, port)


@given(names, ports, st.integers(0, MAX_PORTS - 1), ports)
def test_a_range_of_ports_has_both_its_ends(name, first, more, port):
    last = min(first + more, 65535)
    assert host_grant(f"{name}:{first}-{last}").covers(name, port) is (first <= port <= last)


@given(st.ip_addresses(), ports)
def test_an_address_is_covered_however_it_is_written(address, port):
    form = f"[{address.exploded}]" if address.version == 6 else str(address)
    grant = host_grant(f"{form.upper()}:{port}")
    assert grant.literal and grant.covers(str(address), port)


@given(st.lists(written_hosts, max_size=6))
def test_hosts_survive_the_ways_in_which_they_are_stored(hosts):
    grants = grants_from({"network": hosts})
    assert grants_from(grants.to_json()) == grants
    assert hosts_in(",".join(hosts)) == (grants.network or ())


@given(st.lists(written_hosts, min_size=1, max_size=6), st.lists(written_hosts, min_size=1, max_size=6))
def test_joined_grants_cover_what_each_of_them_covers(one, other):
    joined = joined_network(tuple(one), tuple(other))
    assert isinstance(joined, tuple) and set(joined) == {*one, *other}
    assert joined_network(True, tuple(one)) is True and joined_network(False, tuple(one)) == tuple(dict.fromkeys(one))
    assert joined_network(False, False) is False


def test_all_of_the_network_exceeds_hosts_and_more_hosts_exceed_fewer():
    few, more = Grants(network=("a.example",)), Grants(network=("b.example", "a.example"))
    everything = Grants(network=True)
    assert everything.exceeds(more) and more.exceeds(few) and few.exceeds(Grants())
    assert not few.exceeds(more) and not more.exceeds(everything) and not few.exceeds(few)
    assert not few.exceeds(Grants(network=("c.example",)))


def test_an_empty_list_of_hosts_is_no_network():
    assert grants_from({"network": []}) == Grants()


def test_the_grant_that_covers_a_host_is_named_as_it_was_written():
    hosts = ("@package-indexes", "Registry.Example", "*.example.org:443", "localhost:5432")
    assert grant_for(hosts, "registry.example", 80) == "Registry.Example"
    assert grant_for(hosts, "a.b.example.org", 443) == "*.example.org:443"
    assert grant_for(hosts, "localhost", 80) is None
    assert grant_for(True, "registry.example", 80) is None


@pytest.mark.parametrize(
    ("written", "error"),
    [
        ("", "network must be a list of hosts, and '' is not one"),
        (7, "network must be a list of hosts, and 7 is not one"),
        ("a b", "`a b` is no host: write HOST, HOST:PORT or *.DOMAIN, for example `registry.example:443`"),
        ("https://a.example/", "`https://a.example/` is no host"),
        ("a.example:80:81", "`a.example:80:81` is no host"),
        ("a/b.example", "`a/b.example` cannot be granted: `a/b.example` is not the name of a host"),
        ("*", "`*` cannot be granted: `*` is not the name of a host"),
        ("a.*.example", "`a.*.example` cannot be granted: `a.*.example` is not the name of a host"),
        ("1.2.3", "`1.2.3` cannot be granted: `1.2.3` is not the name of a host"),
        (f"{'ü' * 64}.example", "is not the name of a host"),
        ("*.com", "`*.com` cannot be granted: names below `com` belong to many owners; name the hosts"),
        ("a.example:0", "`a.example:0` cannot be granted: a port is a number from 1 to 65535"),
        ("a.example:65536", "a port is a number from 1 to 65535"),
        ("a.example:9-8", "a port is a number from 1 to 65535"),
        ("a.example:1-1000", f"it names more than {MAX_PORTS} ports; write `:*` for all ports"),
        ("localhost", "`localhost` would open services of this machine: name the port, as in `localhost:5432`"),
        ("127.0.0.1", "`127.0.0.1` would open services of this machine"),
        ("localhost:*", "`localhost:*` cannot be granted: name the port of an address"),
        ("10.0.0.7:*", "`10.0.0.7:*` cannot be granted: name the port of an address"),
        ("a.example=10.0.0.1/8", "`a.example=10.0.0.1/8` cannot be granted: `10.0.0.1/8` is no network; write it"),
        ("@mirrors", "there is no group `@mirrors` of hosts; the groups are @package-indexes"),
    ],
)
def test_each_wrong_host_is_refused_with_the_reason(written, error):
    with pytest.raises(ValueError) as refused:
        grants_from({"network": [written]})
    assert error in str(refused.value)


@pytest.mark.parametrize("written", ["a.example", 1, None, {"a": 1}.keys])
def test_the_network_is_true_false_or_a_list(written):
    with pytest.raises(ValueError, match="network must be true, false, or a list of hosts"):
        grants_from({"network": written})


def test_the_number_of_hosts_is_bounded():
    with pytest.raises(ValueError, match=f"network has more than {MAX_HOSTS} hosts"):
        grants_from({"network": [f"h{number}.example" for number in range(MAX_HOSTS + 1)]})


@pytest.mark.parametrize("domain", ["co.uk", "github.io", "s3.amazonaws.com", "xn--p1ai", "рф", "anything.ck"])
def test_a_wildcard_below_a_public_suffix_is_refused(domain):
    grant = f"*.{domain}:443"
    with pytest.raises(ValueError, match="belong to many owners; name the hosts"):
        check_owned(grants_from({"network": ["a.example", grant]}).network)


def test_wildcards_below_a_domain_with_one_owner_and_below_private_names_are_not_refused():
    check_owned(("*.example.org", "*.internal", "*.home.arpa", "*.corp.internal:*", "github.io", "@package-indexes"))
    check_owned(True)
    check_owned(False)


def test_the_list_of_public_suffixes_is_loaded_only_for_wildcards():
    program = (
        "import sys; from haft.contracts import check_owned, grants_from\n"
        "check_owned(grants_from({'network': ['a.example', 'localhost:1']}).network)\n"
        "grants_from({'network': ['*.a.b']})\n"
        "assert 'publicsuffixlist' not in sys.modules\n"
        "check_owned(('*.a.b',))\n"
        "assert 'publicsuffixlist' in sys.modules\n"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
