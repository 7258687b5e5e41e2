import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from haft.builtin.globs import matcher


@pytest.mark.parametrize(
    ("pattern", "fitting", "others"),
    [
        ("*.py", ["a.py", "x/y/a.py", ".py"], ["a.pyc", "a.py/x"]),
        ("./*.py", ["a.py"], ["x/a.py"]),
        ("src/*.py", ["src/a.py"], ["src/x/a.py", "a.py", "lib/src/a.py"]),
        ("src/**/*.py", ["src/a.py", "src/x/y/a.py"], ["a.py", "lib/a.py"]),
        ("**/test_?.py", ["test_a.py", "x/test_b.py"], ["test_ab.py"]),
        ("**", ["a", "a/b"], []),
        ("src/**", ["src/a", "src/a/b"], ["src", "a"]),
        ("**/a/**/b", ["a/b", "x/a/y/z/b"], ["b", "a"]),
        ("*.{js,ts}", ["a.js", "x/a.ts"], ["a.css", "a.{js,ts}"]),
        ("{src,lib/x}/*.py", ["src/a.py", "lib/x/a.py"], ["lib/a.py"]),
        ("a{b{c,d},e}", ["abc", "abd", "ae"], ["ab", "abe"]),
        ("{a", ["{a"], ["a"]),
        ("{a}", ["{a}"], ["a"]),
        ("[ab]x", ["ax", "bx"], ["cx"]),
        ("[!ab]x", ["cx"], ["ax"]),
        ("[x", ["[x"], ["x"]),
        ("a.b", ["a.b"], ["axb"]),
    ],
)
def test_a_pattern_fits_what_it_should(pattern, fitting, others):
    fits = matcher(pattern)
    assert [path for path in fitting if not fits(path)] == []
    assert [path for path in others if fits(path)] == []


def test_patterns_that_cannot_be_are_refused():
    with pytest.raises(ValueError, match="begins with `/`"):
        matcher("/etc/*")
    with pytest.raises(ValueError, match="more than 256"):
        matcher("{a,b}" * 20)


def test_no_pattern_takes_long():
    assert not matcher("*a" * 30 + "b")("a" * 250)
    assert not matcher("**/a/" * 30 + "b")("a/" * 60 + "c")
    assert matcher("{" * 2000)("{" * 2000)


def oracle(pattern, path):
    """Plain backtracking over a whole pattern without braces, obviously right and slow."""
    wanted = pattern.split("/")
    names = path.split("/")
    if len(wanted) == 1:
        return wanted[0] == "**" or name_fits(wanted[0], names[-1])

    def walk(i, j):
        if i == len(wanted):
            return j == len(names)
        if wanted[i] == "**":
            if i == len(wanted) - 1:
                return j < len(names)
            return any(walk(i + 1, k) for k in range(j, len(names) + 1))
        return j < len(names) and name_fits(wanted[i], names[j]) and walk(i + 1, j + 1)

    return walk(0, 0)


def name_fits(pattern, name):
    if not pattern:
        return not name
    if pattern[0] == "*":
        return any(name_fits(pattern[1:], name[k:]) for k in range(len(name) + 1))
    return bool(name) and pattern[0] in ("?", name[0]) and name_fits(pattern[1:], name[1:])


pattern_names = st.text("ab*?", min_size=1, max_size=4)
patterns = st.lists(pattern_names, min_size=1, max_size=5).map("/".join)
paths = st.lists(st.text("ab", min_size=1, max_size=4), min_size=1, max_size=5).map("/".join)


@settings(max_examples=500)
@given(patterns, st.lists(paths, min_size=1, max_size=10))
def test_it_agrees_with_plain_backtracking(pattern, candidates):
    fits = matcher(pattern)
    for path in candidates:
        assert fits(path) == oracle(pattern, path)


@given(
    st.lists(st.text("ab", max_size=3), min_size=2, max_size=3),
    st.lists(st.text("ab", max_size=3), min_size=2, max_size=3),
)
def test_braces_stand_for_each_of_their_choices(left, right):
    fits = matcher("x{" + ",".join(left) + "}y{" + ",".join(right) + "}")
    for one, other in itertools.product(left, right):
        assert fits(f"x{one}y{other}")
    assert not fits("xcy")
