"""Undo is exact: whatever a call did to its workspace is told path by path, taken back, and brought back, bit by bit.

Both engines, and once more on a machine without namespaces, where the snapshot engine has to carry it; for every user.
"""

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from sampling import IS_AGAIN, IS_WHOLE, MORE, some

sys.path.insert(0, str(Path(__file__).parent))
import nasty
from fingerprint import difference
from proving import HEAVY, LACKING, LENGTH, PYTHON, prove_chain, proving

pytestmark = [
    pytest.mark.every_user,
    pytest.mark.skipif(sys.platform != "linux", reason="names and sockets are made as Linux has them"),
]

CHAINS = some(range(18 * MORE), 1, "chains")
"""Of each kind: there are three kinds, and `LENGTH` runs in each chain."""
AT_ONCE = 6 if IS_WHOLE else 1
IS_ROOT = os.geteuid() == 0
HERE = Path(__file__).parent
WITHOUT = HERE.parent / "sandbox" / "without.py"
ENGINES = {"overlay": {}, "snapshot": {"changes.engine": "snapshot"}}
DOCKERS = "a80425fb"
"""The capabilities of root in a container of Docker's."""


@pytest.fixture(scope="module")
def has_overlay(tmp_path_factory):
    async def tried():
        async with proving(tmp_path_factory.mktemp("tried") / "base", {}) as prover:
            outcome, _ = await prover.run("echo x > x")
            return outcome.changes

    return asyncio.run(tried())


@pytest.fixture(params=ENGINES)
def engine(request, has_overlay):
    if request.param == "overlay" and has_overlay.engine != "overlay":
        pytest.skip(f"this machine has none: {has_overlay.reason}")
    return request.param


@pytest.mark.parametrize("seed", CHAINS)
def test_the_changes_of_a_run_are_reported_undone_and_redone_exactly(seed, engine, tmp_path):
    proven = asyncio.run(prove_chain(seed, tmp_path / "chain", ENGINES[engine], links=True))
    assert proven.wrong is None, proven.wrong
    assert proven.runs == LENGTH and proven.changed > LENGTH
    assert set(proven.engines) == {engine}


