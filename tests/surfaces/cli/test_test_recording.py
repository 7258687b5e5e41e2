"""`haft tools test --record RUN`, as people type it."""


def last_run(haft):
    return haft("log", "--json").json[0]["id"]


def test_a_run_is_recorded_and_its_scenario_passes(haft):
    haft("tools", "use", "edit_file", "--path", "a.txt", "--old_string", "two", "--new_string", "2", "--approve")
    said = haft("tools", "test", "--record", last_run(haft)[:14], "--to", "edit.scenario.yaml")
    assert (said.code, said.out) == (0, f"{haft.workspace}/edit.scenario.yaml\n")
    assert "note: the tool may read files that its arguments do not name" in said.err
    assert "old_string: two" in (haft.workspace / "edit.scenario.yaml").read_text()
    replay = haft.start("tools", "test", "edit.scenario.yaml")  # Its worker processes need a process from nothing.
    replay.communicate()
    assert replay.returncode == 0


def test_what_cannot_be_recorded_is_said_with_the_next_step(haft):
    haft("tools", "use", "shell", "--command", "cat $(echo a*.txt)", "--approve")
    refused = haft("tools", "test", "--record", last_run(haft))
    assert (refused.code, refused.out) == (1, "")
    assert "a replay of it did something else" in refused.err
    assert "`--files GLOB` adds files" in refused.err
    added = haft("tools", "test", "--record", last_run(haft), "--files", "a.*", "--json").json
    assert (added["tool"], added["run"]) == ("shell", last_run(haft))
    assert haft("tools", "test", "--files", "a.*").code == 2
    assert haft("tools", "test", "--record", "r_nosuchrun").code == 2
