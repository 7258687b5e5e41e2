"""The walk against an oracle: `os.path.realpath`, on random trees of directories and links, with random paths."""

import os
import shutil
import tempfile

from hypothesis import given, settings
from hypothesis import strategies as st

from haft.contracts import CallError, PathEscapes
from haft.files import Root

names = st.sampled_from(["a", "b", "c"])
steps = st.one_of(names, st.sampled_from(["..", ".", ""]))
targets = st.tuples(
    st.sampled_from(["", "", "", "{root}/", "{outside}/", "/", "{root}/../workspace/"]),
    st.lists(steps, min_size=1, max_size=5).map("/".join),
).map("".join)
places = st.lists(names, min_size=1, max_size=3).map("/".join)
trees = st.lists(st.tuples(places, st.one_of(st.none(), st.just("file"), targets)), max_size=12)


def plant(directory, root, outside, tree):
    for place, what in tree:
        path = os.path.join(directory, place)
        try:
            os.makedirs(os.path.dirname(path), exist_ok=True)
            if what is None:
                os.mkdir(path)
            elif what == "file":
                with open(path, "xb") as file:
                    file.write(b"inside" if directory == root else b"OUTSIDE")
            else:
                os.symlink(what.format(root=root, outside=outside) or ".", path)
        except OSError:
            pass  # in the way of another: the tree is what came of it


@settings(max_examples=400, deadline=None)
@given(inner=trees, paths=st.lists(targets.filter(bool), min_size=1, max_size=8))
def test_nothing_outside_is_ever_opened_and_everything_inside_is(inner, paths):
    base = os.path.realpath(tempfile.mkdtemp())
    try:
        root, outside = os.path.join(base, "workspace"), os.path.join(base, "outside")
        for directory in (root, outside):
            os.mkdir(directory)
        plant(outside, root, outside, [(name, "file") for name in ("a", "b", "c")])
        plant(base, root, outside, [(name, "file") for name in ("a", "b", "c")])
        plant(root, root, outside, inner)
        workspace = Root(root)
        before = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0
        for path in paths:
            check(workspace, root, path.format(root=root, outside=outside))
        if before:
            assert len(os.listdir("/proc/self/fd")) == before
    finally:
        shutil.rmtree(base)


def check(workspace, root, path):
    real = os.path.realpath(os.path.join(root, path))
    inside = real == root or real.startswith(root + "/")
    refused = content = None
    try:
        with workspace.open(path) as file:
            content = file.read()
    except CallError as error:
        refused = error
    if refused is None:
        assert content == b"inside"
        assert inside
        assert os.path.join(root, workspace.locate(path)) == real
    elif inside and os.path.isfile(os.path.join(root, path)):
        # What only comes back in after it has left (`../workspace/a`) is refused on purpose.
        assert isinstance(refused, PathEscapes)
        assert leaves_on_the_way(root, path)


def leaves_on_the_way(root, path):
    """Walk by hand, with paths instead of descriptors: is there a step outside?"""
    pending = path.split("/")[::-1]
    here = root
    if path.startswith("/"):
        if path != root and not path.startswith(root + "/"):
            return True
        pending = path[len(root) :].split("/")[::-1]
    for _ in range(1000):
        if not pending:
            return False
        name = pending.pop()
        if name == "..":
            if here == root:
                return True
            here = os.path.dirname(here)
        elif name not in ("", "."):
            place = os.path.join(here, name)
            if os.path.islink(place):
                target = os.readlink(place)
                if target.startswith("/"):
                    if target.rstrip("/") != root and not target.startswith(root + "/"):
                        return True
                    here, target = root, target[len(root) :]
                pending.extend(target.split("/")[::-1])
            else:
                here = place
    return True
