"""A template as a tool, called the whole way: what it takes, and what a person sets of it."""

import asyncio
import sys
import textwrap
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent.parent.parent / "sandbox"))
from loaded import OwnEnvironment, yes

from haft.service import ToolService

SOURCE = '''"""Say what it was given."""
import argparse, datetime, json
from typing import Any, List, Optional
from pydantic import BaseModel, Field, SecretStr


class UserParameters(BaseModel):
    {user}


class ToolParameters(BaseModel):
    {tool}


{run}

OUTPUT_KEY = "tool_output"

if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--user-params", required=True)
    parser.add_argument("--tool-params", required=True)
    given = parser.parse_args()
    config = UserParameters(**json.loads(given.user_params))
    params = ToolParameters(**json.loads(given.tool_params))
    print(OUTPUT_KEY, {call}(config, params))
'''
RUN = "def run_tool(config: UserParameters, args: ToolParameters) -> Any:\n    return {}\n"
KEYS = "key: str\n    code: Optional[SecretStr] = None\n    tries: int = 1"
SAYS = "[config.key, config.code and config.code.get_secret_value(), config.tries]"


@pytest.fixture
def studio(tmp_path, monkeypatch):
    environment = OwnEnvironment(tmp_path / "environment")
    environment.show_real_libraries()
    monkeypatch.setattr("haft.toolsets.templates._OnUse._real", lambda _self: environment)
    return Studio(tmp_path)


class Studio:
    def __init__(self, base):
        self.base = base
        self.settings = {"templates.paths": [str(base / "templates")]}
        (base / "workspace").mkdir()

    def write(self, user="pass", tool='x: str = "a"', run=RUN, call="run_tool"):
        folder = self.base / "templates" / "says"
        folder.mkdir(parents=True)
        (folder / "tool.py").write_text(SOURCE.format(user=user, tool=tool, run=textwrap.dedent(run), call=call))
        (folder / "requirements.txt").write_text("pydantic\n")
        return folder

    def calls(self, *several, asked=None):
        """The outcomes of calls, each of them arguments and configuration."""

        async def go():
            approver = yes if asked is None else asked
            service = ToolService.open(
                self.base / "workspace", approver=approver, home=self.base / "home", installed=False,
                settings=self.settings,
            )  # fmt: skip
            async with service:
                return [await service.call("says", given, config=config) for given, config in several]

        return asyncio.run(go())


def test_run_tool_may_be_a_static_method(studio):
    run = """
    class Tool:
        @staticmethod
        def run_tool(config: UserParameters, args: ToolParameters) -> Any:
            return args.x * 2
    """
    studio.write(run=run, call="Tool.run_tool")
    (outcome,) = studio.calls(({"x": "ab"}, None))
    assert (outcome.status, outcome.output) == ("done", "abab"), outcome.error


def test_texts_that_pydantic_converts_pass_and_are_what_is_asked_about_and_recorded(studio):
    fields = "n: int; f: float = 0; b: bool = False; d: Optional[datetime.date] = None; l: List[int] = []"
    studio.write(tool=fields, run=RUN.format("[args.n, args.f, args.b, str(args.d), args.l]"))
    asked = []
    given = {"n": "5", "f": "1.5", "b": "true", "d": "2024-02-03", "l": ["1", 2]}
    done, refused = studio.calls((given, None), ({"n": "five"}, None), asked=lambda each: asked.append(each) or True)
    assert done.output == "[5, 1.5, True, '2024-02-03', [1, 2]]", done.error
    assert asked[0].arguments == {**given, "n": 5, "f": 1.5, "b": True, "l": [1, 2]}
    assert refused.error.code == "invalid-arguments" and len(asked) == 1


def test_a_rule_about_a_value_holds_for_the_text_that_stands_for_it(studio):
    studio.write(tool="force: bool = False", run=RUN.format("args.force"))
    rules = [
        {"tool": "says", "matches": {"force": True}, "action": "reject"},
        {"tool": "says", "action": "allow"},
    ]
    studio.settings["permissions"] = rules
    rejected, allowed = studio.calls(({"force": "yes"}, None), ({"force": "no"}, None))
    assert rejected.status == "rejected-by-user" and allowed.output == "False", (rejected, allowed)


def test_a_template_that_asks_for_strictness_gets_it(studio):
    studio.write(tool="n: int = Field(strict=True)", run=RUN.format("args.n"))
    refused, done = studio.calls(({"n": "5"}, None), ({"n": 5}, None))
    assert refused.error.code == "invalid-arguments" and done.output == "5"


def test_user_parameters_are_given_for_one_call(studio):
    folder = studio.write(user=KEYS, run=RUN.format(SAYS))
    needed, strange, given = studio.calls(
        ({}, None), ({}, {"key": "k", "kez": 1}), ({}, {"key": "four-and-twenty", "tries": 3, "code": "blackbirds"})
    )
    assert needed.error.code == "bad-config" and "it needs `key`" in needed.error.message
    assert "--config key=" in needed.error.hint
    assert "no user parameter `kez`" in strange.error.message and "`key`, `code`, `tries`" in strange.error.hint
    assert given.status == "done", given.error
    assert "blackbirds" not in given.output and "3]" in given.output, "what is declared as secret is masked"

    studio.settings["templates.instances"] = [
        {"name": "says", "template": str(folder), "user_params": {"key": "first", "tries": 7}}
    ]
    kept, other = studio.calls(({}, None), ({}, {"tries": 8}))
    assert kept.output.endswith("None, 7]") and other.output.endswith("None, 8]")


def test_no_other_spelling_of_a_value_passes_the_rule_that_rejects_it(studio):
    tool = (
        "amount: Decimal = 1\n    either: Union[bool, Decimal] = False\n    until: Union[datetime.date, bool] = False"
    )
    studio.write(tool=tool, run=RUN.format("str(args.amount)"))
    file = next((studio.base / "templates").rglob("tool.py"))
    file.write_text(file.read_text().replace("List, Optional", "List, Optional, Union\nfrom decimal import Decimal"))
    rejected = {"amount": 1000, "either": True, "until": True}
    studio.settings["permissions"] = [
        *({"tool": "says", "matches": {name: value}, "action": "reject"} for name, value in rejected.items()),
        {"tool": "says", "action": "allow"},
    ]
    spellings = [{"amount": "1000"}, {"amount": "1e3"}, {"amount": " 1_000.0 "}, {"either": "yes"}, {"until": "on"}]
    assert {outcome.status for outcome in studio.calls(*((given, None) for given in spellings))} == {"rejected-by-user"}
    refused, passed = studio.calls(({"amount": "1000.0000000000000001"}, None), ({"amount": "999.50"}, None))
    assert refused.error.code == "invalid-arguments" and passed.output == "999.5"

    async def tested():
        service = ToolService.open(
            studio.base / "workspace", home=studio.base / "home", installed=False, settings=studio.settings
        )
        async with service:
            return [(await service.permissions_test("says", given)).decision.action for given in spellings]

    assert asyncio.run(tested()) == ["reject"] * len(spellings)