def without_namespaces(first: int, count: int, base: Path, capabilities: str) -> list[dict]:
    words = [sys.executable, WITHOUT, "namespaces", "--", sys.executable, HERE / "proving.py", first, count, base]
    done = subprocess.run([*map(str, words), capabilities], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.skipif(os.uname().machine not in ("x86_64", "aarch64"), reason="no filter is known for this machine")
@pytest.mark.parametrize("number", CHAINS[::AT_ONCE])
def test_where_namespaces_are_forbidden_the_snapshot_engine_carries_it(number, tmp_path):
    # Every second time, root has no capabilities at all: then modes bind it like everybody.
    capabilities = "0" if number // AT_ONCE % 2 else DOCKERS
    chains = without_namespaces(1000 + number, AT_ONCE, tmp_path, capabilities)
    assert len(chains) == AT_ONCE
    for proven in chains:
        assert proven["wrong"] is None, proven["wrong"]
        assert proven["runs"] == LENGTH
        assert set(proven["engines"]) == {"snapshot"}
        assert all(reason.startswith(("no overlay: ", "the sandbox denied ")) for reason in proven["reasons"])


# ── one by one ───────────────────────────────────────────────────────────────────────────────────────────────────────


def prove(engine, base, fill, command, *, links=False):
    """Run a command over a tree; it is told exactly, undone, redone and undone. The outcome of the run."""

    async def proven():
        async with proving(base / "one", ENGINES[engine], links=links) as prover:
            fill(prover.tree)
            before = prover.look()
            outcome, after = await prover.run(command)
            assert difference(before, after), "nothing was changed"
            for verb, wanted in (("undo", before), ("redo", after), ("undo", before)):
                await prover.reverse(verb, outcome.run_id, wanted)
            assert outcome.changes.engine == engine and outcome.changes.complete
            return outcome

    return asyncio.run(proven())


def some_files(tree: Path) -> None:
    """A directory with two in it, and a link, all with times that no clock shows."""
    for name in ("d/one", "d/two", "d/inner/three", "e/four", "other"):
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_text(f"content of {name}\n")
        os.utime(tree / name, ns=(10**18 + 7, 10**18 + 7))
    (tree / "d" / "link").symlink_to("inner/three")
    (tree / "d" / "empty").mkdir()
    (tree / "d" / "inner").chmod(0o711)


COMMANDS = {
    "nothing left": "rm -rf -- * .[!.]*",
    "nothing left, and all of it anew": "rm -rf d e other; mkdir -p d/inner e; echo x > d/one; echo y > d/inner/three",
    "a directory removed and filled anew": "rm -rf d; mkdir d; echo x > d/new; echo y > d/two",
    "a directory removed and made a file": "rm -rf d; echo file > d",
    "a directory removed and made a link": "mv d was; ln -s was d",
    "a file made a directory": "rm other; mkdir -p other/d; echo x > other/d/x",
    "a link made a directory": "rm d/link; mkdir d/link; echo x > d/link/x",
    "a directory renamed": "mv d new",
    "a directory renamed, with changes inside": "mv d new; echo more >> new/one; rm new/two; echo x > new/inner/four",
    "a directory renamed after changes inside": "echo more >> d/one; rm d/two; mkdir d/more; mv d new",
    "a directory renamed twice": "mv d new; echo more >> new/one; mv new newer; rm newer/two",
    "a directory renamed and back, with changes": "mv d new; echo more >> new/one; mv new d; rm d/two",
    "directories that changed places": "mv d x; mv e d; mv x e",
    "a directory moved into another": "mv d e/; echo more >> e/d/one",
    "directories moved into each other": "mv e d/inner/; mv d/inner new; mv d new/e/; rm new/e/d/one",
    "an inner directory moved out, the outer one renamed": "mv d/inner x; mv d y; mv x y/again; rm -rf y/empty",
    "a renamed directory made anew in its old place": "mv d new; mkdir d; echo x > d/one; echo more >> new/one",
    "a renamed directory with another in its inner place": (
        "mv d new; rm -rf new/inner; mkdir new/inner; echo > new/inner/x"
    ),
    "a directory renamed over an empty one": "mkdir new; mv -T e new; mkdir e; mv -T new e; mv -T e newer",
    "a directory renamed, and its files put into others": (
        "mv d new; mv new/one e/; mv e/four new/; ln new/four new/five"
    ),
    "modes and times only": "chmod 600 d/one; chmod 700 d; touch -d 1999-01-01 d/two; touch d/inner",
    "modes of closed things": "chmod 000 d/inner/three; chmod 000 d/inner; chmod 000 d",
    "a pipe, a socket, and both gone": (
        "mkfifo p -m 0640; mv other q; python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind(\"s\")'"
    ),
    "the same size and time": (
        "cp -p d/one /tmp/r; printf CONTENT | dd of=d/one conv=notrunc 2>/dev/null; touch -r /tmp/r d/one; rm /tmp/r"
    ),
    "names that are no text": "printf x > $'\\xff\\xfe'; mkdir $'d\\n'; mv e $'d\\n/-rf'; mv d/one $'d/\\e[31m'",
    "a sparse file": "truncate -s 3G big; printf end >> big; truncate -s 50M d/one",
}


SAME = {
    "a directory renamed and back": "mv d new; mv new d",
    "a directory removed and filled with the same": "cp -a d c; rm -rf d; cp -a c d; rm -rf c",
    "a file written with what it holds": "cp -p d/one one; cat one > d/one; touch -r one d/one; rm one",
    "modes changed and changed back": "chmod 0 d d/one; chmod 755 d; chmod 644 d/one",
}


@pytest.mark.parametrize("name", SAME)
def test_no_change_is_reported_if_nothing_changed(name, engine, tmp_path):
    async def proven():
        async with proving(tmp_path / "one", ENGINES[engine]) as prover:
            some_files(prover.tree)
            (prover.tree / "d").chmod(0o755)
            (prover.tree / "d" / "one").chmod(0o644)
            outcome, _after = await prover.run(SAME[name])
            assert (outcome.changes.state, outcome.changes.files, outcome.changes.complete) == ("none", (), True)

    asyncio.run(proven())


@pytest.mark.parametrize("name", COMMANDS)
def test_undone_exactly(name, engine, tmp_path):
    if name == "a sparse file" and engine == "snapshot":
        pytest.skip("the snapshot engine reads every file")
    outcome = prove(engine, tmp_path, some_files, COMMANDS[name], links=engine == "overlay")
    assert outcome.changes.state == "committed"


def test_thousands_of_files_in_one_call(engine, tmp_path):
    def fill(tree):
        some_files(tree)
        nasty.make_files(os.fsencode(tree / "many"), many)

    many = made = 300 if IS_AGAIN else 800
    script = f"for n in $(seq {many}); do echo $n > $n; done"
    if IS_WHOLE:
        many, made, script = 2000, 10_000, nasty.sequence(1, 1, only=HEAVY).command(PYTHON)
    outcome = prove(engine, tmp_path, fill, f"rm -rf many; {script}")
    assert len(outcome.changes.files) >= many + made


def test_trees_as_deep_as_a_path_can_name(engine, tmp_path):
    def fill(tree):
        some_files(tree)
        (tree / "/".join(["deep"] * 150)).mkdir(parents=True)
        (tree / "/".join(["deep"] * 150) / "bottom").write_text("x")

    down = "d" + "/d" * 180
    prove(engine, tmp_path, fill, f"rm -rf d; mkdir -p {down}; echo x > {down}/x; mv deep/deep other_name; rm -rf deep")


def test_files_of_several_names(engine, tmp_path):
    """In the overlay, names that the call did not write through keep what was; either way undo joins them again."""

    def fill(tree):
        some_files(tree)
        os.link(tree / "other", tree / "second")
        os.link(tree / "other", tree / "e" / "third")
        os.link(tree / "d" / "one", tree / "e" / "one")

    # All names of one file, and of the other one that is replaced.
    command = "for each in other second e/third; do echo more >> $each; done; rm d/one e/one; ln other new"
    prove(engine, tmp_path, fill, command, links=True)


@pytest.mark.skipif(bool(LACKING), reason="git is not on this machine")
def test_a_repository_with_commits_inside(engine, tmp_path):
    def fill(tree):
        some_files(tree)
        walk = nasty.Walk(os.fsencode(tree), "0")
        nasty.make_repository_with_commit(walk, os.fsencode(tree / "inner"))

    identity = "git -c user.name=a -c user.email=a@b -c gc.auto=0"
    command = (
        f"cd inner && echo x > x && git add x && {identity} commit -q -m second && git checkout -q -b other HEAD^"
        f" && echo y > y && git add y && {identity} commit -q -m third && {identity} merge -q -m both - && rm tracked"
    )
    prove(engine, tmp_path, fill, command)


def test_closed_directories_and_files(engine, tmp_path):
    def fill(tree):
        some_files(tree)
        (tree / "d" / "inner" / "three").chmod(0)
        for name in ("d/inner", "d/empty", "e"):
            (tree / name).chmod(0)
        (tree / "d").chmod(0o500)

    command = """
        chmod 700 d e; chmod 755 d/inner; rm d/one
        chmod 600 d/inner/three; printf X >> d/inner/three; chmod 0 d/inner/three
        mv e d/e; mkdir -p new/closed; echo x > new/closed/x; chmod 0 new/closed/x; chmod 0 new/closed; chmod 500 d new
        rm other; mkdir other; echo x > other/x; chmod 0 other
    """
    prove(engine, tmp_path, fill, command)


# ── several runs ─────────────────────────────────────────────────────────────────────────────────────────────────────


def chain(engine, base, commands, then):
    """Some runs one after the other, and then what is to be seen."""

    async def told():
        async with proving(base / "chain", ENGINES[engine]) as prover:
            some_files(prover.tree)
            states, runs = [prover.look()], []
            for command in commands:
                outcome, after = await prover.run(command)
                states.append(after)
                runs.append(outcome.run_id)
            await then(prover, runs, states)

    asyncio.run(told())


def test_a_later_run_that_made_the_same_change_conflicts_until_it_is_undone(engine, tmp_path):
    """Or the later one, undone afterwards, would bring back what the first one made."""

    async def then(prover, runs, states):
        made, removed = runs
        refused = await prover.service.undo(made)
        assert refused.error.code == "conflict" and removed in refused.error.message
        prover.must_be(states[-1], "after an undo that was refused")
        await prover.reverse("undo", removed, states[1])
        await prover.reverse("undo", made, states[0])

    chain(engine, tmp_path, ["echo x > new", "rm new"], then)


def test_what_a_person_has_undone_by_hand_is_no_conflict_and_stays_so(engine, tmp_path):
    async def then(prover, runs, states):
        (prover.tree / "new").unlink()
        by_hand = prover.look()
        await prover.reverse("undo", runs[0], states[0])
        await prover.reverse("redo", runs[0], by_hand)

    chain(engine, tmp_path, ["echo x > new; echo x > newer"], then)


def test_a_directory_that_others_use_stays_as_they_made_it(engine, tmp_path):
    async def then(prover, runs, states):
        first, _second = runs
        await prover.reverse("undo", first, {path: each for path, each in states[2].items() if path != b"new/one"})
        await prover.reverse("redo", first, states[2])

    chain(engine, tmp_path, ["mkdir new; echo x > new/one", "echo y > new/two"], then)


def test_the_mode_that_a_later_run_gave_a_directory_is_not_overwritten(engine, tmp_path):
    async def then(prover, runs, states):
        assert not await prover.try_to_undo(runs[0])
        await prover.reverse("undo", runs[1], states[1])
        await prover.reverse("undo", runs[0], states[0])

    chain(engine, tmp_path, ["chmod 700 d", "chmod 750 d"], then)


def test_the_mode_that_a_later_run_gave_back_to_a_directory_is_that_runs(engine, tmp_path):
    """Or a redo of the first one, whose undo did nothing, would take it away."""

    async def then(prover, runs, states):
        assert not await prover.try_to_undo(runs[0])
        await prover.reverse("undo", runs[1], states[1])
        await prover.reverse("undo", runs[0], states[0])

    chain(engine, tmp_path, ["chmod 700 d", "chmod 755 d"], then)


def test_files_of_others_in_a_directory_that_was_a_file_conflict(engine, tmp_path):
    async def then(prover, runs, states):
        refused = await prover.service.undo(runs[0])
        assert refused.error.code == "conflict" and runs[1] in refused.error.message
        prover.must_be(states[2], "after an undo that was refused")

    chain(engine, tmp_path, ["rm other; mkdir other", "echo x > other/x"], then)


def test_some_runs_undone_as_one(engine, tmp_path):
    async def then(prover, runs, states):
        done = await prover.service.undo(*runs)
        assert done.error is None, done.error
        prover.must_be(states[0], "after an undo of all")
        done = await prover.service.redo(*runs)
        assert done.error is None, done.error
        prover.must_be(states[-1], "after a redo of all")

    commands = ["echo x >> other; mkdir n", "rm -rf d; echo d > d", "rm d; mkdir d; mv other d/", "chmod 0 d; rmdir n"]
    chain(engine, tmp_path, commands, then)
