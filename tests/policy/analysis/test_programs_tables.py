"""The tables themselves: their form, and the claims that an entry may make."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from haft.policy.analysis.command.options import option_table
from haft.policy.analysis.program import Program
from haft.policy.analysis.programs import PROGRAMS

WRITERS = [
    "sort", "uniq", "find", "sed", "awk", "git", "tree", "file", "xxd", "date", "shuf", "iconv", "sdiff", "tar",
    "unzip", "gzip", "npm", "yarn", "pip",
]  # fmt: skip
NEVER = [
    "rm", "mv", "cp", "ln", "chmod", "chown", "dd", "tee", "touch", "mkdir", "rmdir", "truncate", "install", "mktemp",
    "split", "csplit", "xargs", "env", "printenv", "sudo", "su", "doas", "sh", "eval", "exec", "source", "curl",
    "wget", "gh", "nc", "ssh", "scp", "less", "more", "vi", "man", "ldd", "yes", "watch", "kill", "nohup", "crontab",
]  # fmt: skip


def entries() -> Iterator[tuple[str, Program]]:
    waiting = list(PROGRAMS.items())
    while waiting:
        name, entry = waiting.pop()
        yield name, entry
        waiting += ((f"{name} {sub}", each) for sub, each in entry.subcommands.items())


def test_every_entry_is_written_in_the_form_of_the_tables() -> None:
    for name, entry in entries():
        assert all(option.startswith("-") for option in option_table(entry.options)), name


def test_no_option_is_both_harmless_and_harmful() -> None:
    assert [
        (name, option) for name, entry in entries() for option in entry.harmful if option in option_table(entry.options)
    ] == []


def test_an_option_is_not_written_in_two_forms() -> None:
    for name, entry in entries():
        forms = set(entry.options.split())
        names = [each.partition("=")[0].removesuffix("[") for each in forms]
        assert [each for each in names if names.count(each) > 1] == [], name


def test_the_reason_for_a_harmful_option_continues_a_sentence() -> None:
    for name, entry in entries():
        for option, why in entry.harmful.items():
            assert why[0].islower() and not why.endswith("."), (name, option)


@pytest.mark.parametrize("name", WRITERS)
def test_a_program_that_can_write_or_run_has_harmful_options(name: str) -> None:
    assert not PROGRAMS[name].all_options_harmless


@pytest.mark.parametrize("name", NEVER)
def test_a_program_whose_purpose_is_to_change_or_run_has_no_entry(name: str) -> None:
    assert name not in PROGRAMS


@pytest.mark.parametrize(
    "name", ["git", "npm", "pnpm", "yarn", "pip", "pip3", "python3", "node", "make", "zcat", "tar"]
)
def test_a_program_that_runs_others_says_so(name: str) -> None:
    assert PROGRAMS[name].starts_others


def test_programs_with_only_harmless_options_start_no_others() -> None:
    assert [name for name, entry in entries() if entry.all_options_harmless and entry.starts_others] == []
