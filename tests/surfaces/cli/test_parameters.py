import pytest

from haft.contracts import BadUsage, Grants, ToolName, ToolSpec
from haft.surfaces.cli.words.binding import arguments
from haft.surfaces.cli.words.parameters import OPTIONS, VALUED, split_words
from haft.surfaces.cli.words.use_options import UseOptions

SCHEMA = {
    "type": "object",
    "properties": {
        "path": {"type": "string"},
        "start_line": {"type": "integer"},
        "ratio": {"type": "number"},
        "force": {"type": "boolean"},
        "maybe": {"anyOf": [{"type": "boolean"}, {"type": "null"}]},
        "tag": {"type": "array", "items": {"type": "string"}},
        "edits": {"type": "array", "items": {"type": "object"}},
        "approve": {"type": "boolean"},
        "no-color": {"type": "boolean"},
    },
    "additionalProperties": False,
}
OPEN = {"type": "object", "additionalProperties": True}


def read(*words, schema=SCHEMA):
    return arguments(split_words(["x", *words]), "x", schema)


def test_values_stand_beside_the_name_or_behind_an_equals_sign():
    assert read("--path", "a b", "--ratio=0.5") == {"path": "a b", "ratio": 0.5}
    assert read("--path=") == {"path": ""}
    assert read("--path=--odd") == {"path": "--odd"}


def test_negative_numbers_and_a_dash_are_values():
    assert read("--start-line", "-3", "--ratio", "-.5", "--path", "-") == {"start_line": -3, "ratio": -0.5, "path": "-"}


def test_flags_stand_alone_with_a_value_or_negated():
    assert read("--force") == {"force": True}
    assert read("--force", "--path", "a") == {"force": True, "path": "a"}
    assert read("--force", "false") == {"force": False}
    assert read("--no-force") == {"force": False}
    assert read("--maybe=null") == {"maybe": None}
    assert read("--no-maybe") == {"maybe": False}
    assert read("--no-color") == {"no-color": True}, "a parameter that is called so is not a negation"
    with pytest.raises(BadUsage, match="takes no value"):
        read("--no-force=1")


def test_a_word_behind_a_flag_that_is_no_truth_is_stray():
    with pytest.raises(BadUsage, match=r"`a\.txt` belongs to no parameter"):
        read("--force", "a.txt")


def test_repeated_names_make_an_array():
    assert read("--tag", "a", "--tag", "b") == {"tag": ["a", "b"]}
    assert read("--tag", "a") == {"tag": ["a"]}
    assert read("--edits", '[{"a": 1}]') == {"edits": [{"a": 1}]}
    with pytest.raises(BadUsage, match="takes one value, but is given 2 times"):
        read("--path", "a", "--path", "b")


def test_dashes_and_underscores_mean_the_same_unless_that_is_ambiguous():
    assert read("--start-line", "1") == read("--start_line", "1")
    twins = {"type": "object", "properties": {"a-b": {}, "a_b": {}}, "additionalProperties": False}
    assert read("--a-b", "1", "--a_b", "2", schema=twins) == {"a-b": 1, "a_b": 2}
    three = {"type": "object", "properties": {"a-b_c": {}, "a_b-c": {}}, "additionalProperties": False}
    with pytest.raises(BadUsage, match="may mean `--a-b_c` or `--a_b-c`"):
        read("--a-b-c", "1", schema=three)


def test_a_text_that_fits_no_type_goes_on_as_text():
    assert read("--start-line", "many") == {"start_line": "many"}


def test_a_name_wins_over_the_same_key_in_args(tmp_path):
    assert read("--args", '{"path": "a", "force": true}', "--path", "b") == {"path": "b", "force": True}
    (tmp_path / "x.json").write_text('\ufeff{"path": "c"}')
    assert read("--args", f"@{tmp_path / 'x.json'}") == {"path": "c"}
    with pytest.raises(BadUsage, match="NaN is not valid JSON"):
        read("--args", '{"ratio": NaN}')


def test_options_of_haft_are_haft_s_until_a_bare_double_dash():
    line = split_words(["--approve", "x", "--path", "a"])
    assert line.flag("--approve") and arguments(line, "x", SCHEMA) == {"path": "a"}
    line = split_words(["x", "--path", "a", "--", "--approve"])
    assert not line.flag("--approve"), "a parameter called `approve` must never approve"
    assert arguments(line, "x", SCHEMA) == {"path": "a", "approve": True}
    assert not split_words(["x", "--", "--json", "-q"]).options


def test_a_value_does_not_reach_across_an_option():
    with pytest.raises(BadUsage, match="`--path` needs a value: string"):
        read("--path", "--stream", "a")


