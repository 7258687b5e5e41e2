"""Which proxy of this machine a connection takes."""

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from haft.helper.egress.upstream import Proxy, Upstream


def test_without_variables_connections_are_direct():
    assert Upstream({}).proxy_for("good.example", 443) is None


def test_port_80_takes_the_proxy_of_http_and_all_others_that_of_https():
    upstream = Upstream({"http_proxy": "http://one.example:3128", "https_proxy": "two.example:8080"})
    assert upstream.proxy_for("good.example", 80) == Proxy("one.example", 3128, None)
    assert upstream.proxy_for("good.example", 443) == Proxy("two.example", 8080, None)
    assert upstream.proxy_for("good.example", 22) == Proxy("two.example", 8080, None)
    assert Upstream({"all_proxy": "http://p.example"}).proxy_for("x", 1) == Proxy("p.example", 80, None)


def test_a_user_and_a_password_are_sent_to_the_proxy():
    proxy = Upstream({"all_proxy": "http://me:a%3Ab@p.example:1"}).proxy_for("good.example", 443)
    assert base64.b64decode(proxy.authorization) == b"me:a:b"
    assert proxy.request("good.example", 443).split(b"\r\n") == [
        b"CONNECT good.example:443 HTTP/1.1", b"Host: good.example:443",
        b"Proxy-Authorization: Basic " + base64.b64encode(b"me:a:b"), b"", b"",
    ]  # fmt: skip
    assert Proxy("p", 1, None).request("2600::1", 22).startswith(b"CONNECT [2600::1]:22 HTTP/1.1\r\n")


@pytest.mark.parametrize(
    ("entries", "name", "port", "is_direct"),
    [
        ("good.example", "good.example", 443, True), ("good.example", "a.good.example", 443, True),
        (".good.example", "a.good.example", 443, True), ("*.good.example", "a.good.example", 443, True),
        ("GOOD.example, x", "good.example", 443, True), ("good.example:443", "good.example", 443, True),
        ("good.example:443", "good.example", 80, False), ("good.example", "xgood.example", 443, False),
        ("*", "anything.example", 443, True), ("", "good.example", 443, False), (",, ,", "good.example", 443, False),
    ],
)  # fmt: skip
def test_no_proxy_names_hosts_that_are_reached_directly(entries, name, port, is_direct):
    upstream = Upstream({"all_proxy": "http://p.example", "no_proxy": entries})
    assert (upstream.proxy_for(name, port) is None) == is_direct


@pytest.mark.parametrize(
    "text", ["socks5://p.example:1080", "https://p.example", "http://", "http://p:99999", "http://[::1"]
)
def test_a_proxy_that_cannot_be_used_is_an_error_and_not_a_direct_connection(text):
    with pytest.raises(ValueError):
        Upstream({"all_proxy": text}).proxy_for("good.example", 443)


@given(st.text(min_size=1, max_size=60), st.text(max_size=60), st.integers(1, 65535))
def test_any_variables_give_a_proxy_a_direct_connection_or_a_problem(text, entries, port):
    try:
        found = Upstream({"all_proxy": text, "no_proxy": entries}).proxy_for("good.example", port)
    except ValueError:
        return
    if found is not None:
        assert found.request("good.example", port).count(b"\r\n\r\n") == 1


def test_the_problem_of_a_proxy_address_does_not_show_its_password():
    with pytest.raises(ValueError, match="not valid") as problem:
        Upstream({"https_proxy": "http://user:S3cret/word@proxy.example:3128"}).proxy_for("a.example", 443)
    assert "S3cret" not in str(problem.value)
