import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from haft.builtin import lines as lines_module
from haft.builtin.lines import count_lines, read_lines


def expected(content, first, last):
    lines = content.split(b"\n")
    kept = [line + b"\n" for line in lines[:-1]] + ([lines[-1]] if lines[-1] else [])
    return b"".join(kept[first - 1 : last]), len(kept)


@given(
    content=st.text("ab\n\r", max_size=60).map(str.encode),
    first=st.integers(1, 12),
    more=st.one_of(st.none(), st.integers(0, 12)),
    chunk=st.integers(1, 7),
)
def test_a_part_is_what_splitting_the_whole_would_give(content, first, more, chunk):
    last = None if more is None else first + more
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lines_module, "_CHUNK", chunk)
        part = read_lines(io.BytesIO(content), first, last, most=1000, stopped=lambda: False)
    text, total = expected(content, first, last)
    assert part.content == text
    assert count_lines(content) == total
    assert part.total in (None, total)
    if last is None or last >= total:
        assert part.total == total
    if text:
        assert part.last == min(total, last or total)


@given(content=st.text("ab\n", max_size=60).map(str.encode), most=st.integers(1, 20), chunk=st.integers(1, 7))
def test_a_part_is_never_longer_than_allowed_and_says_when_it_was_cut(content, most, chunk):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lines_module, "_CHUNK", chunk)
        part = read_lines(io.BytesIO(content), 1, None, most=most, stopped=lambda: False)
    assert part.content == content[:most]
    assert part.cut == (len(content) > most)
