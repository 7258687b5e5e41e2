"""Whatever a tool answers can be written, and read back."""

from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from haft.storage import decode, encode, fragment

values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters()),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=20,
)


@given(values)
def test_every_value_of_json_comes_back_as_it_was(value):
    assert decode(encode(value)) == value


@given(values)
def test_it_is_one_line(value):
    assert b"\n" not in encode(value)


def test_what_orjson_refuses_is_written_all_the_same():
    assert decode(encode({"big": 2**70, "lone": "\ud800", 1: "a number as a key"})) == {
        "big": 2**70,
        "lone": "\ud800",
        "1": "a number as a key",
    }


def test_numbers_that_json_does_not_have_become_null_also_among_what_orjson_refuses():
    odd = [float("nan"), float("inf"), -float("inf")]
    assert decode(encode(odd)) == [None] * 3
    assert encode({"odd": odd, "big": 2**70}) == b'{"odd":[null,null,null],"big":1180591620717411303424}'


def test_a_fragment_is_written_like_its_value_also_among_what_orjson_refuses():
    @dataclass
    class Point:
        x: int

    point = Point(3)
    assert decode(encode({"point": fragment(point)})) == {"point": {"x": 3}}
    assert decode(encode({"point": fragment(point), "big": 2**70})) == {"point": {"x": 3}, "big": 2**70}


def test_a_fragment_has_its_own_json_form_where_there_is_one():
    class Point:
        def to_json(self):
            return {"at": [3, 4]}

    point = Point()
    for _ in range(2):
        assert decode(encode({"point": fragment(point)})) == {"point": {"at": [3, 4]}}
    assert decode(encode({"point": fragment(point), "big": 2**70})) == {"point": {"at": [3, 4]}, "big": 2**70}


def test_what_is_remembered_goes_on_being_learned_and_the_oldest_goes():
    class Counted:
        asked = 0

        def to_json(self):
            self.asked += 1
            return {"n": 1}

    values = [Counted() for _ in range(2000)]
    for value in values:
        for _ in range(3):
            assert encode(fragment(value)) == b'{"n":1}'
    assert {value.asked for value in values} == {1}, "the last is remembered like the first"
    encode(fragment(values[0]))
    assert values[0].asked == 2, "not all of them are held for ever"


def test_a_fragment_that_was_forgotten_meanwhile_is_written_all_the_same():
    class Point:
        def to_json(self):
            return {"at": [3, 4]}

    held = fragment(Point())
    for _ in range(1000):
        fragment(Point())
    assert decode(encode({"point": held, "big": 2**70})) == {"point": {"at": [3, 4]}, "big": 2**70}
