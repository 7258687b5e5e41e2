"""`log`, `show`, `output`, `watch` and `cancel`, from other processes than the one that runs."""

import asyncio
import json
import signal

import pytest

from haft import Context, ToolService, tool
from haft.contracts import BadUsage

from .conftest import short, until
from .test_shapes import fits


def use(haft, *words):
    return haft("tools", "use", *words).json["run"]


def test_reading_without_state_prints_nothing_and_makes_nothing(haft):
    assert haft("log", "--json").json == []
    assert haft("audit", "list", "--json").json == []
    assert haft("audit", "verify").code == 0
    assert haft("cancel", "--all", "--json").json == []
    assert haft("audit", "export").out == ""
    assert not haft.home.exists()


def test_log_is_newest_first_and_can_be_narrowed(haft):
    first = use(haft, "read_file", "--path", "a.txt")
    second = use(haft, "read_file", "--path", "missing.txt", "--thread", "T-x")
    third = use(haft, "write_file", "--path", "new.txt", "--content", "x", "--approve")

    def found(*words):
        return [run["id"] for run in haft("log", "--json", *words).json]

    assert found() == [third, second, first]
    assert found("--limit", "1") == [third]
    assert found("--tool", "read_file") == [second, first]
    assert found("--status", "error") == [second]
    assert found("--thread", "T-x") == [second]
    assert found("--who", "nobody-of-this-name") == []
    assert found("--path", "new.txt") == [third]
    assert found("--since", "1h") == [third, second, first]
    assert found("--since", "2100-01-01") == []
    assert found("-w", str(haft.home)) == []
    lines = haft("log").out.splitlines()
    assert [line.split()[0] for line in lines] == [short(third), short(second), short(first)]
    assert haft("log", "--path", "new.txt", "--tool", "shell").err == "no runs\n"


COMMAND = "echo 'a line of some length' > notes.txt; sort notes.txt; echo done"


@pytest.mark.parametrize(("columns", "least"), [(80, 20), (140, 60)])
def test_the_log_fits_the_terminal_with_arguments_and_says_who(haft, terminal, columns, least):
    run = use(haft, "shell", "--command", COMMAND, "--approve")
    haft("undo", run)
    here = terminal("log", COLUMNS=str(columns))
    assert here.end() == 0
    undo, call = here.seen.splitlines()
    who = haft("log", "--json").json[0]["who"]
    for line in (undo, call):
        assert len(line) <= columns and who in line.split()
    assert call.startswith(f"{short(run)}  ") and "  done, undone  " in call
    assert len(call.partition("{")[2]) >= least and '{"command": "echo \'a line' in call
    assert f'{{"runs": ["{short(run)}"]}}' in undo, "a name in the arguments is short too"
    assert (" ms  " in call) == (columns > 100) or " s  " in call, "where there is room it says how long"


def test_in_a_pipe_the_log_has_the_day_and_every_argument(haft):
    run = use(haft, "shell", "--command", COMMAND, "--approve")
    (line,) = haft("log").out.splitlines()
    assert line.startswith(f"{short(run)}  20") and line.endswith('echo done"}')


def test_short_names_are_taken_everywhere_and_json_has_whole_ones(haft):
    run = use(haft, "write_file", "--path", "b", "--content", "x", "--approve")
    assert haft("diff", short(run), "--json").json["run"] == run
    assert haft("output", short(run), "--json").json["run"] == run
    assert haft("log", "--json").json[0]["id"] == run
    assert haft("undo", short(run), "--json").json["runs"] == [run]
    assert haft("redo", short(run)).out.startswith(f"{short(run)} redone by r_")
    assert haft("log", "--parent", short(run), "--json").json == []
    assert haft("cancel", short(run), "--json").code == 0
    held = use(haft, "write_file", "--path", "c", "--content", "x", "--try")
    assert haft("changes", "apply", short(held)).out == f"{short(held)}: 1 path applied\n"
    error = haft("undo", haft("log", "--limit", "1", "--json").json[0]["id"], "--json")
    assert held in error.json["error"]["message"] + str(error.json["error"]["hint"])
    assert short(held) in error.err and held not in error.err


