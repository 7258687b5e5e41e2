"""`haft agent run` and `resume`, and how `show`, `watch` and `undo` treat a task."""

import threading

import pytest

from haft.testing.scripted_model import ScriptedModel, call, say, unauthorized

from .test_shapes import fits

EDIT = call("edit_file", path="a.txt", old_string="one", new_string="ONE")


@pytest.fixture
def model(haft):
    with ScriptedModel() as scripted:
        haft.env |= {
            "HAFT_SUBAGENTS_ENABLED": "true",
            "HAFT_SUBAGENTS_MODEL": "openai-chat:scripted",
            "HAFT_SUBAGENTS_BASE_URL": scripted.openai_url,
            "SSL_CERT_DIR": str(haft.workspace),
        }
        yield scripted


def test_a_task_from_the_command_line(haft, model):
    prompt = model.task(EDIT, say("It says ONE now."))
    ran = haft("agent", "run", prompt, "--approve")
    assert (ran.code, ran.out) == (0, "It says ONE now.\n")
    assert 'edit_file {"path": "a.txt"' in ran.err
    assert "It says ONE now." not in ran.err  # The report is on stdout, and only there.
    assert "complete: 1 call, 1 changed file\n" in ran.err
    task = haft("log", "--tool", "task", "--json").json[0]["id"]
    shown = haft("show", task)
    assert "the conversation of the sub-agent" in shown.out
    assert "It says ONE now." in shown.out
    document = haft("show", task, "--json").json
    fits("run", document)
    assert [each["kind"] for each in document["transcript"]["entries"]] == ["prompt", "call", "result", "text"]
    assert haft("undo", task).code == 0
    assert (haft.workspace / "a.txt").read_text().startswith("one\n")
    more = haft("agent", "resume", task, model.task(say("Gladly.")), "--json")
    fits("outcome", more.json)
    assert more.json["output"] == "Gladly."


def test_without_anybody_to_ask_a_task_says_what_was_missing(haft, model):
    ran = haft("agent", "run", model.task(EDIT, say("I could not edit it.")))
    assert (ran.code, ran.out) == (0, "I could not edit it.\n")
    assert "(rejected-by-user)" in ran.err
    assert "`--approve`" in ran.err
    assert "1 call was rejected or needs approval" in ran.err
    assert "haft undo" not in ran.err  # It changed nothing.
    assert "resumed" not in ran.err


def test_what_the_sub_agent_writes_before_its_report_is_shown(haft, model):
    ran = haft(
        "agent", "run", model.task(say("I read it first.") + call("read_file", path="a.txt"), say("It says one."))
    )
    assert "“I read it first.”" in ran.err
    assert "It says one." not in ran.err
    assert ran.out == "It says one.\n"


def test_a_failure_is_told_once(haft, model):
    ran = haft("agent", "run", model.task(EDIT, unauthorized()), "--approve")
    assert ran.code == 1
    assert ran.err.count("failed: it answered 401") == 1
    assert "haft undo" in ran.err  # The edit is in the workspace.
    task = haft("log", "--tool", "task", "--json").json[0]["id"]
    watched = haft("watch", task)
    assert (watched.code, watched.err.count("failed: it answered 401")) == (1, 1)
    assert "haft undo" not in haft("agent", "run", model.task(unauthorized())).err


def test_a_task_that_cannot_start_says_what_to_set(haft, model):
    del haft.env["HAFT_SUBAGENTS_BASE_URL"]
    haft.env.pop("OPENAI_API_KEY", None)
    ran = haft("agent", "run", "x", "--model", "openai:gpt-5-mini")
    assert ran.code == 2
    assert "error: `openai:gpt-5-mini` cannot be used as a model: the variable `OPENAI_API_KEY` is not set\n" in ran.err
    assert ran.err.count("error:") == 1
    assert "haft show" not in ran.err
    haft.env["HAFT_SUBAGENTS_ENABLED"] = "false"
    off = haft("agent", "run", "x")
    assert off.code == 2
    assert "[subagents]" in off.err
    assert haft("log", "--json").json[0]["id"] in ran.err  # The refused one made no run.


def test_best_of_three_leaves_three_diffs(haft, model):
    prompt = model.task(EDIT, say("done"))
    ran = haft("agent", "run", prompt, "--try", "--times", "3", "--json")
    assert ran.code == 0, ran.err
    runs = [each["run"] for each in ran.json["runs"]]
    assert {each["changes"]["state"] for each in ran.json["runs"]} == {"held"}
    assert (haft.workspace / "a.txt").read_text().startswith("one\n")
    assert all("+ONE" in haft("diff", run).out for run in runs)
    assert haft("changes", "apply", runs[1]).code == 0
    assert (haft.workspace / "a.txt").read_text().startswith("ONE\n")
    second = haft("changes", "apply", runs[0])
    assert second.code == 5, second.err
    assert "a.txt" in second.err
    assert "--merge" in second.err
    assert runs[0] in {each["run"] for each in haft("changes", "list", "--json").json}  # The loser's stay held.


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["agent", "run", "x", "--times", "2"], "`--times` needs `--try`"),
        (["agent", "run", "x", "--agent", "wrok"], "did you mean `work`?"),
        (["agent", "resume", "r_000000000000"], "r_000000000000"),
    ],
)
def test_bad_words_are_refused_with_a_hint(haft, model, words, says):
    ran = haft(*words)
    assert ran.code == 2, ran
    assert says in ran.err
    assert model.requests == []


def test_a_task_is_followed_as_a_tree(haft, model, ended):
    (haft.workspace / "haft.toml").write_text(
        '[subagents.types.boss]\ndescription = "delegates"\ntools = ["task", "read_file"]\n'
    )
    assert haft("trust", "--yes").code == 0
    goes_on = threading.Event()
    below = model.task(call("read_file", path="a.txt"), say("read it"))
    prompt = model.task(call("task", prompt=below, agent="boss"), say("all done").until(goes_on))
    begun = ended(haft.begin("agent", "run", prompt, "--agent", "boss"))
    model.wait_for(2, prompt)
    task = haft("log", "--tool", "task", "--status", "in-progress", "--json").json[0]["id"]
    watching = ended(haft.begin("watch", task))
    goes_on.set()
    out, err = watching.communicate()
    assert b"all done" in out
    assert b"\n  read_file " in err  # indented: a call of the task inside the task
    assert begun.wait() == 0


def test_the_prompt_of_a_restricted_type_offers_no_grants_and_no_lasting_answers(haft, model, terminal):
    shell = call("shell", command="touch made")
    screen = terminal("agent", "run", model.task(shell, say("done")))
    screen.until("[y/N, t(hread), e(dit), m(essage)]")
    screen.type("w\n")
    screen.until("gets no grants")
    screen.until("Approve shell?")
    screen.type("a\n")
    screen.until("end with the task")
    screen.until("Approve shell?")
    screen.type("t\n")
    assert screen.end() == 0
    assert (haft.workspace / "made").exists()
    assert "remembered" not in haft("permissions", "list", "--json").out
