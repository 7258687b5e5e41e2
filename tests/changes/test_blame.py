"""Every line of a file is traced to who wrote it: after edits by runs and by others, renames, undo and redo."""

import asyncio
import contextlib
import hashlib
import itertools
import random
from collections import Counter

import pytest

from haft import ToolService
from haft.changes import Blobs
from haft.contracts import BadUsage
from haft.service import StateHome, open_changes
from sampling import MORE, SEED

PATHS = ("a", "b", "sub/c")


@contextlib.asynccontextmanager
async def opened(place):
    (place / "ws" / "sub").mkdir(parents=True, exist_ok=True)
    async with ToolService.open(
        place / "ws", home=place / "home", approver=lambda _request: True, installed=False
    ) as service:
        yield service


def blamed(place, path="a"):
    with contextlib.closing(open_changes(StateHome(str(place / "home")))) as changes:
        lines = changes.blame(str(place / "ws"), path)
    return [
        (line.text, (line.origin.source, line.origin.run if line.origin.source == "run" else None)) for line in lines
    ]


OLDER, OUTSIDE = ("older", None), ("outside", None)


class Oracle:
    """The files with the writer of each line, kept by hand beside the real ones."""

    def __init__(self, place, service, seed):
        self.place, self.service, self.random = place, service, random.Random(seed)
        self.numbers = itertools.count()
        self.files, self.known, self.newest = {}, {}, None
        """`known`: what the last run left at each path that some run changed."""
        self.before, self.after, self.runs, self.undone = {}, {}, [], []

    def edited(self, path, writer):
        """The lines of a file after some are dropped and some are written."""
        lines = list(self.files.get(path, ()))
        for _ in range(self.random.randint(0, 2)):
            if lines:
                del lines[self.random.randrange(len(lines))]
        for _ in range(self.random.randint(1, 3)):
            lines.insert(self.random.randint(0, len(lines)), (f"line {next(self.numbers)}", writer))
        return lines

    def write(self, path, lines):
        (self.place / "ws" / path).write_text(text_of(lines))

    def become(self, run, changed):
        """A run changed these paths; None stands for a path that is gone."""
        written = [text_of(lines) for lines in changed.values() if lines]
        self.newest = hashlib.sha256(written[0].encode()).hexdigest() if written else self.newest
        self.before[run] = {path: self.files.get(path) for path in changed}
        self.after[run] = changed
        self.put(changed)
        self.known |= changed

    def put(self, changed):
        for path, lines in changed.items():
            if lines is None:
                self.files.pop(path, None)
            else:
                self.files[path] = lines

    async def by_run(self):
        path = self.random.choice(PATHS)
        lines = self.edited(path, "it")
        made = await self.service.call("write_file", {"path": path, "content": text_of(lines)})
        assert made.status == "done", made.error
        mine = [(text, ("run", made.run_id) if writer == "it" else writer) for text, writer in lines]
        self.become(made.run_id, {path: mine})
        self.runs.append(made.run_id)

    async def stored(self):
        """haft keeps the content of new files soon after the call."""
        while self.newest is not None and not Blobs(str(self.place / "home" / "blobs")).has(self.newest):
            await asyncio.sleep(0.01)

    async def by_others(self):
        path = self.random.choice(PATHS)
        await self.stored()
        self.files[path] = self.edited(path, OUTSIDE if path in self.known else OLDER)
        self.write(path, self.files[path])

    async def by_rename(self):
        there = [path for path in PATHS if self.files.get(path)]
        free = [path for path in PATHS if path not in self.files]
        if not there or not free:
            return
        old, new = self.random.choice(there), self.random.choice(free)
        made = await self.service.call("shell", {"command": f"mv {old} {new}"})
        assert made.status == "done", made.error
        self.become(made.run_id, {old: None, new: self.files[old]})
        self.runs.append(made.run_id)

    async def by_rename_of_others(self):
        """haft does not see where the lines come from. They are new at their new place."""
        there = [path for path in PATHS if self.files.get(path)]
        free = [path for path in PATHS if path not in self.files and not self.known.get(path)]
        if not there or not free:
            return
        await self.stored()
        old, new = self.random.choice(there), self.random.choice(free)
        (self.place / "ws" / old).rename(self.place / "ws" / new)
        writer = OUTSIDE if new in self.known else OLDER
        self.files[new] = [(text, writer) for text, _ in self.files.pop(old)]

    async def by_undo(self):
        if not self.runs:
            return
        run = self.random.choice(self.runs[-3:])
        made = await self.service.undo(run)
        if made.status == "done":
            self.become(made.run_id, self.before[run])
            self.runs.remove(run)
            self.undone.append(run)

    async def by_redo(self):
        if not self.undone:
            return
        run = self.undone[-1]
        made = await self.service.redo(run)
        if made.status == "done":
            self.become(made.run_id, self.after[run])
            self.undone.remove(run)
            self.runs.append(run)


def text_of(lines):
    return "".join(f"{text}\n" for text, _ in lines)


@pytest.mark.parametrize("number", range(3 * MORE))
def test_every_line_has_the_writer_that_an_oracle_names(number, tmp_path):
    async def scenario():
        async with opened(tmp_path) as service:
            oracle = Oracle(tmp_path, service, f"{SEED} {number}")
            ways = (
                [oracle.by_run] * 3
                + [oracle.by_others, oracle.by_rename, oracle.by_rename_of_others]
                + [oracle.by_undo, oracle.by_redo] * 2
            )
            await oracle.by_others()
            done = []
            for _ in range(30):
                way = oracle.random.choice(ways)
                await way()
                done.append(way.__name__)
            for path, lines in oracle.files.items():
                assert (tmp_path / "ws" / path).read_text() == text_of(lines)
                assert blamed(tmp_path, path) == lines, (path, done)
            assert len(service.runs()) > 5

    asyncio.run(scenario())


