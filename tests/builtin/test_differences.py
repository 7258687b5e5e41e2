import difflib

from hypothesis import given
from hypothesis import strategies as st

from haft.builtin.differences import short_diff


@given(st.lists(st.sampled_from(["a", "b", "c"]), max_size=20), st.lists(st.sampled_from(["a", "b", "c"]), max_size=20))
def test_it_is_a_unified_diff(old, new):
    before, after = "".join(f"{line}\n" for line in old), "".join(f"{line}\n" for line in new)
    diff = short_diff(before.encode(), after.encode(), "p").split("\n")
    assert diff[:2] == ["--- p", "+++ p"]
    assert apply(old, diff[2:]) == new


def apply(old, hunks):
    """A very small `patch`."""
    new, position = [], 0
    for line in hunks:
        if line.startswith("@@"):
            start, _, length = line.split()[1][1:].partition(",")
            begin = int(start) - (0 if length == "0" else 1)
            new += old[position:begin]
            position = begin
        elif line[0] in " -":
            assert old[position] == line[1:]
            new += [line[1:]] if line[0] == " " else []
            position += 1
        else:
            new.append(line[1:])
    return new + old[position:]


def test_it_looks_like_everybody_elses():
    old, new = [f"{number}\n" for number in range(30)], [f"{number}\n" for number in range(30)]
    new[10] = "ten\n"
    del new[20:22]
    mine = short_diff("".join(old).encode(), "".join(new).encode(), "p")
    assert mine + "\n" == "".join(difflib.unified_diff(old, new, "p", "p"))


def test_a_missing_final_newline_is_shown():
    assert short_diff(b"a\n", b"a", "p").split("\n")[2:] == ["@@ -1 +1 @@", "-a", "+a", "\\ No newline at end of file"]


def test_a_change_that_is_too_wide_is_only_counted():
    wide = short_diff(b"x\n" * 200_000, b"y\n" * 200_000, "p")
    assert wide == "(the changes spread over 200000 lines, too many to show)"
    assert short_diff(b"x\n" * 300, b"y\n" * 300, "p").endswith("more lines)")
    assert len(short_diff(b"x" * 1_000_000, b"y" * 1_000_000, "p")) < 1000
