"""Each row of the table of commands."""

from __future__ import annotations

import json
import re
import shutil
from datetime import UTC, datetime, timedelta

import pytest

from cdd import __version__, timestamps
from cdd.cli import main

COMMANDS = ["init", "start", "recite", "log", "archive", "view", "agents", "delete", "version", "pack"]
FILES = ["current_state.md", "decisions.md", "metadata.json", "plan.md", "spec.md"]


def test_the_commands_are_these_ten():
    assert sorted(main.commands) == sorted(COMMANDS)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_help_has_an_example_and_explains_every_parameter(cdd, command):
    told = cdd.done(command, "--help")
    assert re.search(rf"Examples?:\n(?:.*\n)*? +.*cdd {command}", told)
    assert all(getattr(one, "help", "") for one in main.commands[command].params)


def test_init_makes_the_folders_the_documents_and_a_first_track(cdd):
    cdd.done("init")
    context = cdd.path / ".context"
    assert sorted(path.name for path in context.iterdir()) == [
        "archive", "domain.md", "product.md", "specs", "tech-stack.md", "tracks",
    ]  # fmt: skip
    assert sorted(path.name for path in cdd.track("setup").iterdir()) == FILES


def test_init_again_changes_nothing_and_says_so(cdd):
    cdd.done("init")
    cdd.write(".context/product.md", "mine")
    before = cdd.everything()
    assert "nothing was changed" in cdd.done("init")
    assert cdd.everything() == before


def test_init_brings_back_what_is_missing_and_leaves_the_rest(cdd):
    cdd.done("init")
    cdd.write(".context/tracks/setup/plan.md", "mine")
    (cdd.path / ".context/domain.md").unlink()
    shutil.rmtree(cdd.path / ".context/specs")
    assert cdd.done("init") == "made .context/specs/\nmade .context/domain.md\n"
    assert cdd.track("setup", "plan.md").read_text() == "mine"


def test_init_does_not_bring_back_a_setup_that_was_archived(cdd):
    cdd.done("init")
    cdd.track("setup", "plan.md").write_text("- [x] done")
    cdd.done("archive", "setup")
    cdd.done("init")
    assert not cdd.track("setup").exists()


def test_start_makes_the_five_files_with_the_moment_of_the_start(cdd):
    cdd.done("init")
    assert "add-login" in cdd.done("start", "add-login")
    assert sorted(path.name for path in cdd.track("add-login").iterdir()) == FILES
    metadata = json.loads(cdd.track("add-login", "metadata.json").read_text())
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", metadata["started_at"])
    assert abs(timestamps.from_rfc3339(metadata["started_at"]) - datetime.now(UTC)) < timedelta(hours=1)
    assert "__NAME__" not in "".join(path.read_text() for path in cdd.track("add-login").iterdir())


def test_start_fails_if_the_track_exists(cdd):
    cdd.done("start", "a")
    assert "already an active track 'a'" in cdd.refused("start", "a")


def test_start_says_that_an_archived_track_has_the_name_and_goes_on(cdd):
    cdd.done("start", "a")
    cdd.track("a", "plan.md").write_text("")
    cdd.done("archive", "a")
    result = cdd("start", "a")
    assert result.exit_code == 0
    assert re.search(r"archived: \.context/archive/\d{14}_a\n", result.stderr)
    assert cdd.track("a", "plan.md").exists()


def test_start_without_init_makes_the_folder_and_says_so(cdd):
    result = cdd("start", "a")
    assert result.exit_code == 0
    assert "cdd init" in result.stderr


def test_a_fresh_track_has_something_to_do(cdd):
    cdd.done("init")
    for name in ("setup", "a"):
        if name == "a":
            cdd.done("start", "a")
        assert "[ ]" in cdd.done("recite", name)


def test_recite_prints_the_first_section_with_an_open_task_and_what_to_do(cdd):
    cdd.done("start", "a")
    plan = "# P\n\n## One\n- [x] first\n\n## Two\n- [x] second\n- [ ] third\n\n## Three\n- [ ] fourth\n"
    cdd.track("a", "plan.md").write_text(plan)
    told = cdd.done("recite", "a")
    assert told.startswith("# P\n## Two\n- [x] second\n- [ ] third\n\nGo on with track 'a'")
    assert "line 8 of plan.md (third)" in told
    assert not {"One", "Three", "fourth"} & set(re.findall(r"\w+", told))


def test_recite_without_a_name_takes_the_only_active_track(cdd):
    cdd.done("start", "a")
    assert cdd.done("recite") == cdd.done("recite", "a")


def test_recite_without_a_name_lists_the_tracks_where_there_are_several(cdd):
    cdd.done("start", "b")
    cdd.done("start", "a")
    assert "2 active tracks: a, b." in cdd.refused("recite")


def test_recite_says_when_there_is_none(cdd):
    assert "cdd init" in cdd.refused("recite")
    cdd.done("init")
    cdd.done("delete", "setup")
    assert "no active track" in cdd.refused("recite")


@pytest.mark.parametrize(
    ("plan", "told"), [("## A\n- [x] a\n", "cdd archive a"), ("## A\ntext\n", "has no tasks"), (None, "has no tasks")]
)
def test_recite_says_what_to_do_when_no_task_is_open(cdd, plan, told):
    cdd.done("start", "a")
    cdd.track("a", "plan.md").unlink()
    if plan is not None:
        cdd.track("a", "plan.md").write_text(plan)
    assert told in cdd.done("recite", "a")


def test_log_appends_the_message_with_its_moment(cdd):
    cdd.done("start", "a")
    before = cdd.track("a", "decisions.md").read_text()
    cdd.done("log", "a", "it's «done»")
    after = cdd.track("a", "decisions.md").read_text()
    assert after.startswith(before)
    assert re.fullmatch(r"\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\] it's «done»\n", after.removeprefix(before))


