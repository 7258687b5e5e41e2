"""One rule replaced in its file, and what a changed rule would have decided about past calls."""

import asyncio

import pytest

from haft import Principal, ToolService
from haft.contracts import BadUsage
from haft.service import RuleChanges, StateHome, decided_by, replayed_change

ANA = Principal("ana")
FILE = """\
# Rules of this workspace.
[[permissions]]
tool = "shell"
matches = {command = "touch *"}
action = "reject"

# The second rule.
[[permissions]]
tool = "write_file"
action = "ask"

[limits]
max_seconds = 60
"""


@pytest.fixture
def place(tmp_path):
    (tmp_path / "ws").mkdir()
    (tmp_path / "ws/haft.toml").write_text(FILE)
    return tmp_path


def rules(place):
    return RuleChanges(str(place / "ws"), StateHome(str(place / "home")), ANA)


def test_a_rule_is_replaced_where_it_stands_and_everything_else_stays(place):
    assert rules(place).text_of("haft.toml:2").startswith('[[permissions]]\ntool = "shell"\n')
    changed = rules(place).replace("haft.toml:2", {"tool": "shell", "action": "ask"}, [])
    assert (changed.source, changed.line) == ("haft.toml:2", 2)
    old = 'tool = "shell"\nmatches = {command = "touch *"}\naction = "reject"\n'
    assert (place / "ws/haft.toml").read_text() == FILE.replace(old, 'tool = "shell"\naction = "ask"\n')


@pytest.mark.parametrize(
    ("source", "rule"),
    [
        ("haft.toml:3", {"tool": "shell", "action": "ask"}),
        ("remembered:1", {"tool": "shell", "action": "ask"}),
        ("haft.toml:2", {"tool": "shell", "action": "perhaps"}),
        ("haft.toml:2", {"tool": "shell", "action": "allow", "grant": {"network": ["http://x"]}}),
    ],
)
def test_a_rule_that_is_not_there_or_cannot_be_used_changes_nothing(place, source, rule):
    with pytest.raises(BadUsage):
        rules(place).replace(source, rule, [])
    assert (place / "ws/haft.toml").read_text() == FILE


def test_past_calls_are_counted_by_rule_and_decided_again_with_one_rule_changed(place):
    async def scenario():
        async with ToolService.open(
            place / "ws", home=place / "home", approver=lambda _request: True, installed=False
        ) as service:
            for command in ("touch a", "touch b", "echo hello"):
                await service.call("shell", {"command": command})
            looked_at, counts = decided_by(service, 100)
            assert looked_at == 3
            assert counts["haft.toml", "reject shell where command is touch *", "reject"] == 2
            without = await replayed_change(service, "haft.toml:2", None, 100)
            assert [(flip.was, flip.now.action) for flip in without.flips] == [("reject", "ask")] * 2
            first = await replayed_change(service, None, {"tool": "shell", "action": "reject"}, 100)
            assert [flip.arguments["command"] for flip in first.flips] == ["echo hello"]
            same = {"tool": "shell", "matches": {"command": "touch *"}, "action": "reject"}
            assert (await replayed_change(service, "haft.toml:2", same, 100)).flips == ()
            with pytest.raises(BadUsage):
                await replayed_change(service, "haft.toml:99", same, 100)

    asyncio.run(scenario())
