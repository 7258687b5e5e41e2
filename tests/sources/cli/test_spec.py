"""Files that describe a program: what they may say, and that what is wrong is named with its place."""

import pytest

from haft.contracts import BadConfig
from haft.sources.cli.spec import LARGEST, read_spec

HEAD = 'program = "tool"\n'
COMMAND = HEAD + '[[commands]]\nname = "do it"\n'
PARAMETER = COMMAND + "[commands.parameters.one]\n"


def test_a_whole_file():
    text = """
    program = ["env", "/opt/bin/tool"]
    prefix = "my-"
    end_of_options = "--end"

    [[commands]]
    name = "log"
    description = " What happened. "
    readonly = true

    [[commands.parameters]]
    name = "since"
    option = "--since"
    help = "A day."

    [[commands]]
    name = "remote add"
    words = ["remote", "--verbose", "add"]
    end_of_options = ""
    parameters.name = { choices = ["a", "b"] }
    parameters.depth = { option = "--depth", type = "integer" }
    parameters.quick = { option = "--quick", off = "--slow", type = "boolean" }
    parameters.paths = { many = true, lead = ["--"], items = "string" }
    """
    log, add = read_spec(text, "a.toml")
    assert log == {
        "name": "my-log",
        "description": "What happened.",
        "program": ["env", "/opt/bin/tool"],
        "words": ["log"],
        "end_of_options": "--end",
        "parameters": [
            {
                "name": "since",
                "type": "string",
                "help": "A day.",
                "required": False,
                "by": "option",
                "option": "--since",
            }
        ],
        "effects": {"readonly": True, "network": False, "idempotent": False},
    }
    assert (add["name"], add["description"]) == ("my-remote-add", "Run `/opt/bin/tool remote --verbose add`.")
    assert add["end_of_options"] == ""
    assert [(one["name"], one["by"], one["type"], one["required"]) for one in add["parameters"]] == [
        ("name", "position", "string", True),
        ("depth", "option", "integer", False),
        ("quick", "flag", "boolean", False),
        ("paths", "position", "array", False),
    ]


def test_names_begin_with_the_programs_name_unless_said_otherwise():
    assert read_spec(COMMAND, "a.toml")[0]["name"] == "tool-do-it"
    assert read_spec(COMMAND, "a.toml", prefix="")[0]["name"] == "do-it"
    assert "/" not in read_spec(COMMAND.replace("do it", "../x"), "a.toml")[0]["name"]


