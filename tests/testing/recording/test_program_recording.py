"""Programs that a tool calls are recorded, and replayed without them."""

from pathlib import Path

import pytest

from haft.testing.reading import read_scenario_file

pytestmark = pytest.mark.takes_turns

SECRET = "argv-of-a-program-12"
TOOL = """read line; path=${line#path: }
sort "$path" | tr a-z A-Z
sort -o sorted.txt "$path"
sort --token argv-of-a-program-12 missing.txt || echo "failed with $?"
"""


def test_the_answers_of_programs_are_recorded_and_replayed_without_them(past):
    past.tool("sorted", TOOL)
    past.write("given.txt", "b\na\n")
    assert past.call("tb__sorted", {"path": "given.txt"}).output.startswith("A\nB\n")
    recorded = past.record(programs=["sort", "cmp"], to="one.scenario.yaml")
    (scenario,) = read_scenario_file(recorded.path)
    (stub,) = scenario.programs.stubs
    assert [(each.args, each.stdout, each.exit) for each in stub.answers] == [
        (("given.txt",), "a\nb\n", 0),
        (("-o", "sorted.txt", "given.txt"), "", 0),
        (("--token",), "", 2),
    ]
    assert stub.answers[1].writes == {"sorted.txt": "a\nb\n"}
    assert [each.program for each in scenario.expect.programs] == ["sort"] * 3
    assert {"the tool did not call cmp"} <= {*recorded.notes}
    assert [each.args for each in scenario.expect.programs][::2] == [("given.txt",), None]
    assert past.replay(recorded).passed
    past.tool("sorted", TOOL.replace('sort "$path"', 'sort -r "$path"', 1))
    assert past.replay(recorded).mismatches[0].path == "expect.output"
    assert SECRET not in Path(recorded.path).read_text()


@pytest.mark.every_user
def test_redirected_output_is_written_once(past):
    past.tool(
        "sorted",
        """read line; path=${line#path: }
sort -- "$path" >>sorted.log
sort -- missing.txt 2>>errors.log
{ sort -- "$path" && echo done; } >new.log
sort -- "$path" | tr a-z A-Z >upper.log
sort -o made.txt -- "$path"
""",
    )
    past.write("given.txt", "b\na\n")
    past.write("sorted.log", "first\n")
    past.call("tb__sorted", {"path": "given.txt"})
    recorded = past.record(programs=["sort"], to="one.scenario.yaml")
    (scenario,) = read_scenario_file(recorded.path)
    answers = scenario.programs.stubs[0].answers
    assert [each.writes for each in answers] == [{}, {}, {}, {}, {"made.txt": "a\nb\n"}]
    assert answers[0].stdout == "a\nb\n"
    files = scenario.expect.files
    assert files["sorted.log"].content.equals == "first\na\nb\n"
    assert files["upper.log"].content.equals == "A\nB\n"
    assert past.replay(recorded).passed


def test_only_tools_that_start_programs_can_miss_one(past):
    past.write("a.txt", "one\n")
    past.call("edit_file", {"path": "a.txt", "old_string": "one", "new_string": "1"})
    assert past.record(programs=["sort"], to="one.scenario.yaml", in_session=True).notes == ()
    past.call("shell", {"command": "cat a.txt"})
    session = past.record(programs=["sort"], to="two.scenario.yaml", in_session=True)
    assert session.notes == ("the tool may read files that its arguments do not name: `--files GLOB` adds files",)
    assert "the tool did not call sort" in past.record(programs=["sort"], to="three.scenario.yaml").notes
    past.call("find_files", {"pattern": "*.txt"})
    assert past.record(files=["*.txt"], to="four.scenario.yaml").notes == session.notes