def test_the_sandbox_is_opened_by_options_and_not_by_parameters_of_their_name(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "out").mkdir()
    (tmp_path / "a file").write_text("")
    line = split_words(["x", "--network", "--write", "out", "--write=~/a file", "--write", "./out/", "--read", "out"])
    grants = UseOptions.from_line(line).grants
    out = str(tmp_path / "out")
    assert grants == Grants(network=True, read=(out,), write=(out, str(tmp_path / "a file")))
    line = split_words(["--network=a.example,b.example:22", "x", "--network=*.c.example", "--path", "a"])
    assert UseOptions.from_line(line).grants == Grants(network=("a.example", "b.example:22", "*.c.example"))
    line = split_words(["--network", "x", "--path", "a"])
    assert line.name == "x", "a bare --network takes no value"
    line = split_words(["x", "--path", "a", "--", "--network", "--write", "out"])
    assert UseOptions.from_line(line).grants == Grants()
    assert arguments(line, "x", OPEN) == {"path": "a", "network": True, "write": "out"}
    for missing in ("../nowhere", "/nowhere/at/all", ""):
        with pytest.raises(BadUsage, match=f"`{missing}` does not exist" if missing else "is empty") as caught:
            UseOptions.from_line(split_words(["x", f"--write={missing}"]))
        assert caught.value.hint is not None
    with pytest.raises(BadUsage, match="`missing` does not exist"):
        UseOptions.from_line(split_words(["x", "--read=missing"]))


def test_a_tool_that_takes_anything_is_given_anything():
    assert read("--a", "1", "--b", "text", "--c", schema=OPEN) == {"a": 1, "b": "text", "c": True}


def test_an_unknown_name_lists_what_there_is():
    with pytest.raises(BadUsage) as error:
        read("--zzzzz", "1")
    assert error.value.hint is not None and "`--path`" in error.value.hint


def test_a_value_for_a_template_stays_text_where_the_template_takes_text():
    declared = [{"name": "key", "key": "key", "type": "string"}, {"name": "tries", "key": "Tries", "type": "integer"}]
    spec = ToolSpec(ToolName("x"), "agent-studio", "", {}, meta={"template": {"userParameters": declared}})
    words = ["x", "--config", "key=1.50", "--config", "Tries=3", "--config", 'more={"a": 1}']
    wanted = UseOptions.from_line(split_words(words))
    assert wanted.config_for(spec) == {"key": "1.50", "Tries": 3, "more": {"a": 1}}
    assert wanted.config_for(None) == {"key": 1.5, "Tries": 3, "more": {"a": 1}}


@pytest.mark.parametrize("option", OPTIONS)
def test_an_option_that_the_tool_declares_too_is_refused_after_its_name_with_both_spellings(option):
    name = option.removeprefix("--")
    schema = {"type": "object", "properties": {name: {"type": "string"}}}
    value = " VALUE" if option in VALUED else ""
    for words in [[f"{option}=x"], [option, "x"]] if value else [[option]]:
        with pytest.raises(BadUsage, match=f"`{option}` after `x` may mean") as refused:
            read(*words, schema=schema)
        haft_s, own = f"`haft tools use {option}{value} x`", f"`haft tools use x -- {option} VALUE`"
        assert refused.value.hint == f"haft's option: {haft_s}; the tool's parameter: {own}"
    given = split_words([option, *(["y"] if value else []), "x", "--", option, "z"])
    assert given.options[option] == (["y"] if value else [""])
    if option != "--args":
        assert arguments(given, "x", schema) == {name: "z"}


@pytest.mark.parametrize(("short", "name"), [("-w", "workspace"), ("-q", "quiet"), ("-h", "help")])
def test_the_short_form_of_an_option_is_refused_too(short, name):
    with pytest.raises(BadUsage, match=f"`{short}` after `x` may mean"):
        read(short, *(["."] if short == "-w" else []), schema={"properties": {name: {"type": "string"}}})


def test_an_underscore_hides_no_parameter():
    with pytest.raises(BadUsage, match="`--timeout` after `x`"):
        read("--timeout", "5", schema={"properties": {"timeout": {"type": "integer"}}})
    assert read("--timeout", "5", schema=SCHEMA) == {}, "haft's own, where the tool has none"


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["--network=", "x"], "`--network=` names no host"),
        (["--network=,", "x"], "`--network=` names no host"),
        (["x", "--network=a b"], "`--network`: `a b` is no host"),
        (["x", "--network=@mirrors"], "`--network`: there is no group `@mirrors` of hosts"),
        (["x", "--network", "--network=a.example"], "`--network` is given both alone and with hosts"),
        (["x", "--scratch=a.example"], "`--scratch` takes no value"),
    ],
)
def test_wrong_hosts_are_refused_before_anything_runs(words, why):
    with pytest.raises(BadUsage) as refused:
        UseOptions.from_line(split_words(words))
    assert why in refused.value.message
