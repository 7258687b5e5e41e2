"""What may pass of a program's first bytes. Whatever the bytes and wherever they are split, nothing is raised but
`Refused`, nothing is changed, and no request for another host passes."""

import ssl
import struct
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from haft.helper.egress.first_bytes import MAX_HEAD, MAX_RECORDS, FirstBytes, Refused, read_client_hello

NAME = "good.example"


def first_bytes(port=80, others=()):
    return FirstBytes(NAME, port, lambda host, _port: host in others)


def hello_for(name):
    """The ClientHello that OpenSSL sends."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    outgoing = ssl.MemoryBIO()
    end = context.wrap_bio(ssl.MemoryBIO(), outgoing, server_hostname=name)
    with pytest.raises(ssl.SSLWantReadError):
        end.do_handshake()
    return outgoing.read()


HELLO = hello_for(NAME)
GET = b"GET / HTTP/1.1\r\nHost: good.example\r\n\r\n"
OTHER = b"GET / HTTP/1.1\r\nHost: other.example\r\n\r\n"
POST = b"POST /a HTTP/1.1\r\nhost: GOOD.example:80\r\nContent-Length: 5\r\n\r\nhello"
TO_GOOD = b"POST / HTTP/1.1\r\nHost: good.example\r\n"
CHUNKED = TO_GOOD + b"Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\nB\r\nhello again\r\n0\r\n\r\n"
UPGRADE = b"GET /ws HTTP/1.1\r\nHost: good.example\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"

OPTIONS = b"OPTIONS * HTTP/1.1\r\nHost: good.example.\r\n\r\n"
ABSOLUTE = b"POST http://good.example/x HTTP/1.1\r\nHost: good.example\r\nTransfer-Encoding: chunked\r\n\r\n"
requests = st.lists(
    st.one_of(
        st.sampled_from([GET, POST, CHUNKED, GET.replace(b"1.1", b"1.0"), OPTIONS]),
        st.binary(max_size=300).map(lambda body: TO_GOOD + b"Content-Length: %d\r\n\r\n%s" % (len(body), body)),
        st.binary(min_size=1, max_size=300).map(lambda body: ABSOLUTE + b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body)),
    ),
    min_size=1,
    max_size=5,
).map(b"".join)
places = st.lists(st.integers(0, 3000), max_size=12)


def pieces(data, cuts):
    edges = [0, *sorted(cut for cut in {*cuts} if 0 < cut < len(data)), len(data)]
    return [data[begin:end] for begin, end in pairwise(edges)]


def passed(checked, data, cuts=()):
    return b"".join(checked.feed(piece) for piece in pieces(data, cuts))


def is_refused(checked, data, cuts=()):
    """Whether the bytes are refused, with what had passed before."""
    so_far = b""
    try:
        for piece in pieces(data, cuts):
            so_far += checked.feed(piece)
    except Refused:
        return so_far
    pytest.fail(f"all of it passed: {so_far!r}")


@given(requests, places, st.sampled_from([80, 443, 8080]))
def test_allowed_requests_pass_byte_for_byte_wherever_they_are_split(data, cuts, port):
    checked = first_bytes(port)
    assert passed(checked, data, cuts) == data
    assert not checked.kept


@given(requests, places, st.sampled_from([80, 443, 8080]))
def test_a_request_for_another_host_never_passes_whole_behind_allowed_ones(data, cuts, port):
    so_far = is_refused(first_bytes(port), data + OTHER, cuts)
    assert so_far == (data + OTHER)[: len(so_far)]
    assert b"other.example\r\n\r\n" not in so_far


@given(
    places,
    st.sampled_from([443, 8080]),
    st.sampled_from([b"", b"\r\n", b"\n", b"\r\n\r\n", b" \r\n"]),
    st.sampled_from([b"GET", b"get", b"A", b"M-SEARCH", b"X" * 40]),
    st.sampled_from([b"HTTP/1.1", b"http/1.0", b"HTTP/9"]),
)
def test_on_other_ports_too_a_request_is_recognized_however_it_is_split_or_spelt(cuts, port, before, method, version):
    data = before + OTHER.replace(b"GET", method).replace(b"HTTP/1.1", version)
    so_far = is_refused(first_bytes(port), data, cuts)
    assert b"\r\n" not in so_far[len(before) :]


@given(st.binary(min_size=1, max_size=400), places)
def test_other_protocols_pass_at_once_on_other_ports(data, cuts):
    checked, so_far = first_bytes(5432), b""
    try:
        for piece in pieces(b"\0" + data, cuts):
            so_far += piece
            passed_now = checked.feed(piece)
            assert passed_now == piece
    except Refused:
        assert b"http/" in so_far.lower()


def test_a_program_that_waits_for_an_answer_to_half_a_line_gets_it():
    checked = first_bytes(23)
    assert [checked.feed(each) for each in (b"GE", b"T", b" x", b" y\r\n", b"HTTP/1.1\r\n")] == [
        b"GE", b"T", b" x", b" y\r\n", b"HTTP/1.1\r\n",
    ]  # fmt: skip


def test_http_2_without_tls_passes_on_ports_other_than_80_only():
    preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
    assert passed(first_bytes(50051), preface, [3, 9]) == preface
    assert is_refused(first_bytes(80), preface) == b""
    assert is_refused(first_bytes(50051), b"\r\n" + preface, [2]) == b"\r\n"


@given(st.binary(max_size=400), st.sampled_from([80, 443, 8080]), places)
def test_any_bytes_pass_or_are_refused_and_nothing_else_happens(data, port, cuts):
    for start in (b"", b"\x16\x03\x01", b"GET ", GET, CHUNKED[:90], UPGRADE, HELLO[:100]):
        checked, so_far = first_bytes(port), b""
        try:
            for piece in pieces(start + data, cuts):
                so_far += checked.feed(piece)
                if checked.awaits_answer:
                    so_far += checked.feed_answer(b"HTTP/1.1 200 OK\r\n")
        except Refused:
            pass
        assert (start + data).startswith(so_far)


@given(st.data())
def test_a_changed_hello_passes_unchanged_or_is_refused(data):
    hello = bytearray(HELLO)
    for _ in range(data.draw(st.integers(1, 6))):
        hello[data.draw(st.integers(0, len(hello) - 1))] = data.draw(st.integers(0, 255))
    checked = first_bytes(443)
    try:
        so_far = checked.feed(bytes(hello))
    except Refused:
        return
    assert so_far in (b"", bytes(hello))


@given(st.binary(max_size=600))
def test_a_hello_of_any_bytes_has_a_name_or_none_or_is_refused(body):
    for data in (
        body,
        b"\x16\x03\x01" + struct.pack(">H", len(body)) + body,
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc" + body,
    ):
        try:
            found = read_client_hello(data)
        except Refused:
            continue
        assert found is None or found[0] is None or isinstance(found[0], str)


@given(places, st.sampled_from([80, 443, 8443]))
def test_a_hello_for_the_granted_name_passes_wherever_it_is_split(cuts, port):
    checked = first_bytes(port)
    data = HELLO + b"\x17\x03\x03\x00\x05hello"
    assert passed(checked, data, cuts) == data
    assert checked.is_done


@given(places, st.sampled_from(["other.example", "xgood.example", "good.example.other", None]))
def test_a_hello_with_another_name_or_none_is_refused_before_a_byte_passes(cuts, name):
    assert is_refused(first_bytes(443), hello_for(name), cuts) == b""


def in_records(hello, size):
    body = hello[5:]
    parts = [body[at : at + size] for at in range(0, len(body), size)]
    return b"".join(b"\x16\x03\x01" + struct.pack(">H", len(each)) + each for each in parts)


def test_a_hello_may_be_split_over_some_records_and_not_over_many():
    few = in_records(HELLO, -(-len(HELLO[5:]) // MAX_RECORDS))
    assert passed(first_bytes(443), few) == few
    assert read_client_hello(in_records(hello_for("other.example"), 100)) == ("other.example", False)
    assert is_refused(first_bytes(443), in_records(HELLO, 1)) == b""


@pytest.mark.parametrize(
    "data",
    [
        HELLO[:5] + b"\x02" + HELLO[6:],
        HELLO[:60] + b"\x17",
        b"\x16\x03\x01\x00\x04\x01\x01\x00\x00",
        b"\x16\x03\x01\x00\x00",
        b"\x16\x03\x01\xff\xff",
    ],
    ids=["no hello", "something else", "too long", "empty record", "long record"],
)
def test_malformed_tls_is_refused(data):
    if data[-1:] == b"\x17":
        data = in_records(HELLO, 60)[:65] + b"\x17\x03\x03\x00\x01x"
    assert is_refused(first_bytes(443), data) == b""


def test_two_server_names_are_refused():
    body = bytes.fromhex("0303") + b"r" * 32 + b"\0" + b"\0\2\x13\1" + b"\1\0"

    def extension(name):
        inner = b"\0" + struct.pack(">H", len(name)) + name
        return b"\0\0" + struct.pack(">HH", len(inner) + 2, len(inner)) + inner

    def hello(*extensions):
        whole = body + struct.pack(">H", len(b"".join(extensions))) + b"".join(extensions)
        message = b"\1\0" + struct.pack(">H", len(whole)) + whole
        return b"\x16\3\1" + struct.pack(">H", len(message)) + message

    one, two = extension(b"good.example"), extension(b"other.example")
    assert read_client_hello(hello(one, b"\xfe\x0d\0\0")) == ("good.example", True)
    assert read_client_hello(hello()) == (None, False)
    for order in ((one, two), (two, one), (one, one)):
        with pytest.raises(Refused):
            read_client_hello(hello(*order))


FRONTING = {
    "other host": OTHER,
    "empty host": GET.replace(b"good.example", b""),
    "two hosts": GET[:-2] + b"Host: other.example\r\n\r\n",
    "the same host twice": GET[:-2] + b"Host: good.example\r\n\r\n",
    "absolute target": b"GET http://other.example/ HTTP/1.1\r\nHost: good.example\r\n\r\n",
    "absolute target with a user": b"GET http://good.example@other.example/ HTTP/1.1\r\nHost: good.example\r\n\r\n",
    "absolute target without a path": b"GET http://other.example?good.example/ HTTP/1.1\r\nHost: good.example\r\n\r\n",
    "folded": b"GET / HTTP/1.1\r\nHost:\r\n other.example\r\n\r\n",
    "folded behind": b"GET / HTTP/1.1\r\nHost: good.example\r\n X: other.example\r\n\r\n",
    "space before the colon": b"GET / HTTP/1.1\r\nHost : other.example\r\n\r\n",
    "bare line feeds": OTHER.replace(b"\r\n", b"\n"),
    "one bare line feed": b"GET / HTTP/1.1\r\nX: y\nHost: other.example\r\nHost: good.example\r\n\r\n",
    "bare carriage return": b"GET / HTTP/1.1\r\nX: y\rHost: other.example\r\nHost: good.example\r\n\r\n",
    "nul": GET.replace(b"good.example", b"good.example\0.other.example"),
    "connect": b"CONNECT other.example:443 HTTP/1.1\r\nHost: good.example\r\n\r\n",
    "length against chunked": TO_GOOD + b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "two lengths": TO_GOOD + b"Content-Length: 4\r\nContent-Length: 40\r\n\r\n",
    "a list of lengths": TO_GOOD + b"Content-Length: 4, 40\r\n\r\n",
    "signed length": TO_GOOD + b"Content-Length: +4\r\n\r\n",
    "other encoding": TO_GOOD + b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
    "HTTP/2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "second line end": b"\r\n\r\n" + OTHER,
    "old protocol": b"GET /\r\nother.example\r\n\r\n",
    "upgrade with a body": UPGRADE[:-2] + b"Expect: 100-continue\r\nContent-Length: 40\r\n\r\n",
    "upgrade with chunks": UPGRADE[:-2] + b"Transfer-Encoding: chunked\r\n\r\n",
}  # fmt: skip


@pytest.mark.parametrize("data", FRONTING.values(), ids=FRONTING)
def test_a_request_that_names_another_host_or_can_be_read_in_two_ways_is_refused_at_port_80(data):
    assert is_refused(first_bytes(), data) == b""
    assert is_refused(first_bytes(), data, range(1, 400)) == b""


BAD_CHUNKS = {
    "an extension": b"5;x=y\r\nhello\r\n0\r\n\r\n",
    "no line end behind": b"5\r\nhelloXX32\r\n0\r\n\r\n",
    "half a line end behind": b"5\r\nhello\rX",
    "no number": b"x\r\n",
    "a negative number": b"-1\r\n",
    "a long number": b"0" * 70,
    "trailers": b"5\r\nhello\r\n0\r\nHost: other.example\r\n\r\n",
}


@pytest.mark.parametrize("body", BAD_CHUNKS.values(), ids=BAD_CHUNKS)
def test_chunks_that_servers_read_differently_are_refused(body):
    head = CHUNKED[: CHUNKED.index(b"5\r\nhello")]
    for cuts in ([], range(1, 400)):
        is_refused(first_bytes(), head + body + OTHER, cuts)


def test_a_long_head_is_refused_also_where_its_beginning_has_passed():
    is_refused(first_bytes(), b"GET /" + b"x" * MAX_HEAD)
    hidden = b"GET http://other.example/" + b"x" * MAX_HEAD + b"GET / HTTP/1.1\r\nHost: good.example\r\n\r\n"
    assert b"HTTP/1.1" not in is_refused(first_bytes(8080), hidden, [len(hidden) - 60])


def test_the_host_of_another_grant_may_be_named():
    assert passed(first_bytes(others=["other.example"]), GET + OTHER) == GET + OTHER
    assert passed(first_bytes(443, others=["other.example"]), hello_for("other.example"))


def test_an_upgrade_waits_for_its_answer_and_then_everything_passes():
    checked = first_bytes()
    assert checked.feed(UPGRADE + b"frame") == UPGRADE
    assert checked.awaits_answer
    assert checked.feed_answer(b"HTTP/1.1") == b""
    assert checked.feed_answer(b" 101 Switching") == b"frame"
    assert checked.feed(OTHER) == OTHER


def test_after_an_upgrade_that_was_not_granted_requests_are_checked_as_before():
    checked = first_bytes()
    checked.feed(UPGRADE)
    assert checked.feed_answer(b"HTTP/1.1 200 OK") == b""
    assert checked.feed(GET) == GET
    with pytest.raises(Refused):
        checked.feed(OTHER)


def test_an_answer_behind_other_answers_switches_nothing():
    checked = first_bytes()
    assert checked.feed(GET + UPGRADE + b"\x81\x05hello" + b"x" * 20) == GET + UPGRADE
    with pytest.raises(Refused):
        checked.feed_answer(b"HTTP/1.1 101 Switching Protocols")


@pytest.mark.parametrize("protocol", [b"h2c", b"websocket, h2c", b"HTTP/2.0", b"TLS/1.2, HTTP/1.1"])
def test_a_switch_to_a_protocol_that_names_hosts_anew_is_refused(protocol):
    request = UPGRADE.replace(b"websocket", protocol)
    switched, plain = first_bytes(), first_bytes()
    assert switched.feed(request) == plain.feed(request) == request
    with pytest.raises(Refused):
        switched.feed_answer(b"HTTP/1.1 101 Switching Protocols")
    assert plain.feed_answer(b"HTTP/1.1 200 OK\r\n") == b""
    assert plain.feed(GET) == GET


@pytest.mark.parametrize("port", [80, 443, 8443])
def test_a_hello_in_the_format_of_ssl_2_names_no_server_and_is_refused(port):
    hello = b"\x80\x2e\x01\x03\x01" + bytes(41)
    with pytest.raises(Refused):
        first_bytes(port).feed(hello)


def test_a_refusal_shows_only_the_beginning_of_a_long_host():
    with pytest.raises(Refused) as refused:
        first_bytes().feed(b"GET / HTTP/1.1\r\nHost: " + b"\x80" * 60_000 + b"\r\n\r\n")
    assert len(str(refused.value)) < 1000
