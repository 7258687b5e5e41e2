"""Does the project keep to its vocabulary? `python scripts/words.py`; exit 1 where an old word stands, with its place.

One word for one thing: here are the words that were replaced, what stands in their place, and where a format or the
past demands the old one. Decisions keep the words of their time.
"""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

TOP = Path(__file__).parent.parent
PAST: Final = (
    "docs/decisions/",
    "docs/glossary.md",
    "tests/old_state/",
    "tests/test_words.py",
    "scripts/words.py",
    "LICENSE",
    "cdd/LICENSE",
)
"""Where any old word may stand."""
RECORDED: Final = "tests/agents/recorded/"
"""Words of agents, as they said them."""
SUFFIXES: Final = {".py", ".md", ".toml", ".json", ".jsonl", ".bash", ".sh", ""}


class Word(NamedTuple):
    """One that was replaced."""

    old: str
    """A regular expression, which counts as a whole word and whatever the case of its first letter."""
    new: str
    but: tuple[str, ...] = ()
    """Phrases in which it may stand, each with the beginning of the paths where, after `@`."""


_LITERAL: Final = ("take in turn", "for .* taken in", "cannot take in orphans", "takes in the database")
"""Where the words stand side by side by chance."""

WORDS: Final = (
    Word(
        "walls?|walled",
        "sandbox, sandbox-denied",
        (
            "wall clock",
            "0012-walls|0012 Walls|0013-walled|0013 A wall @docs/",
            "walls @CHANGELOG.md",
            "walled @CHANGELOG.md",
            "walls @src/haft/contracts/renamed_fields.py",
            "walls|walled @tests/contracts/test_renamed_fields.py",
            "walled @src/haft/contracts/renamed_fields.py",
        ),
    ),
    Word(
        "without_walls",
        "without_sandbox",
        ("without_walls @src/haft/config/settings.py", "@CHANGELOG.md", "@tests/config/"),
    ),
    Word("chained record", "audit log"),
    Word(
        "record[.]durability", "audit.durability", ("@src/haft/config/settings.py", "@CHANGELOG.md", "@tests/config/")
    ),
    # What people read.
    Word("agree[sd]? to|agreed (?:with|that)|not what was agreed", "approve"),
    Word("(?:say|says|said) (?:yes|no)|a yes (?:is|to|that)", "approve, reject"),
    Word("taken? in|takes in|took in|taking in", "load, install, discover, import", _LITERAL),
    Word("br(?:ing|ings|ought) in", "load, install", ("@tests/",)),
    Word("asked what (?:it is|they are)|is asked anew|could not be asked", "describe"),
    Word("held back", "held"),
    Word("(?:stand|stands|someone|somebody) in the way|in_the_way|InTheWay", "conflict"),
    Word("(?:was|were) (?:only )?tried|tried run|cannot be tried", "trial run"),
    Word("denied it something|denied something by", "the sandbox denied a write, a connection, ..."),
    Word("the way of a call", "pipeline"),
    Word("everything else asks|what may change something asks|what would ask|asks: ", "needs approval", ("@cdd/",)),
    Word("taken back unasked|not taken in unasked", "needs a grant"),
    Word("thrown away|throws (?:it|them) away", "discarded, discards"),
    Word("said more than anyone reads", "printed too much"),
    Word("what must be minded", "what to watch out for"),
    Word("lies outside of what it may write", "is outside the workspace"),
    Word("as agreed", "as approved"),
    Word("Whom haft believes", "whom haft trusts"),
    Word("Not so:|But so:", "Wrong:, Right:"),
    Word("rooms? of (?:its|their) own|which room|every room", "package", ("0020 Templates @docs/README.md",)),
    # Names in the code.
    Word("Desk", "ApprovalBroker", ("@tests/",)),
    Word("Nursery|nursery", "WarmPool, warm pool"),
    Word("KeepingUp|keeping_up", "CatalogueRefresher"),
    Word("ShownOutput", "OutputBuffer"),
    Word("OPEN_WALLS", "NO_CONFINEMENT"),
    Word("findnames", "find_expression"),
    Word("Scribe", "RunWriter"),
    Word("gitplaces|GitPlaces", "git_paths, GitPaths"),
    Word("KeptDefinitions", "DefinitionCache"),
    Word("AppendedFile", "AppendOnlyFile"),
    Word("AskingLauncher|asking_launcher", "DescribeLauncher"),
    Word("with_names_of_today|name_of_today", "with_current_names, current_name"),
    Word("HowAnswered", "PastAnswer"),
    Word("stranger_in", "foreign_file_in"),
    Word("kept_yes", "kept_approval, take_unused_approval"),
    Word("tell_act", "record_act"),
    Word("to_the_end", "run_uncancellable"),
    Word("haft[.]changes[.](?:committing|guarding)", "haft.changes.commit, haft.changes.guard"),
    Word("NOT_ASKED", "NOT_DESCRIBED"),
    Word("TemplateStanding", "TemplateState"),
)

ANY: Final = re.compile("|".join(word.old for word in WORDS), re.IGNORECASE)


def is_allowed(word: Word, path: str, line: str) -> bool:
    """Whether the past or a format demands it here."""
    for each in word.but:
        phrase, _, place = each.partition("@")
        if path.startswith(place) and (not phrase.strip() or re.search(phrase.strip(), line, re.IGNORECASE)):
            return True
    return False


def old_words(path: str, line: str) -> Iterator[str]:
    """Those in a line that should not be there, with what to write."""
    if path.startswith(PAST):
        return
    if ANY.search(line) is None:
        return
    for word in WORDS:
        hit = re.search(rf"(?<!\w)(?:{word.old})(?!\w)", line, re.IGNORECASE)
        if hit is not None and not is_allowed(word, path, line):
            yield f"`{hit[0]}`: write {word.new}"


def main() -> int:
    """Whether there are any, each named."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=TOP, capture_output=True, check=True).stdout
    names = [path for path in listed.decode().split("\0") if not path.startswith(RECORDED)]
    places = [path for path in names if Path(path).suffix in SUFFIXES and (TOP / path).is_file()]
    found = [
        f"{path}:{number}: {old}"
        for path in places
        for number, line in enumerate((TOP / path).read_text("utf-8", "replace").splitlines(), 1)
        for old in old_words(path, line)
    ]
    print("\n".join(found) or "every word is one of the vocabulary")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
