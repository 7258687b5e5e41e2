import pytest

from haft.contracts import Listing
from haft.registry import search


@pytest.fixture
def listings(make_tool):
    def parameters(**described):
        return {"type": "object", "properties": {name: {"description": text} for name, text in described.items()}}

    tools = [
        make_tool("read_file", description="Read a file.", schema=parameters(path="where it lies")),
        make_tool("write_file", description="Write a file.", schema=parameters(path="", content="the new text")),
        make_tool("shell", description="Run a command with bash.", schema=parameters(command="a line")),
        make_tool("sendMail", description="Deliver a message.", schema=parameters(recipient="who gets the file")),
    ]
    return [Listing(tool.spec) for tool in tools]


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("read_file", ["read_file"]),
        ("file", ["read_file", "write_file"]),
        ("where is the file", ["read_file", "write_file"]),
        ("mail", ["sendMail"]),
        ("bash", ["shell"]),
        ("content", ["write_file"]),
        ("shel", ["shell"]),
        ("commnad", ["shell"]),
        ("files", ["read_file", "write_file"]),
        ("WRITE", ["write_file"]),
        ("message recipient", ["sendMail"]),
        ("nothing like it", []),
        ("", []),
        ("!!!", []),
    ],
)
def test_words_find_tools_best_first(listings, query, found):
    assert [listing.spec.name for listing in search(listings, query)] == found


def test_the_order_does_not_depend_on_the_order_of_the_table(listings):
    assert search(listings, "file path") == search(reversed(listings), "file path")


def test_a_limit_cuts_the_tail(listings):
    assert len(search(listings, "file", limit=1)) == 1


def test_what_fits_much_worse_than_the_best_is_not_shown(make_tool):
    tools = [make_tool("deploy", description="Build and deploy."), make_tool("x", description="a\nb\nNot to deploy.")]
    assert [one.spec.name for one in search([Listing(tool.spec) for tool in tools], "deploy")] == ["deploy"]


def test_a_word_that_most_tools_have_says_little(make_tool):
    tools = [make_tool(f"run_{n}", description="Run the project.") for n in range(20)]
    tools.append(make_tool("suite", description="Run the tests of the project."))
    assert search([Listing(tool.spec) for tool in tools], "run tests")[0].spec.name == "suite"
