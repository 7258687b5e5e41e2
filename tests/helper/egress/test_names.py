"""Answers to look-ups: every name gets an address, and no bytes of a program raise anything."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from haft.helper.egress.names import answer_query

A, NS, PTR, MX, TXT, AAAA, SRV, HTTPS = 1, 2, 12, 15, 16, 28, 33, 65


def query(name, kind=A, family=1, flags=0x0100, count=1):
    labels = b"".join(bytes((len(part),)) + part for part in name.encode().split(b".") if part)
    return struct.pack(">HHHHHH", 0x1234, flags, count, 0, 0, 0) + labels + b"\0" + struct.pack(">HH", kind, family)


def answered(data, addresses=None, names=None):
    known = {"good.example": "198.18.0.2"} if addresses is None else addresses
    return answer_query(data, known.get, (names or {}).get)


def code(words):
    return words[3] & 15


def count(words):
    return int.from_bytes(words[6:8], "big")


def test_a_name_has_one_address_and_the_answer_repeats_number_and_question():
    words = answered(query("good.example"))
    assert words[:2] == b"\x12\x34" and words[2] & 0x80
    assert words[12 : len(query("good.example"))] == query("good.example")[12:]
    assert (code(words), count(words), words[-4:]) == (0, 1, b"\xc6\x12\0\2")


def test_names_are_the_same_in_capitals():
    assert answered(query("GOOD.Example"))[-4:] == b"\xc6\x12\0\2"


@pytest.mark.parametrize("kind", [NS, MX, TXT, AAAA, SRV, HTTPS])
def test_other_kinds_have_no_record_and_no_error_and_look_nothing_up(kind):
    asked = []
    words = answer_query(query("good.example", kind), asked.append, asked.append)
    assert (code(words), count(words), asked) == (0, 0, [])


def test_localhost_is_this_machine_whatever_is_granted():
    assert answered(query("localhost"), {})[-4:] == b"\x7f\0\0\1"
    assert answered(query("db.localhost", AAAA), {})[-16:] == b"\0" * 15 + b"\1"


def test_an_address_leads_back_to_its_name():
    words = answered(query("2.0.18.198.in-addr.arpa", PTR), names={"198.18.0.2": "good.example"})
    assert words.endswith(b"\4good\7example\0")
    assert code(answered(query("3.0.18.198.in-addr.arpa", PTR))) == 3


def test_where_no_more_names_can_be_given_an_address_the_look_up_fails():
    assert code(answered(query("late.example"), {})) == 2


@pytest.mark.parametrize("name", ["a b.example", "-a.example", "a" * 63 + "." + ".".join(["b" * 60] * 4), "ü.example"])
def test_a_name_that_no_host_has_does_not_exist(name):
    assert code(answered(query(name))) == 3


def test_what_is_no_usual_question_is_not_implemented():
    assert code(answered(query("good.example", family=3))) == 4
    assert code(answered(query("good.example", flags=0x2800))) == 4
    assert code(answered(query("good.example", count=2))) == 4


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"x" * 16,
        query("good.example", flags=0x8180),
        query("good.example")[:-3],
        query("x")[:12] + b"\xc0\x0c" * 9,
    ],
)
def test_what_is_no_question_gets_no_answer(data):
    assert answered(data) is None


@given(st.binary(max_size=700), st.booleans())
def test_any_datagram_is_answered_or_not_and_raises_nothing(data, is_like_a_question):
    seen = []

    def address_of(name):
        seen.append(name)
        return "198.18.0.9"

    words = answer_query(query("x")[:12] + data if is_like_a_question else data, address_of, lambda _address: "a.b")
    assert words is None or (words[2] & 0x80 and len(words) <= len(data) + 12 + 16)
    assert all(len(name) <= 253 and name.isascii() for name in seen)


@pytest.mark.parametrize("name", ["0xa630001", "10.99.1", "a.0x7f", "2130706433"])
def test_an_address_in_another_notation_is_no_name(name):
    assert code(answered(query(name))) == 3
