"""The cheap dataclasses against those of the standard library: whatever can be seen of one can be seen of the other."""

import copy
import dataclasses
import inspect
import pickle
from typing import ClassVar

import orjson
import pytest

from haft import values


def build(kind, **options):
    """The same classes by one or the other."""

    @kind.dataclass(**options)
    class Point:
        """A place."""

        COUNT: ClassVar[int] = 3
        x: int
        y: int = 2
        names: list[str] = kind.field(default_factory=list, compare=False)
        secret: str = kind.field(default="hidden", repr=False)

        def doubled(self):
            return self.x * 2

    @kind.dataclass(**options)
    class Solid(Point):
        z: int = 0

    return Point, Solid


OPTIONS = [{"frozen": True, "slots": True}, {"slots": True}, {"frozen": True}, {"eq": False, "slots": True}]


@pytest.mark.parametrize("options", OPTIONS)
def test_values_look_compare_and_change_like_those_of_dataclasses(options):
    seen = []
    for kind in (dataclasses, values):
        point, solid = build(kind, **options)
        one, same, other = point(1), point(1, 2, ["a"]), point(1, 3)
        deep = solid(1, z=4)
        seen.append(
            {
                "shown": [repr(one), repr(deep)],
                "equal": [one == same, one == other, one == deep, one != same, one == 3],
                "hash": [point.__hash__ is None, point.__hash__ is None or (hash(one) == hash(same)) == (one == same)],
                "replaced": [kind.replace(other, y=9).y, dataclasses.replace(deep, x=7).x, kind.replace(deep, z=1).z],
                "fields": [(each.name, each.repr, each.compare) for each in dataclasses.fields(solid)],
                "as dict": [dataclasses.asdict(deep), orjson.dumps(deep), dataclasses.is_dataclass(point)],
                "parameters": [(name, each.kind) for name, each in inspect.signature(solid).parameters.items()],
                "copied": [copy.deepcopy(deep).names, copy.copy(one).secret],
                "own": [point.__match_args__, point.COUNT, one.doubled(), hasattr(one, "__dict__"), point.__doc__],
            }
        )
        assert one.names is not same.names
        with pytest.raises(TypeError, match="missing 1 required positional argument: 'x'"):
            point()
        with pytest.raises(TypeError, match="unexpected keyword argument 'w'"):
            point(1, w=2)
    assert seen[0] == seen[1]


@values.dataclass(frozen=True, slots=True)
class Kept:
    word: str
    number: int = 1


def test_a_frozen_value_cannot_be_changed_and_can_be_pickled():
    kept = Kept("a")
    with pytest.raises(dataclasses.FrozenInstanceError):
        kept.word = "b"
    with pytest.raises(dataclasses.FrozenInstanceError):
        del kept.word
    assert pickle.loads(pickle.dumps(kept)) == kept
    match kept:
        case Kept(word, number):
            assert (word, number) == ("a", 1)


def test_what_follows_the_first_value_of_a_class_is_done_each_time():
    @values.dataclass(slots=True)
    class Counted:
        number: int

        def __post_init__(self):
            self.number += 1

    assert [Counted(1).number, Counted(2).number] == [2, 3]