WRONG = [
    ("", "`program` must be the name of a program"),
    ("program = 5", "`program` must be"),
    ("program = []", "`program` must be"),
    ('program = ["a", ""]', "`program` must be"),
    ('program = "a\\u0000b"', "`program` must be"),
    ("program", "cannot be understood"),
    (HEAD, "it needs [[commands]]"),
    (HEAD + "commands = 5", "it needs [[commands]]"),
    (HEAD + "commands = []", "it needs [[commands]]"),
    (HEAD + "comands = []", "the file has no `comands`"),
    (HEAD + "prefix = 5\n[[commands]]\nname = 'a'", "`prefix` and `end_of_options` must be texts"),
    (HEAD + "end_of_options = 5\n[[commands]]\nname = 'a'", "`prefix` and `end_of_options` must be texts"),
    (HEAD + "[[commands]]", "command 1 has no `name`"),
    (COMMAND + "[[commands]]\nname = ' '", "command 2 has no `name`"),
    (HEAD + "commands = ['a']", "command 1 has no `name`"),
    (COMMAND + "[[commands]]\nname = 'do  it'", "two commands are called `tool-do-it`"),
    (COMMAND + "wrods = []", "the command `do it` has no `wrods`"),
    (COMMAND + "words = 'do'", "`words` of the command `do it` must be a list of texts"),
    (COMMAND + "words = [5]", "`words` of the command `do it` must be a list of texts"),
    (COMMAND + 'words = ["a\\u0000"]', "`words` of the command `do it` must be a list of texts"),
    (COMMAND + "description = 5", "`description` and `end_of_options` of the command `do it` must be texts"),
    (COMMAND + "end_of_options = true", "`description` and `end_of_options` of the command `do it` must be texts"),
    (COMMAND + "cacheable = 1", "`cacheable` of the command `do it` must be true or false"),
    (COMMAND + "readonly = 'yes'", "`readonly` of the command `do it` must be true or false"),
    (COMMAND + "network = 1", "`network` of the command `do it` must be true or false"),
    (COMMAND + "parameters = 5", "`parameters` of the command `do it` must be tables"),
    (COMMAND + "parameters = ['a']", "a parameter of the command `do it` has no valid name"),
    (COMMAND + "parameters.a = 5", "a parameter of the command `do it` has no valid name"),
    (COMMAND + "parameters.'a b' = {}", "a parameter of the command `do it` has no valid name"),
    (COMMAND + "parameters = [{name = 'a'}, {name = 'a'}]", "the command `do it` has two parameters of one name"),
    (COMMAND + "parameters = {a = {by = 'stdin'}, b = {by = 'stdin'}}", "two parameters for one stdin"),
    (PARAMETER + "hlep = 'x'", "`one` of the command `do it` has no `hlep`"),
    (PARAMETER + "help = 5", "`help` of `one` of the command `do it` must be a text"),
    (PARAMETER + "by = 'magic'", "`one` of the command `do it` has a wrong combination of `by`, `type` and `many`"),
    (PARAMETER + "by = ['option']", "`one` of the command `do it` has a wrong combination of `by`, `type` and `many`"),
    (PARAMETER + "type = 'text'", "`one` of the command `do it` has a wrong combination of `by`, `type` and `many`"),
    (PARAMETER + "type = ['string']", "`one` of the command `do it` has a wrong combination of `by`"),
    (PARAMETER + "many = 'often'", "`one` of the command `do it` has a wrong combination of `by`, `type` and `many`"),
    (PARAMETER + "many = 5", "`one` of the command `do it` has a wrong combination of `by`, `type` and `many`"),
    (PARAMETER + "by = 'flag'\noption = '--x'\ntype = 'string'", "has a wrong combination of `by`, `type` and `many`"),
    (PARAMETER + "by = 'flag'\noption = '--x'\nmany = true", "has a wrong combination of `by`, `type` and `many`"),
    (PARAMETER + "by = 'count'\noption = '--x'\ntype = 'array'", "has a wrong combination of `by`, `type` and `many`"),
    (PARAMETER + "by = 'stdin'\nmany = true", "has a wrong combination of `by`, `type` and `many`"),
    (PARAMETER + "by = 'option'", "`one` of the command `do it` needs an `option` such as `--one`"),
    (PARAMETER + "option = 'x'", "needs an `option` such as `--one`"),
    (PARAMETER + "option = '--x y'", "needs an `option` such as `--one`"),
    (PARAMETER + "option = '--x=y'", "needs an `option` such as `--one`"),
    (PARAMETER + "option = '--'", "needs an `option` such as `--one`"),
    (PARAMETER + "option = 5", "needs an `option` such as `--one`"),
    (PARAMETER + 'option = "--x\\u0000"', "needs an `option` such as `--one`"),
    (PARAMETER + "by = 'position'\noption = '--x'", "is passed by position, and has an `option`"),
    (PARAMETER + "option = '--x'\ntype = 'boolean'\noff = 'rm'", "`off` of `one`"),
    (PARAMETER + "option = '--x'\ntype = 'boolean'\noff = 5", "`off` of `one`"),
    (PARAMETER + "option = '--x'\noff = '--y'", "`off` of `one`"),
    (PARAMETER + "many = true\nitems = 'banana'", "`items` of `one`"),
    (PARAMETER + "many = true\nitems = 'array'", "`items` of `one`"),
    (PARAMETER + "many = true\nitems = 5", "`items` of `one`"),
    (PARAMETER + "choices = 'a'", "`choices` of `one`"),
    (PARAMETER + "choices = [[1]]", "`choices` of `one`"),
    (PARAMETER + "choices = [true]", "`choices` of `one`"),
    (PARAMETER + "choices = [nan]", "`choices` of `one`"),
    (PARAMETER + "choices = [2020-01-01]", "`choices` of `one`"),
    (PARAMETER + "number = 2", "`number` of `one`"),
    (PARAMETER + "many = true\nnumber = 0", "`number` of `one`"),
    (PARAMETER + "many = true\nnumber = '2'", "`number` of `one`"),
    (PARAMETER + "option = '--x'\nmany = 'exactly'", "`number` of `one` of the command `do it` must say how many"),
    (PARAMETER + "lead = '--'", "`lead` of `one`"),
    (PARAMETER + "lead = [5]", "`lead` of `one`"),
    (PARAMETER + "or_stdin = 'yes'", "`or_stdin` of `one`"),
    (PARAMETER + "or_stdin = true\nmany = true", "`or_stdin` of `one`"),
    (PARAMETER + "required = 'yes'", "`required` of `one` of the command `do it` must be true or false"),
    ("x = " + "[" * 5000, "cannot be understood"),
    ("#" * (LARGEST + 1), "is larger than"),
    (HEAD + "[[commands]]\nname = 'a'\n" * 501, "it needs [[commands]], at most 500"),
    (COMMAND + "".join(f"parameters.p{number} = {{}}\n" for number in range(201)), "must be tables, at most 200"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "sentence"), WRONG, ids=range(len(WRONG)))
def test_what_is_wrong_is_said_with_its_place(text, sentence):
    with pytest.raises(BadConfig) as wrong:
        read_spec(text, "a.toml")
    assert wrong.value.message.startswith("a.toml")
    assert sentence in wrong.value.message


@pytest.mark.parametrize(
    ("text", "near"),
    [
        (HEAD + "comands = []", "commands"),
        (COMMAND + "descripton = 'x'", "description"),
        (PARAMETER + "requird = true", "required"),
    ],
)
def test_near_misses_are_suggested(text, near):
    with pytest.raises(BadConfig) as wrong:
        read_spec(text, "a.toml")
    assert wrong.value.hint == f"did you mean `{near}`?"