def test_the_beginning_of_a_name_is_enough(haft):
    run = use(haft, "read_file", "--path", "a.txt")
    said = haft("show", run[:-2])
    assert said.code == 0
    for word in (run, "read_file done", "queued", "done", "decision: allow by rule", "limits: ", "sandbox: ", "a.txt"):
        assert word in said.out
    assert "there is no run" in haft("show", "r_").err


def test_output_is_raw_and_can_be_searched_and_cut(haft):
    run = use(haft, "shell", "--command", r"printf 'a\377b\nsecond\nthird'", "--approve")
    assert haft("output", run, "--lines", "2:").out == "second\nthird"
    assert haft("output", run, "--lines", "2").out == "second\n"
    assert haft("output", run, "--lines", ":1").out == "a\ufffdb\n"
    assert haft("output", run, "--grep", "ir").out == "third"
    process = haft.begin("output", run)
    assert process.communicate(timeout=30)[0] == b"a\xffb\nsecond\nthird"
    facts = haft("output", run, "--json").json
    assert facts == {"run": run, "output": "a\ufffdb\nsecond\nthird", "bytes": 16, "skipped": 0, "truncated": False}


def test_output_of_a_long_run_has_head_and_tail_and_says_what_is_missing(haft):
    config = {"HAFT_LIMITS_MAX_KEPT_OUTPUT_BYTES": "100000"}
    command = "echo head; yes | head -c 3000000; echo tail"
    run = haft("tools", "use", "shell", "--command", command, "--approve", **config).json["run"]
    said = haft("output", run)
    assert said.out.startswith("head\ny\n") and said.out.endswith("y\ntail\n")
    missing = int(said.err.split()[0].replace("_", ""))
    assert len(said.out) + missing == 3_000_010
    assert "bytes between head and tail were not kept" in said.err
    facts = haft("output", run, "--json").json
    assert facts["skipped"] == missing and facts["bytes"] == 3_000_010


def test_another_process_watches_and_cancels(haft, ended):
    runner = ended(haft.begin("tools", "use", "shell", "--command", "echo on; sleep 300", "--approve"))
    run = haft.open_run()["id"]
    watcher = ended(haft.begin("watch", run))
    assert watcher.stdout.readline() == b"on\n"
    said = haft("cancel", run)
    assert (said.code, said.out) == (0, f"{short(run)} shell cancelled\n")
    _out, err = watcher.communicate(timeout=30)
    assert watcher.returncode == 130
    assert f"{short(run)} in-progress" in err.decode() and f"{short(run)} cancelled" in err.decode()
    assert runner.wait(timeout=30) == 130
    again = haft("cancel", run, "--json")
    assert again.code == 0
    assert again.json == [{"run": run, "tool": "shell", "status": "cancelled", "ended": True, "alreadyEnded": True}]


def test_cancel_all_ends_everything(haft, ended):
    processes = [ended(haft.begin("tools", "use", "shell", "--command", "sleep 300", "--approve")) for _ in range(2)]
    until(lambda: len(haft("log", "--status", "in-progress", "--json").json) == 2)
    answers = haft("cancel", "--all", "--json").json
    assert [answer["status"] for answer in answers] == ["cancelled", "cancelled"]
    assert [process.wait(timeout=30) for process in processes] == [130, 130]
    assert haft("cancel", "--all").err == "no run is in progress\n"


def test_watch_of_an_ended_run_tells_it_all(haft):
    run = use(haft, "shell", "--command", "echo a; exit 2", "--approve")
    said = haft("watch", run)
    assert (said.code, said.out) == (1, "a\n")
    events = [json.loads(line) for line in haft("watch", run, "--json").out.splitlines()]
    assert events[-1]["type"] == "outcome" and events[-1]["outcome"]["exitCode"] == 2
    silent = use(haft, "read_file", "--path", "a.txt")
    assert haft("watch", silent, "-q").out == "one\ntwo\nthree\n"


def test_a_host_that_was_killed_is_cleaned_up_by_who_looks(haft, ended):
    process = ended(haft.begin("tools", "use", "shell", "--command", "sleep 300", "--approve"))
    run = haft.open_run()["id"]
    watcher = ended(haft.begin("watch", run))
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert watcher.wait(timeout=30) == 1, "who follows it notices"
    kept = haft("show", run, "--json").json
    assert kept["status"] == "error" and kept["outcome"]["error"]["code"] == "interrupted"
    assert haft("audit", "verify").code == 0