@pytest.mark.parametrize("number", range(2 * MORE))
def test_equal_lines_have_their_writers_as_often_as_an_oracle_says(number, tmp_path):
    """Lines are only inserted: which one of several equal lines is the new one cannot be said, but how many are."""
    chance = random.Random(f"{SEED} equal {number}")
    numbers = itertools.count()

    def inserted(lines, writer):
        lines = list(lines)
        for _ in range(chance.randint(1, 4)):
            text = chance.choice(["", "}", "    pass", f"line {next(numbers)}"])
            lines.insert(chance.randint(0, len(lines)), (text, writer))
        return lines

    async def scenario():
        async with opened(tmp_path) as service:
            oracle = Oracle(tmp_path, service, "")
            lines = inserted([], OLDER)
            for _ in range(15):
                oracle.write("a", lines)
                new = inserted(lines, "it")
                made = await service.call("write_file", {"path": "a", "content": text_of(new)})
                lines = [(text, ("run", made.run_id) if writer == "it" else writer) for text, writer in new]
                if chance.random() < 0.4:
                    oracle.become(made.run_id, {"a": lines})
                    await oracle.stored()
                    lines = inserted(lines, OUTSIDE)
            oracle.write("a", lines)
            found = blamed(tmp_path)
            assert [text for text, _ in found] == [text for text, _ in lines]
            assert Counter(found) == Counter(lines)
            alone = [line for line in lines if line[0].startswith("line")]
            assert [line for line in found if line[0].startswith("line")] == alone

    asyncio.run(scenario())


def test_a_file_that_others_renamed_has_no_writers_from_before(tmp_path):
    async def scenario():
        async with opened(tmp_path) as service:
            oracle = Oracle(tmp_path, service, "")
            first = await service.call("write_file", {"path": "a", "content": "1\n2\n"})
            oracle.become(first.run_id, {"a": [("1", OLDER), ("2", OLDER)]})
            await oracle.stored()
            (tmp_path / "ws" / "a").rename(tmp_path / "ws" / "b")
            assert blamed(tmp_path, "b") == [("1", OLDER), ("2", OLDER)]
            made = await service.call("shell", {"command": "echo 3 >> b"})
            assert blamed(tmp_path, "b") == [("1", OLDER), ("2", OLDER), ("3", ("run", made.run_id))]
            (tmp_path / "ws" / "b").rename(tmp_path / "ws" / "a")
            assert blamed(tmp_path)[2] == ("3", OUTSIDE)

    asyncio.run(scenario())


def test_a_line_that_was_undone_and_redone_is_still_its_runs(tmp_path):
    async def scenario():
        async with opened(tmp_path) as service:
            (tmp_path / "ws" / "a").write_text("old\n")
            made = await service.call("shell", {"command": "echo new >> a"})
            await service.undo(made.run_id)
            assert blamed(tmp_path) == [("old", OLDER)]
            await service.redo(made.run_id)
            assert blamed(tmp_path) == [("old", OLDER), ("new", ("run", made.run_id))]

    asyncio.run(scenario())


def test_a_file_renamed_and_edited_in_one_run_keeps_its_writers(tmp_path):
    async def scenario():
        async with opened(tmp_path) as service:
            first = await service.call("write_file", {"path": "a", "content": "1\n2\n3\n4\n5\n6\n7\n8\n"})
            second = await service.call("shell", {"command": "mv a b; echo 9 >> b"})
            runs = [first.run_id] * 8 + [second.run_id]
            assert blamed(tmp_path, "b") == [(str(number + 1), ("run", run)) for number, run in enumerate(runs)]

    asyncio.run(scenario())


def test_changes_that_are_held_wrote_nothing_yet(tmp_path):
    async def scenario():
        async with opened(tmp_path) as service:
            await service.call("write_file", {"path": "a", "content": "1\n"})
            held = await service.call(
                "shell", {"command": "mkdir -p .git/hooks; echo x > .git/hooks/pre-push; echo 2 >> a"}
            )
            assert held.changes.state == "held"
            assert [text for text, _ in blamed(tmp_path)] == ["1"]
            assert (await service.apply(held.run_id)).status == "done"
            assert blamed(tmp_path)[-1] == ("2", ("run", held.run_id))

    asyncio.run(scenario())


def test_content_that_is_no_longer_stored_leaves_lines_without_a_writer(tmp_path):
    async def scenario():
        async with opened(tmp_path) as service:
            (tmp_path / "ws" / "a").write_text("old\n")
            await service.call("shell", {"command": "echo 1 >> a"})
            await service.call("shell", {"command": "echo 2 >> a"})

    asyncio.run(scenario())
    changes = tmp_path / "home" / "changes"
    for manifest in changes.rglob("manifest"):
        manifest.unlink()
    assert {writer for _, writer in blamed(tmp_path)} == {("unknown", None)}


@pytest.mark.parametrize(
    ("path", "what", "message"),
    [
        ("a", None, "there is no file"),
        ("a", b"\0", "not text"),
        ("a", b"\xff\n", "not text"),
        ("sub", None, "not a file"),
    ],
)
def test_what_has_no_lines_is_named(path, what, message, tmp_path):
    async def scenario():
        async with opened(tmp_path) as service:
            await service.call("write_file", {"path": "other", "content": "1\n"})

    asyncio.run(scenario())
    if what is not None:
        (tmp_path / "ws" / path).write_bytes(what)
    with pytest.raises(BadUsage, match=message):
        blamed(tmp_path, path)
