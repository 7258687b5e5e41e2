"""Which tools there are at all."""

import pytest

from haft.contracts import BadConfig
from haft.policy.enablement import Enablement, Feature, NameList


def test_what_is_disabled_says_by_which_pattern_and_where():
    enablement = Enablement(disable=(NameList(("shell", "mcp:*"), "a.toml"), NameList(("write_*",), "b.toml")))
    assert enablement.why_not("shell", "builtin") == "`shell` in `tools.disable` (a.toml)"
    assert enablement.why_not("anything", "mcp") == "MCP tools disabled"
    assert enablement.why_not("write_file", "builtin") == "`write_*` in `tools.disable` (b.toml)"
    assert enablement.why_not("read_file", "builtin") is None


def test_disable_beats_enable_and_every_closed_list_must_name_a_tool():
    enablement = Enablement(
        disable=(NameList(("shell",), "a"),),
        enable=(NameList(("*_file", "shell"), "a"), NameList((), "b"), NameList(("builtin:read_*",), "c")),
    )
    assert "tools.disable" in enablement.why_not("shell", "builtin")
    assert enablement.why_not("read_file", "builtin") is None
    assert enablement.why_not("write_file", "builtin") == "it is not in `tools.enable` (c)"
    assert enablement.why_not("read_file", "python") == "it is not in `tools.enable` (c)"
    assert enablement.why_not("search", "builtin") == "it is not in `tools.enable` (a)"


def test_a_feature_that_is_off_takes_its_tool_and_no_other_of_that_name():
    enablement = Enablement(off=(Feature("task", "Sub-agents not enabled"),))
    assert enablement.why_not("task", "builtin") == "Sub-agents not enabled"
    assert enablement.why_not("task", "python") is None


@pytest.mark.parametrize("setting", ["disable", "enable"])
def test_a_pattern_that_no_tool_can_fit_is_an_error_with_the_near_miss(setting):
    with pytest.raises(BadConfig) as caught:
        Enablement(**{setting: (NameList(("mpc:*",), "a.toml"),)})
    assert caught.value.message.startswith(f"a.toml: `tools.{setting}`: `mpc:*`")
    assert "did you mean `mcp:*`?" in caught.value.message
