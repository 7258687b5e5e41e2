"""`haft store` and what `haft doctor` says of it, with the real program."""

import random
import time

from .conftest import short

TEXT = "a line that is like the others\n" * 5_000


def shell(haft, command):
    said = haft("tools", "use", "shell", "--command", command, "--approve", "--json")
    assert said.code == 0, said.err
    return said.json["run"]


def test_where_nothing_is_kept_nothing_is_made(haft):
    for words in (["store", "show"], ["store", "prune"], ["store", "prune", "--dry-run"]):
        said = haft(*words)
        assert (said.code, said.out, said.err) == (0, "", "nothing is kept yet\n")
        assert haft(*words, "--json").json is None
    assert not haft.home.exists()


def test_show_says_how_much_is_used_and_what_can_be_undone(haft):
    (haft.workspace / "big").write_text(TEXT)
    shell(haft, "rm big")
    said = haft("store", "show")
    assert said.code == 0
    assert "of 10 GB used (0 %), kept for 90 days" in said.out
    assert "1 run can be undone, the oldest of " in said.out
    assert str(haft.workspace) in said.out
    found = haft("store", "show", "--json").json
    assert found["used"] == found["parts"]["originals"] + found["parts"]["contents"] > 100_000
    assert (found["undoable"], found["budget"], found["held"]) == (1, 10_000_000_000, [])
    assert found["oldest"] <= time.time()
    (one,) = found["workspaces"]
    assert (one["workspace"], one["undoable"]) == (str(haft.workspace), 1)


def test_prune_says_first_and_then_does(haft):
    for number in range(3):
        (haft.workspace / f"f{number}").write_bytes(random.Random(number).randbytes(700_000))
    runs = [shell(haft, f"rm f{number}") for number in range(3)]
    small = {"HAFT_CHANGES_STORE_BYTES": "1500000"}
    told = haft("store", "prune", "--dry-run", **small)
    assert f"{short(runs[0])} of " in told.out and "could no longer be undone: pruned on " in told.out
    assert "at most 7" in told.out and "would be freed" in told.out
    assert haft("store", "show", "--json").json["undoable"] == 3
    as_json = haft("store", "prune", "--dry-run", "--json", **small).json
    assert as_json["dryRun"] and [each["run"] for each in as_json["runs"]] == runs[:1]
    done = haft("store", "prune", "--json", **small).json
    assert [each["run"] for each in done["runs"]] == runs[:1]
    assert "over the budget of 1.5 MB" in done["runs"][0]["reason"]
    assert done["after"] <= 1_500_000 < done["used"]
    again = haft("store", "prune", **small)
    assert "every run that could be undone still can" in again.out


def test_a_workspace_cannot_have_the_store_pruned(haft):
    (haft.workspace / "f").write_bytes(random.Random(1).randbytes(3_000_000))
    shell(haft, "rm f")
    (haft.workspace / "haft.toml").write_text("[changes]\nstore_bytes = 1_000_000\n")
    assert haft("store", "prune", "--json").json["runs"] == []


def test_what_waits_is_shown_with_what_to_do(haft):
    said = haft(
        "tools", "use", "shell", "--command", "mkdir -p .git/hooks; echo x > .git/hooks/pre-push", "--approve", "--json"
    )
    run = said.json["run"]
    shown = haft("store", "show").out
    assert f"{short(run)}: " in shown and f"`haft changes apply {short(run)}` or `drop`" in shown
    (held,) = haft("store", "prune", "--json").json["held"]
    assert held["run"] == run and held["since"] <= time.time()
    checks = {check["check"]: check for check in haft("doctor", "--json").json}
    assert checks["held changes"]["state"] == "warn"
    assert f"haft changes apply {run}" in checks["held changes"]["hint"]


def test_the_doctor_says_how_calls_are_covered(haft):
    shell(haft, "true > f")
    checks = {check["check"]: check for check in haft("doctor", "--json").json}
    assert checks["store"]["state"] == "ok" and "of 10 GB used" in checks["store"]["detail"]
    assert "replaced files are" in checks["change tracking"]["detail"]
    forced = {check["check"]: check for check in haft("doctor", "--json", HAFT_CHANGES_ENGINE="snapshot").json}
    assert forced["change tracking"]["detail"].startswith("by snapshots, as `changes.engine` says")
    off = {check["check"]: check for check in haft("doctor", "--json", HAFT_CHANGES_ENGINE="off").json}
    assert off["change tracking"]["state"] == "warn" and "nothing can be undone" in off["change tracking"]["detail"]