def test_log_takes_the_message_from_standard_input_when_it_is_absent(cdd):
    cdd.done("start", "a")
    cdd.done("log", "a", given="one\r\n\n[2020-01-01 00:00:00] two\n\n")
    assert cdd.track("a", "decisions.md").read_text().endswith("] one\n\n    [2020-01-01 00:00:00] two\n")


def test_log_without_a_name_takes_the_only_active_track(cdd):
    cdd.done("start", "a")
    assert cdd.done("log", given="hi\n") == "Logged to .context/tracks/a/decisions.md\n"
    assert cdd.track("a", "decisions.md").read_text().endswith("] hi\n")


def test_log_without_a_name_says_which_tracks_there_are(cdd):
    assert "cdd init" in cdd.refused("log", given="hi")
    cdd.done("start", "b")
    cdd.done("start", "a")
    assert "2 active tracks: a, b." in cdd.refused("log", given="hi")
    cdd.done("delete", "a")
    cdd.done("delete", "b")
    assert "There is no active track." in cdd.refused("log", given="hi")


def test_log_takes_a_message_that_looks_like_an_option_after_two_dashes(cdd):
    cdd.done("start", "a")
    cdd.done("log", "a", "--", "--raw is gone")
    assert cdd.track("a", "decisions.md").read_text().endswith("] --raw is gone\n")


@pytest.mark.parametrize("words", [["", "x"], [" \n\t", "x"], ["", ""], ["\udcff", ""]])
def test_log_refuses_a_message_of_nothing_and_one_that_is_no_text(cdd, words):
    message, given = words
    cdd.done("start", "a")
    cdd.refused("log", "a", message, given=given)


@pytest.mark.parametrize("given", [b"", b"\n \n", b"\xff\xfe", b"x" * (1024 * 1024 + 1)])
def test_log_refuses_such_a_message_from_standard_input_too(cdd, given):
    cdd.done("start", "a")
    cdd.refused("log", "a", given=given)


def test_archive_refuses_while_a_task_is_open_and_names_it(cdd):
    cdd.done("start", "a")
    cdd.track("a", "plan.md").write_text("- [x] one\n- [ ] two\n")
    told = cdd.refused("archive", "a")
    assert "line 2: two" in told and "one" not in told.replace("done", "")


def test_archive_moves_the_track_records_the_moment_and_says_how_long_it_took(cdd, monkeypatch):
    start = datetime(2026, 3, 1, 9, 30, tzinfo=UTC)
    monkeypatch.setattr(timestamps, "now", lambda: start)
    cdd.done("start", "a")
    cdd.track("a", "plan.md").write_text("- [x] one\n")
    metadata = json.loads(cdd.track("a", "metadata.json").read_text())
    cdd.track("a", "metadata.json").write_text(json.dumps({**metadata, "ours": "ä"}))
    monkeypatch.setattr(timestamps, "now", lambda: start + timedelta(days=1, hours=2, minutes=5))
    assert cdd.done("archive", "a") == "Archived as .context/archive/20260302113500_a after 1 day 2 hours.\n"
    assert not cdd.track("a").exists()
    kept = json.loads((cdd.path / ".context/archive/20260302113500_a/metadata.json").read_text())
    assert kept == {
        "name": "a",
        "started_at": "2026-03-01T09:30:00Z",
        "ours": "ä",
        "archived_at": "2026-03-02T11:35:00Z",
    }


def test_archive_twice_in_one_second_keeps_both(cdd, monkeypatch):
    monkeypatch.setattr(timestamps, "now", lambda: datetime(2026, 3, 1, 23, 59, 59, tzinfo=UTC))
    for _time in range(2):
        cdd.done("start", "a")
        cdd.track("a", "plan.md").write_text("")
        cdd.done("archive", "a")
    assert sorted(path.name for path in (cdd.path / ".context/archive").iterdir()) == [
        "20260301235959_a",
        "20260302000000_a",
    ]


def test_archive_refuses_metadata_that_it_would_destroy(cdd):
    cdd.done("start", "a")
    cdd.track("a", "plan.md").write_text("")
    cdd.track("a", "metadata.json").write_text('{"started_at":')
    assert "metadata.json" in cdd.refused("archive", "a")


def test_archive_does_without_metadata_where_there_is_none(cdd):
    cdd.done("start", "a")
    cdd.track("a", "plan.md").write_text("")
    cdd.track("a", "metadata.json").unlink()
    assert "after an unknown time" in cdd.done("archive", "a")


def test_delete_removes_an_active_track_without_asking_where_nobody_is(cdd):
    cdd.done("init")
    before = cdd.everything()
    cdd.done("start", "a")
    cdd.done("delete", "a")
    assert cdd.everything() == before


def test_delete_leaves_archived_tracks_alone(cdd):
    cdd.done("start", "a")
    cdd.track("a", "plan.md").write_text("")
    cdd.done("archive", "a")
    assert "--archived" in cdd.refused("delete", "a")


@pytest.mark.parametrize("command", ["recite", "log", "archive", "view", "delete"])
def test_a_track_that_is_not_there_is_refused_with_the_near_miss(cdd, command):
    cdd.done("start", "add-login")
    assert "did you mean 'add-login'?" in cdd.refused(command, "add-logn", *(["x"] if command == "log" else []))


def test_version_prints_the_version(cdd):
    assert cdd.done("version") == __version__ + "\n"


@pytest.mark.parametrize("command", ["start", "archive", "delete", "pack"])
def test_a_missing_argument_is_wrong_usage(cdd, command):
    assert cdd(command).exit_code == 2
    assert cdd.everything() == {}