def test_ctrl_c_ends_watching_and_not_the_run(haft, ended):
    ended(haft.begin("tools", "use", "shell", "--command", "echo on; sleep 300", "--approve"))
    run = haft.open_run()["id"]
    watcher = ended(haft.start("watch", run, "-q"))
    assert watcher.stdout.readline() == b"on\n"
    watcher.send_signal(signal.SIGINT)
    assert watcher.communicate(timeout=30) == (b"", b"")
    assert watcher.returncode == 130
    assert haft("show", run, "--json").json["status"] == "in-progress"
    assert haft("cancel", run).code == 0


def test_a_state_home_that_cannot_be_one_is_said(haft):
    haft.home.write_text("")
    said = haft("log")
    assert said.code == 2 and "is not a directory" in said.err


def test_what_a_call_met_and_did_not_fail_for_is_noted_with_the_grant_and_kept(haft):
    command = "touch made; echo 'curl: (6) Could not resolve host: api.example' >&2"
    said = haft("tools", "use", "shell", "--command", command, "--approve", "--json")
    (note,) = said.json["notes"]
    assert said.json["status"] == "done"
    assert "Could not resolve host: api.example" in note and "`--network=HOST`" in note
    assert f"note: {note}" in said.err
    run = said.json["run"]
    assert f"note: {note}" in haft("show", run).out
    assert haft("show", run, "--json").json["outcome"]["notes"] == [note]
    assert not haft("tools", "use", "shell", "--command", command, "--approve", "--json", "-q").err
    with_network = haft("tools", "use", "shell", "--command", command, "--approve", "--network", "--json")
    assert with_network.json["notes"] == []


def test_a_call_that_never_ran_is_not_said_to_have_had_the_network(haft):
    confinement = haft("tools", "use", "shell", "--command", "touch x", "--json").json["sandbox"]
    assert (confinement["profile"], confinement["network"], confinement["reason"]) == ("none", False, "it has not run")


def test_a_call_that_runs_says_that_its_changes_are_not_known_yet(haft, ended):
    ended(haft.begin("tools", "use", "shell", "--command", "echo x > made; sleep 300", "--approve"))
    run = haft.open_run()["id"]
    assert "changes: known when the call has ended\n" in haft("show", run).out
    changes = haft("show", run, "--json").json["outcome"]["changes"]
    assert (changes["complete"], changes["state"], changes["files"]) == (False, "none", [])
    assert changes["reason"] == "the call has not ended: what it changes is known at its end"
    haft("cancel", run)
    assert "not ended" not in haft("show", run).out


def test_another_process_sees_what_a_call_waits_for(haft, ended):
    ended(haft.ask("tools", "use", "shell", "--command", "touch made", "--wait", "100")[0])
    (waiting,) = haft("inbox", "--json").json
    assert "changes: none so far\n" in haft("show", waiting["run"]).out
    watcher = ended(haft.begin("watch", waiting["run"], "--json"))
    blocked = until(lambda: (event := json.loads(watcher.stdout.readline()))["status"] == "blocked-on-user" and event)
    fits("event", blocked)
    assert (blocked["request"], blocked["reason"]) == (waiting["id"], waiting["reason"])
    assert blocked["toAllow"] == waiting["toAllow"]
    haft("reject", blocked["request"])


def test_a_beginning_that_several_runs_have_is_an_error_that_names_them(haft):
    runs = [use(haft, "read_file", "--path", "a.txt") for _ in range(2)]
    for words in (["show"], ["output"], ["diff"], ["undo"], ["watch"], ["cancel"], ["log", "--parent"]):
        said = haft(*words, "r_1a")
        assert said.code == 2 and "more than one run begins with `r_1a`" in said.err
        assert all(run[:10] in said.err for run in runs)
    for _ in range(5):
        runs.append(use(haft, "list_directory"))
    said = haft("show", "r_1a").err
    assert said.index(runs[-1][:13]) < said.index(runs[-2][:13]) and runs[0][:13] not in said
    assert said.count("(list_directory, 20") == 5
    assert haft("show", runs[0][:-1], "--json").json["id"] == runs[0]


def test_a_run_is_found_without_the_first_letters_that_all_names_have(haft):
    run = use(haft, "write_file", "--path", "b.txt", "--content", "b", "--approve")
    assert "+b" in haft("diff", run.removeprefix("r_")[:11]).out
    assert haft("undo", run.removeprefix("r_")).code == 0
    assert "no run called `r_00000`" in haft("show", "00000").err


def test_the_log_says_that_it_is_of_every_workspace_and_how_it_would_be_of_one(haft, tmp_path):
    use(haft, "read_file", "--path", "a.txt")
    assert haft("log").err == ""
    (tmp_path / "other" / "below").mkdir(parents=True)
    (tmp_path / "other" / "haft.toml").touch()
    other = ["-w", str(tmp_path / "other")]
    use(haft, "list_directory", *other)
    assert haft("log").err == "runs of every workspace; `-w .` shows only those of this one\n"
    assert haft("log", "-w", ".").err == haft("log", "-q").err == haft("log", "--json").err == ""
    assert "list_directory" not in haft("log", "-w", ".").out
    assert "`-w ..` shows" in haft("log", cwd=tmp_path / "other" / "below").err


def test_the_log_says_where_it_stops(haft):
    async def many():
        async with ToolService.open(haft.workspace, home=haft.home) as service:
            for _ in range(51):
                await service.call("read_file", {"path": "a.txt"})

    asyncio.run(many())
    said = haft("log")
    assert len(said.out.splitlines()) == 50 and said.err == "the 50 newest; `--limit N` shows more\n"
    assert haft("log", "--limit", "51").err == haft("log", "-q").err == haft("log", "--json").err == ""


def test_a_run_names_the_calls_that_it_made_and_is_undone_with_them(haft):
    @tool
    async def both(context: Context) -> None:
        """Write two files."""
        for name in ("one", "two"):
            await context.call("write_file", {"path": name, "content": name})

    async def made():
        async with ToolService.open(haft.workspace, home=haft.home, tools=[both], approver=lambda _: True) as service:
            return (await service.call("both")).run_id

    run = asyncio.run(made())
    children = haft("log", "--json", "--parent", run).json
    assert [child["tool"] for child in children] == ["write_file"] * 2
    shown = haft("show", run, "--json").json
    assert fits("run", shown) is None
    assert shown["children"] == [{key: child[key] for key in ("id", "tool", "status")} for child in children[::-1]]
    said = haft("show", run).out
    assert all(f"{short(child['id'])}" in said for child in children) and "calls that it made:" in said
    assert {event["became"] for event in map(json.loads, haft("watch", run, "--json").out.splitlines()) if
            event["type"] == "child"} == {"queued", "done"}  # fmt: skip
    watched = haft("watch", run).err
    assert all(f"{short(child['id'])} write_file done\n" in watched for child in children)
    first, second = (f"`haft diff {short(child['id'])}`" for child in children[::-1])
    told = f"the calls that it made have their own changes: {first}, {second}\n"
    assert haft("diff", run).err.endswith(told)
    with pytest.raises(BadUsage) as raised, ToolService.open_sync(haft.workspace, home=haft.home) as service:
        service.diff(run)
    assert raised.value.hint is not None and f"`haft diff {children[0]['id']}`" in raised.value.hint
    assert haft("undo", run).code == 0
    assert not (haft.workspace / "one").exists() and not (haft.workspace / "two").exists()


def test_runs_of_a_time_as_json_lines(haft):
    for name in ("one", "two", "three"):
        haft("tools", "use", "write_file", "--path", name, "--content", "x", "--approve")
    lines = [json.loads(line) for line in haft("log", "--json-lines").out.splitlines()]
    assert lines == haft("log", "--json").json
    assert [line["arguments"]["path"] for line in lines] == ["three", "two", "one"]
    earlier = haft("log", "--json-lines", "--until", lines[0]["startedAt"]).out.splitlines()
    assert [json.loads(line)["id"] for line in earlier] == [line["id"] for line in lines[1:]]
    since = haft("log", "--json", "--since", lines[1]["startedAt"]).json
    assert [line["id"] for line in since] == [line["id"] for line in lines[:2]]
    assert haft("log", "--json-lines", "--limit", "1").out.splitlines() == [json.dumps(lines[0], ensure_ascii=False)]
