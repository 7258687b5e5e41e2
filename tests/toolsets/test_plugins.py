"""Bash plugins through a service: configured, found, asked, previewed, called, explained."""

import asyncio
import functools
import hashlib
import json
import os
import re
import sys
from pathlib import Path

import pytest

from haft import Principal, ToolService
from haft.config.files import workspace_config
from haft.config.trust_store import trust
from haft.contracts import MARK, BadConfig, Exit
from haft.sandbox import Sandbox
from haft.surfaces.text.requests import call_lines

ECHO = (Path(__file__).parents[2] / "examples/template-bash-tool/template_bash_echo.bash").read_text()
ALLOW = {"plugin_policy.allow_bash_tools": True}


def script(name, *, mode="json", properties=None, schema=None, run="", preview="", error="exit 1", **more):
    """A plugin, in as few words as there are."""
    known = {
        "id": name,
        "version": "0.1.0",
        "args_mode": mode,
        "tools": [
            {
                "type": "function",
                "function": {"name": name, "parameters": {"type": "object", "properties": properties or {}}},
            }
        ],
        **({"positional": [{"name": one} for one in properties or {}]} if mode == "positional" else {}),
        **more,
    }
    said = schema if schema is not None else f"printf '%s' '{json.dumps(known)}'"
    return (
        f'what=$1; shift\ncase "$what" in\nschema)\n{said}\n;;\npreview)\n{preview or "exit 1"}\n;;\n'
        f"run)\n{run or ':'}\n;;\nerror)\n{error}\n;;\nesac\n"
    )


class Places:
    """A workspace, a state home, and a home directory with nothing in it."""

    def __init__(self, tmp_path):
        self.workspace, self.state, self.config = (tmp_path / name for name in ("workspace", "state", "config"))
        self.workspace.mkdir()
        self.asked = []

    def write(self, path, text):
        path = self.workspace / path
        path.parent.mkdir(parents=True, exist_ok=True)
        # Beside and renamed: whoever looks meanwhile sees one or the other.
        fresh = path.with_name(f".{path.name}.new")
        fresh.write_text(text)
        fresh.rename(path)
        return path

    def plugins(self, **scripts):
        """Write each under its name; the settings that load them."""
        for name, text in scripts.items():
            self.write(f"{name}.bash", text)
        return {**ALLOW, "plugins": [f"bash:{self.workspace}/{name}.bash" for name in scripts]}

    def open(self, approver=None, **options):
        async def yes(request):
            self.asked.append(request)
            return True

        return ToolService.open(self.workspace, home=self.state, approver=approver or yes, installed=False, **options)

    def trust(self):
        trust(str(self.state), str(self.workspace), workspace_config(str(self.workspace)), "me")

    def own(self, text):
        (self.config / "haft").mkdir(parents=True, exist_ok=True)
        (self.config / "haft/haft.toml").write_text(text)


@pytest.fixture
def places(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    return Places(tmp_path)


@pytest.fixture
def started(monkeypatch):
    """The commands that made tools describe themselves or preview a call."""
    commands = []
    launcher_of = Sandbox.describe_launcher

    class Recording:
        def __init__(self, launcher):
            self._launcher = launcher

        async def is_confined(self):
            return True

        async def run(self, command, sink):
            commands.append(list(command.argv))
            return await self._launcher.run(command, sink)

    monkeypatch.setattr(Sandbox, "describe_launcher", lambda sandbox: Recording(launcher_of(sandbox)))
    return commands


def in_a_loop(test):
    @functools.wraps(test)
    def run(*arguments, **named):
        asyncio.run(test(*arguments, **named))

    return run


def plugged(service):
    return {one.spec.name: one for one in service.tools(all=True) if one.spec.kind == "bash-plugin"}


# How they are configured.

FORMS = {
    "single file": {"bash_tool": {"file": "./tools/template_bash_echo.bash"}},
    "folder": {"bash_tool": {"path": "./plugins/mine"}},
    "bash: file": "bash:./tools/template_bash_echo.bash",
    "bash: folder": "bash:./plugins/mine",
}


def as_toml(entry):
    if isinstance(entry, str):
        return json.dumps(entry)
    ((key, value),) = entry["bash_tool"].items()
    return f"{{ bash_tool = {{ {key} = {json.dumps(value)} }} }}"


@pytest.mark.parametrize("kind", ["json", "toml"])
@pytest.mark.parametrize("form", FORMS)
@in_a_loop
async def test_the_minimal_example_runs_unchanged_in_every_form(places, form, kind):
    places.write("tools/template_bash_echo.bash", ECHO)
    places.write("plugins/mine/template_bash_echo.bash", ECHO)
    places.write("plugins/mine/agent_plugin.json", '{"bash_tools": [{"file": "template_bash_echo.bash"}]}')
    if kind == "json":
        config = {"plugins": [FORMS[form]], "plugin_policy": {"allow_bash_tools": True}}
        places.write("haft.json", json.dumps(config))
    else:
        text = f"plugins = [{as_toml(FORMS[form])}]\n[plugin_policy]\nallow_bash_tools = true\n"
        places.write("haft.toml", text)
    async with places.open() as service:
        outcome = await service.call("template_bash_echo", {"value": "hello", "uppercase": True})
        spec = plugged(service)["template_bash_echo"].spec
    assert (outcome.status, outcome.output) == ("done", "HELLO")
    (asked,) = places.asked
    assert asked.arguments == {"value": "hello", "uppercase": True}
    assert asked.preview == "template_bash_echo value=hello uppercase=true"
    assert (spec.description, spec.provenance) == ("Echo a value (optionally uppercase it).", "workspace")


@in_a_loop
async def test_where_bash_tools_are_not_allowed_they_are_listed_with_the_reason_and_never_started(places, started):
    settings = places.plugins(a=script("a"), b=script("b"))
    async with places.open(settings={"plugins": settings["plugins"]}) as service:
        found = plugged(service)
        outcome = await service.call("a")
    assert {name: one.state for name, one in found.items()} == {"a": "disabled", "b": "disabled"}
    assert found["a"].reason == "bash tools are not allowed: set `plugin_policy.allow_bash_tools = true`"
    assert outcome.status != "done" and "allow_bash_tools" in outcome.error.message + (outcome.error.hint or "")
    assert started == []


@in_a_loop
async def test_disabled_plugins_are_listed_with_the_reason_and_never_started(places, started):
    names = ("by_stem", "in_folder", "as_written", "other")
    places.write("folder/agent_plugin.json", '{"bash_tools": [{"file": "in_folder.bash"}]}')
    for name in names:
        places.write("folder/in_folder.bash" if name == "in_folder" else f"{name}.bash", script(name))
    plugins = ["bash:./by_stem.bash", "bash:./folder", "bash:./as_written.bash", "bash:./other.bash"]
    config = {
        "plugins": plugins,
        "plugin_policy": {"allow_bash_tools": True},
        "disabled_plugins": ["by_stem", "folder", "bash:./as_written.bash"],
    }
    file = places.write("haft.json", json.dumps(config))
    async with places.open() as service:
        found = plugged(service)
    assert {name: found[name].state for name in names} == {**dict.fromkeys(names, "disabled"), "other": "ready"}
    assert found["in_folder"].reason == f"`folder` in `disabled_plugins` ({file})"
    assert [argv[1] for argv in started] == [str(places.workspace / "other.bash")]


SHOW = "env | grep ^AGENT_TOOL_CONFIG_ | sort || :"
KEYS = ["user", "port", "on", "list", "table", "place", "work"]


def shown(outcome):
    assert outcome.status == "done", outcome.error
    return dict(line.removeprefix("AGENT_TOOL_CONFIG_").split("=", 1) for line in outcome.output.splitlines())


@in_a_loop
async def test_declared_settings_come_from_config_and_from_the_call_and_others_never(places):
    places.own(
        '[config]\nuser = "me"\nport = 25\non = true\nlist = ["a"]\ntable = {a = 1}\nundeclared = "x"\n'
        'place = "${CONFIG_DIR}"\nwork = "${WORKING_DIR}"\n'
    )
    settings = places.plugins(shows=script("shows", run=SHOW, config_keys=KEYS))
    async with places.open(settings=settings) as service:
        configured = shown(await service.call("shows"))
        wanted = {"user": "you", "port": [1], "work": None, "undeclared": "y"}
        given = shown(await service.call("shows", config=wanted))
    plain = {"PORT": "25", "ON": "true", "PLACE": str(places.config / "haft"), "WORK": str(places.workspace)}
    assert configured == {"USER": "me", **plain}
    assert given == {"USER": "you", "ON": "true", "PLACE": plain["PLACE"]}


@in_a_loop
async def test_plain_values_beside_the_settings_of_haft_json_are_for_plugins_once_it_is_trusted(places):
    places.write("shows.bash", script("shows", run=SHOW, config_keys=["user", "port", "list"]))
    config = {
        "plugins": ["bash:${CONFIG_DIR}/shows.bash"],
        "plugin_policy": {"allow_bash_tools": True},
        "user": "loose",
        "port": 25,
        "undeclared": "x",
        "config": {"user": "me"},
    }
    places.write("haft.json", json.dumps(config))
    async with places.open() as service:
        assert shown(await service.call("shows")) == {}, "nobody has trusted it"
    places.trust()
    async with places.open() as service:
        assert shown(await service.call("shows")) == {"USER": "me", "PORT": "25"}


@in_a_loop
async def test_what_is_filled_in_from_the_environment_arrives_and_stays_out_of_the_record(places, monkeypatch):
    monkeypatch.setenv("MY_WORD", "a-word-nobody-reads")
    places.own('[config]\nuser = "${env:MY_WORD}"\n')
    settings = places.plugins(
        shows=script("shows", run=SHOW, config_keys=["user"], preview="echo $AGENT_TOOL_CONFIG_USER")
    )
    async with places.open(settings=settings) as service:
        outcome = await service.call("shows")
    assert shown(outcome) == {"USER": "a-word-nobody-reads"}
    files = [path for path in places.state.rglob("*") if path.is_file()]
    holding = {path.relative_to(places.state).parts[0] for path in files if b"a-word-nobody-reads" in path.read_bytes()}
    assert holding == {"outputs"}, "its name says nothing of a secret: what was printed is kept as it was"


@in_a_loop
async def test_a_secret_of_the_configuration_is_masked_in_all_that_a_plugin_says(places, monkeypatch):
    secret = "hunter2-" * 40
    monkeypatch.setenv("MY_WORD", secret)
    places.own('[config]\nsmtp_password = "${env:MY_WORD}"\nliteral_key = "0123456789-literal"\n')
    said = '"$AGENT_TOOL_CONFIG_SMTP_PASSWORD $AGENT_TOOL_CONFIG_LITERAL_KEY"'
    settings = places.plugins(
        shows=script(
            "shows",
            run=f"echo out {said}; echo {said} >&2; exit 3",
            config_keys=["smtp_password", "literal_key"],
            preview=f"echo {said}",
            error=f"echo explained {said}",
        )
    )
    async with places.open(settings=settings) as service:
        run = service.call("shows")
        events = [event.to_json() async for event in run]
        outcome = await run
        previewed = await service.preview("shows")
    assert (outcome.output, outcome.exit_code) == (f"explained {MARK} {MARK}\n", 3)
    assert outcome.stderr == f"{MARK} {MARK}\n" and outcome.error.message == f"`shows` exited 3: {MARK} {MARK}"
    assert previewed == places.asked[0].preview == f"{MARK} {MARK}"
    assert "hunter2" not in json.dumps(events) and "0123456789-literal" not in json.dumps(events)
    held = b"".join(path.read_bytes() for path in places.state.rglob("*") if path.is_file())
    assert b"hunter2" not in held and b"0123456789-literal" not in held


TOKENS = """
[config]
token = "Bearer ${secret:TOKEN}"
[[secrets.TOKEN]]
env = "TOKEN_OF_ANN"
users = ["ann"]
[[secrets.TOKEN]]
command = ["sh", "-c", "echo the-token-of-$HAFT_SECRET_USER"]
users = ["bob"]
[[secrets.TOKEN]]
file = "FILE"
users = ["carla"]
[[secrets.TOKEN]]
env = "TOO_SHORT"
users = ["dora"]
"""


@in_a_loop
async def test_a_secret_is_that_of_the_person_who_calls_and_is_masked_everywhere(places, monkeypatch):
    monkeypatch.setenv("TOKEN_OF_ANN", "the-token-of-ann")
    monkeypatch.setenv("TOO_SHORT", "short")
    (places.workspace.parent / "token").write_text("the-token-of-carla\n")
    places.own(TOKENS.replace("FILE", str(places.workspace.parent / "token")))
    seen = places.workspace / "seen"
    run = 'echo "$AGENT_TOOL_CONFIG_TOKEN"; printf %s "$AGENT_TOOL_CONFIG_TOKEN" | sha256sum > seen'
    preview = "echo $AGENT_TOOL_CONFIG_TOKEN"
    settings = places.plugins(
        shows=script("shows", run=run, config_keys=["token"], preview=preview), other=script("other", run="env")
    )
    agent = Principal("claude-code", kind="agent", on_behalf="ann")
    async with places.open(settings=settings) as service:
        for who, value in (
            (Principal("ann"), "ann"),
            (Principal("bob"), "bob"),
            (Principal("carla"), "carla"),
            (agent, "ann"),
        ):
            outcome = await service.call("shows", who=who)
            assert outcome.output == f"Bearer {MARK}\n", outcome.error
            digest = hashlib.sha256(f"Bearer the-token-of-{value}".encode()).hexdigest()
            assert seen.read_text().split()[0] == digest
            seen.unlink()
        assert "the-token" not in f"{places.asked}", "nobody has approved the call yet"
        refused = await service.call("shows", who="eve")
        assert refused.error.code == "bad-config" and "there is no secret `TOKEN` for eve" in refused.error.message
        refused = await service.call("shows", who="dora")
        assert "too short" in refused.error.message and "short" not in refused.error.message.replace("too short", "")
        told = await service.call("shows", who="eve", config={"token": "${secret:TOKEN}"})
        assert "the-token" not in told.output
        assert "the-token" not in (await service.call("other", who="ann")).output
    held = b"".join(path.read_bytes() for path in places.state.rglob("*") if path.is_file())
    assert b"the-token-of" not in held


@in_a_loop
async def test_in_a_shared_workspace_an_agent_that_acts_for_nobody_gets_no_secret(places):
    places.own('[config]\ntoken = "${secret:TOKEN}"\n[secrets.TOKEN]\ncommand = ["echo", "the-token-of-all"]\n')
    settings = places.plugins(shows=script("shows", run=SHOW, config_keys=["token"]))
    async with places.open(settings=settings, is_shared=True) as service:
        outcome = await service.call("shows", who=Principal("claude-code", kind="agent"))
        assert "acts for no person" in outcome.error.message
        assert (await service.call("shows", who="ann")).output == f"AGENT_TOOL_CONFIG_TOKEN={MARK}\n"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('[providers.x]\ncommand = "x"\nenv = {T = "${secret:T}"}\n', "only `[config]` may contain"),
        (
            '[[templates.instances]]\nname = "t"\ntemplate = "/t"\nuser_params = {k = "${secret:T}"}\n',
            "only `[config]`",
        ),
        ('[secrets.T]\nenv = "A"\nfile = "/b"\n', "exactly one of"),
        ('[secrets.T]\nfile = "relative"\n', "absolute path"),
        ('[secrets.T]\ncommand = "echo"\n', "a list of texts"),
        ('[secrets.T]\nenv = "A"\nuser = ["ann"]\n', "exactly one of"),
    ],
)
def test_where_secrets_may_stand_and_come_from(places, text, why):
    places.own(text)
    with pytest.raises(BadConfig, match=re.escape(why)):
        places.open()


@in_a_loop
async def test_a_variable_that_is_not_set_disables_the_tool_that_wants_it_and_says_why(places):
    places.own('[config]\nhost = "h"\nuser = "${env:NOT_SET_ANYWHERE}"\n')
    settings = places.plugins(
        needs=script("needs", run="echo ran", config_keys=["user", "host"]),
        other=script("other", run=SHOW, config_keys=["host"]),
    )
    async with places.open(settings=settings) as service:
        listed = {one.spec.name: one for one in service.tools(all=True)}
        assert listed["needs"].state == "needs-config"
        for word in ("`user` in `config`", f"{places.config}/haft/haft.toml:3", "`NOT_SET_ANYWHERE`, which is not set"):
            assert word in listed["needs"].reason
        assert shown(await service.call("other")) == {"HOST": "h"}
        assert (await service.call("list_directory", {"path": "."})).ok
        refused = await service.call("needs")
    assert refused.error.code == "bad-config" and "NOT_SET_ANYWHERE" in refused.error.message
    assert "cannot be called, it needs configuration: " in refused.error.message


@in_a_loop
async def test_a_tool_works_in_the_working_directory_and_has_a_python(places):
    places.write("in/a.txt", "")
    run = (
        """pwd; "$AGENT_TOOL_PYTHON" -c 'import sys; print(sys.version_info[:2])'; printf '%s' "$AGENT_TOOL_PYTHON" """
    )
    config = {"plugins": ["bash:./it.bash"], "plugin_policy": {"allow_bash_tools": True}, "working_directory": "./in"}
    places.write("it.bash", script("it", run=run))
    places.write("haft.json", json.dumps(config))
    async with places.open() as service:
        outcome = await service.call("it")
        elsewhere = await service.call("it", cwd=".")
    version = str(sys.version_info[:2])
    assert outcome.output.splitlines() == [str(places.workspace / "in"), version, sys.executable]
    assert elsewhere.output.splitlines()[0] == str(places.workspace)


# How they run.


@in_a_loop
async def test_stdout_is_seen_before_the_end(places):
    settings = places.plugins(slow=script("slow", run="echo first; exec sleep 1000", preview="echo would sleep"))
    async with places.open(settings=settings) as service:
        run = service.call("slow")
        seen = []
        async for event in run:
            seen.append((event.type, event.text))
            if event.type == "stdout":
                assert event.status == "in-progress"
                run.cancel()
        outcome = await run
    assert (outcome.status, outcome.output) == ("cancelled", "first\n")
    assert ("progress", "would sleep") in seen and ("stdout", "first\n") in seen


@in_a_loop
async def test_stderr_is_always_kept_and_part_of_the_output_where_policy_says_so(places):
    settings = places.plugins(both=script("both", run="echo out; echo err >&2"))
    for streams in (False, True):
        async with places.open(settings={**settings, "plugin_policy.stream_stderr": streams}) as service:
            run = service.call("both")
            streamed = [event.text async for event in run if event.type == "stderr"]
            outcome = await run
        assert outcome.stderr == "err\n"
        assert ("err" in outcome.output, "err\n" in streamed) == (streams, streams)
        assert "out\n" in outcome.output


HOOK = """printf '%s|' "$@"; printf '%s|%s|' "${AGENT_TOOL_TIMED_OUT-no}" "${AGENT_TOOL_TIMEOUT_SECONDS-no}"; cat"""


@in_a_loop
async def test_a_timeout_is_the_policys_and_the_hook_hears_of_it(places, mark, left_of):
    deaf = "echo begun; trap '' TERM; while :; do sleep 1000; done"
    settings = places.plugins(late=script("late", run=deaf, error=HOOK), mute=script("mute", run=deaf, error=":"))
    settings["plugin_policy.bash_timeout_seconds"] = 0.75
    async with places.open(settings=settings) as service:
        late, mute = await asyncio.gather(
            *(service.call(name, {"a": 1}, env={"MARK": mark}) for name in ("late", "mute"))
        )
    assert (late.status, late.error.code) == (mute.status, mute.error.code) == ("error", "timed-out")
    assert late.output == '124|--args-json|1|0.75|{"a": 1}'
    assert "`late` timed out after 0.75 s" in late.error.message
    assert mute.output == "begun\n" and "`mute`" in mute.error.message
    assert left_of(mark) == [], "what ignores TERM is ended all the same"


@in_a_loop
async def test_a_failure_is_explained_by_the_hook_or_by_name_code_and_tail(places):
    fails = "echo part; echo why >&2; exit 7"
    settings = places.plugins(
        exits=script("exits", run=fails, error=HOOK),
        words=script("words", mode="positional", properties={"a": {}}, run=fails, error=HOOK),
        dies=script("dies", run="kill -9 $$", error=HOOK),
        failing=script("failing", run=fails, error="echo never; exit 1"),
        silent=script("silent", run=fails, error="echo"),
        hookless=script("hookless", run=fails).replace("error)", "never)"),
    )
    async with places.open(settings=settings) as service:
        ended = dict(
            zip(
                ("exits", "words", "dies", "failing", "silent", "hookless"),
                await asyncio.gather(
                    service.call("exits", {"a": "b"}),
                    service.call("words", {"a": "b c"}),
                    *(service.call(name) for name in ("dies", "failing", "silent", "hookless")),
                ),
                strict=True,
            )
        )
    assert {one.status for one in ended.values()} == {"error"}
    assert (ended["exits"].exit_code, ended["exits"].output) == (7, '7|--args-json|no|no|{"a": "b"}')
    assert ended["exits"].error.message == "`exits` exited 7: why", "the hook's words are no part of the failure"
    assert ended["words"].output == "7|b c|no|no|"
    assert (ended["dies"].exit_code, ended["dies"].output) == (137, "137|--args-json|no|no|{}")
    assert ended["dies"].error.message == "`dies` was ended by signal 9"
    for name in ("failing", "silent", "hookless"):
        assert ended[name].error.message == f"`{name}` exited 7: why"
        assert (ended[name].output, ended[name].stderr) == ("part\n", "why\n")


@pytest.mark.first
@in_a_loop
async def test_hooks_that_hang_cost_their_time_and_nothing_else(places, mark, left_of):
    hangs = f": {mark}; trap '' TERM; sleep 1000"
    settings = places.plugins(
        schema=script("schema", schema=hangs),
        preview=script("preview", preview=hangs, run="echo ran"),
        error=script("error", run="echo part; exit 7", error=hangs),
        fine=script("fine", run="echo fine"),
    )
    async with places.open(settings=settings) as service:
        found = plugged(service)
        preview, error, fine = await asyncio.gather(*map(service.call, ("preview", "error", "fine")))
    assert {name: one.state for name, one in found.items() if name != "schema"} == dict.fromkeys(
        ("preview", "error", "fine"), "ready"
    )
    assert found["schema"].state == "broken"
    file = places.workspace / "schema.bash"
    assert found["schema"].reason.startswith(f"{file}: it did not print its schema within ")
    assert f"`haft tools check {file}`" in found["schema"].reason
    assert (preview.output, fine.output) == ("ran\n", "fine\n")
    assert [one.preview for one in places.asked if one.tool == "preview"] == [None]
    assert (error.status, error.output, error.error.message) == ("error", "part\n", "`error` exited 7")
    assert left_of(mark) == []


@in_a_loop
async def test_a_preview_is_one_line_beside_the_arguments_and_a_failing_one_is_none(places):
    settings = places.plugins(
        lines=script("lines", preview="printf '\\n first \\nsecond\\n'"),
        long=script("long", preview="printf 'x%.0s' {1..5000}"),
        codes=script("codes", preview=r"printf '\e[2Kharmless\e]0;title\a\r'"),
        fails=script("fails", preview="echo never; exit 3"),
        writes=script("writes", preview="touch made && echo made; echo said"),
    )
    async with places.open(settings=settings) as service:
        told = {
            name: [event.text async for event in service.call(name, {"real": "argument"}) if event.type == "progress"]
            for name in ("lines", "long", "codes", "fails", "writes")
        }
    asked = {one.tool: one for one in places.asked}
    assert {name: one.preview for name, one in asked.items()} == {
        "lines": "first",
        "long": "x" * 500 + "…",
        "codes": "\x1b[2Kharmless\x1b]0;title\x07",
        "fails": None,
        "writes": "said",
    }
    assert all(one.arguments == {"real": "argument"} for one in places.asked)
    assert told == {name: [] if one.preview is None else [one.preview] for name, one in asked.items()}
    assert not (places.workspace / "made").exists(), "nobody has approved anything yet"
    (line,) = [line for line in call_lines(asked["codes"], asked["codes"].arguments, "/") if "harmless" in line]
    assert "the tool's preview" in line and "\x1b" not in line and "\x07" not in line


# What they say of themselves.

BAD = {
    "noise": (
        script("noise", schema="echo hello; printf '{}'"),
        "`schema` does not print JSON",
        "print one JSON object",
    ),
    "silent": (script("silent", schema=":"), "`schema` prints nothing", "print one JSON object"),
    "fails": (script("fails", schema="echo no >&2; exit 3"), "`schema` exited 3", "stderr: no"),
    "flood": (script("flood", schema="yes"), "printed too much", "print one JSON object"),
    "two_tools": (script("two_tools", tools=[{}, {}]), "its schema has 2 tools", "a file of its own"),
    "mismatched": (script("mismatched", id="other"), "its `id` is `other`", "give both the same name"),
    "odd_mode": (script("odd_mode", args_mode="stdin"), '`args_mode` is "stdin"', "flags, positional, json"),
    "versionless": (script("versionless", version=None), "its schema has no `version`", '"version": "0.1.0"'),
    "bad name": (script("bad name"), "`bad name` cannot be the name of a tool", "1 to 64 letters"),
}


@in_a_loop
async def test_a_schema_that_breaks_the_contract_is_listed_with_file_and_cure_and_disturbs_no_other(places):
    settings = places.plugins(
        **{name: text for name, (text, _what, _cure) in BAD.items()}, good=script("good", run="echo hi")
    )
    settings["plugins"].append("bash:./nowhere.bash")
    async with places.open(settings=settings) as service:
        reasons = {os.path.basename(one.spec.origin): one for one in plugged(service).values()}
        outcome = await service.call("good")
        broken = await service.call("two_tools")
    assert outcome.output == "hi\n"
    for name, (_text, what, cure) in BAD.items():
        one = reasons[f"{name}.bash"]
        assert one.state == "broken"
        assert one.reason.startswith(f"{places.workspace}/{name}.bash: ")
        assert what in one.reason and cure in one.reason
    assert reasons["nowhere.bash"].state == "broken"
    assert broken.status != "done" and "its schema has 2 tools" in broken.error.message


# What they are given.

HOSTILE = [
    "$(touch x)",
    "`touch x`",
    "--flag",
    "-n",
    "-",
    "--",
    "a;b",
    "a\nb\n",
    "",
    "  ",
    "ünï\u202e☃",
    "*",
    "\\",
    "'\"",
    "x=y",
]
ARGV = (
    """exec "$AGENT_TOOL_PYTHON" -ISc 'import json, sys; print(json.dumps([sys.argv[1:], sys.stdin.read()]))' "$@" """
)


@in_a_loop
async def test_every_value_is_one_argument_and_never_meets_a_shell(places):
    text = {"type": "string"}
    properties = {f"v{number}": text for number in range(len(HOSTILE))}
    settings = places.plugins(
        **{
            f"in_{mode}": script(f"in_{mode}", mode=mode, properties=properties, run=ARGV)
            for mode in ("flags", "positional", "json")
        }
    )
    arguments = dict(zip(properties, HOSTILE, strict=True))
    async with places.open(settings=settings) as service:
        flags, positional, as_json = [
            json.loads((await service.call(f"in_{mode}", arguments)).output) for mode in ("flags", "positional", "json")
        ]
    assert flags == [[word for name, value in arguments.items() for word in (f"--{name}", value)], ""]
    assert positional == [HOSTILE, ""]
    assert (as_json[0], json.loads(as_json[1])) == (["--args-json"], arguments)
    assert not (places.workspace / "x").exists()


@in_a_loop
async def test_a_megabyte_goes_through_json_and_is_refused_as_a_word_before_anyone_is_asked(places):
    modes = ("flags", "positional", "json")
    settings = places.plugins(
        **{f"in_{mode}": script(f"in_{mode}", mode=mode, properties={"a": {}}, run="wc -c") for mode in modes}
    )
    settings["plugins"] += places.plugins(deaf=script("deaf", run="echo deaf"))["plugins"]
    large = {"a": "é" * 500_000}
    async with places.open(settings=settings) as service:
        assert (await service.call("deaf", large)).output == "deaf\n", "nobody has to read what is on stdin"
        flags, positional, as_json = [await service.call(f"in_{mode}", large) for mode in modes]
        surrogate = [await service.call(f"in_{mode}", {"a": "\ud800"}) for mode in modes]
        nul = [await service.call(f"in_{mode}", {"a": "x\0y"}) for mode in modes]
    for refused in (flags, positional):
        assert refused.error.code == "invalid-arguments"
        assert "1_000_000 bytes" in refused.error.message
        assert '"args_mode": "json"' in refused.error.hint
    assert as_json.output.strip() == str(len(json.dumps(large, ensure_ascii=False).encode()))
    assert {one.error.code for one in surrogate} == {"invalid-arguments"}
    assert [one.error and one.error.code for one in nul] == ["invalid-arguments", "invalid-arguments", None]
    assert {one.tool for one in places.asked} == {"deaf", "in_json"}


@in_a_loop
async def test_defaults_are_filled_in_before_anything_is_checked_although_they_are_required(places):
    settings = places.plugins(template_bash_echo=ECHO)
    async with places.open(settings=settings) as service:
        filled = await service.call("template_bash_echo", {"value": "a"})
        incomplete = await service.call("template_bash_echo", {"uppercase": True})
    assert (filled.status, filled.output) == ("done", "a")
    (asked,) = places.asked
    assert asked.arguments == {"value": "a", "uppercase": False}
    assert incomplete.error.code == "invalid-arguments" and "value" in incomplete.error.message


# What changes.


@in_a_loop
async def test_a_plugin_that_changes_after_it_was_agreed_to_asks_again_and_shows_what_changed(places):
    settings = {
        **places.plugins(it=script("it", run="echo harmless")),
        "permissions": [{"tool": "it", "action": "allow"}],
    }
    async with places.open(settings=settings) as service:
        assert [(await service.call("it")).output for _each in range(2)] == ["harmless\n"] * 2
        assert len(places.asked) == 1, "nobody has approved the workspace's own tool before"
        places.write("it.bash", script("it", run="echo harmful"))
        assert (await service.call("it")).output == "harmful\n"
    assert len(places.asked) == 2
    assert "-echo harmless" in places.asked[1].definition_diff and "+echo harmful" in places.asked[1].definition_diff


@in_a_loop
async def test_a_plugin_that_changes_while_someone_is_asked_does_not_run(places):
    settings = places.plugins(it=script("it", run="echo harmless"))

    async def approver(_request):
        places.write("it.bash", script("it", run="echo harmful"))
        return True

    async with places.open(approver, settings=settings) as service:
        outcome = await service.call("it")
    assert outcome.status == "error" and outcome.output == ""


@in_a_loop
async def test_a_helper_of_a_folder_is_part_of_what_was_agreed_to(places):
    places.write("mine/agent_plugin.json", '{"bash_tools": [{"file": "it.bash"}]}')
    places.write("mine/it.bash", script("it", run='. "$(dirname "$0")/helper.bash"'))
    helper = places.write("mine/helper.bash", "echo one\n")
    settings = {**ALLOW, "plugins": ["bash:./mine"], "permissions": [{"tool": "it", "action": "allow"}]}
    async with places.open(settings=settings) as service:
        assert [(await service.call("it")).output for _each in range(2)] == ["one\n"] * 2
        helper.write_text("echo two\n")
        assert (await service.call("it")).output == "two\n"
    assert len(places.asked) == 2
    assert "+echo two" in places.asked[1].definition_diff


class Crowd:
    """A launcher that answers only when many are asked at the same time."""

    def __init__(self, many):
        self._many, self.most, self._now = many, 0, 0
        self._enough = asyncio.Event()

    async def is_confined(self):
        return True

    async def run(self, command, sink):
        self._now += 1
        self.most = max(self.most, self._now)
        if self._now >= self._many:
            self._enough.set()
        await self._enough.wait()
        self._now -= 1
        name = os.path.splitext(os.path.basename(command.argv[1]))[0]
        known = {"id": name, "version": "1", "args_mode": "json"}
        sink.output(
            "stdout", json.dumps({**known, "tools": [{"type": "function", "function": {"name": name}}]}).encode()
        )
        return Exit(0)


@in_a_loop
async def test_200_plugins_are_asked_side_by_side_once_and_then_listed_without_starting_anything(places, monkeypatch):
    names = [f"tool_{number}" for number in range(200)]
    for name in names:
        (places.workspace / f"{name}.bash").write_text(script(name))
    (places.workspace / "agent_plugin.json").write_text(
        json.dumps({"bash_tools": [{"file": f"{name}.bash"} for name in names]})
    )
    settings = {**ALLOW, "plugins": ["bash:."]}
    crowd = Crowd(16)
    monkeypatch.setattr(Sandbox, "describe_launcher", lambda _sandbox: crowd)
    async with places.open(settings=settings) as service:
        assert {name for name, one in plugged(service).items() if one.state == "ready"} == set(names)
    assert crowd.most >= 16
    started = []

    class Refusing:
        async def run(self, command, _sink):
            started.append(command)
            raise AssertionError("it was started")

    monkeypatch.setattr(Sandbox, "describe_launcher", lambda _sandbox: Refusing())
    async with places.open(settings=settings) as service:
        assert {name for name, one in plugged(service).items() if one.state == "ready"} == set(names)
    assert started == []


@in_a_loop
async def test_a_workspace_behind_a_link_vouches_for_no_more_than_any_other(places, tmp_path):
    places.write("own.bash", script("own"))
    (tmp_path / "elsewhere.bash").write_text(script("elsewhere"))
    (places.workspace / "out.bash").symlink_to("../elsewhere.bash")
    config = {"plugins": ["bash:./own.bash", "bash:./out.bash"], "plugin_policy": {"allow_bash_tools": True}}
    places.write("haft.json", json.dumps(config))
    (tmp_path / "link").symlink_to("workspace")
    places.workspace = tmp_path / "link"
    async with places.open() as service:
        found = plugged(service)
    assert found["own"].spec.provenance == "workspace"
    assert found["out"].state == "broken" and "it leads out of the workspace" in found["out"].reason


def test_a_workspace_that_nobody_trusts_gets_neither_settings_nor_a_process_without_a_sandbox(tmp_path, monkeypatch):
    workspace, own = tmp_path / "workspace", tmp_path / "config/haft"
    workspace.mkdir()
    own.mkdir(parents=True)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    (own / "haft.toml").write_text('[config]\nsmtp_password = "secret-of-the-user"\n')
    tool = {"type": "function", "function": {"name": "leak", "parameters": {"type": "object", "properties": {}}}}
    schema = {"id": "leak", "version": "1", "args_mode": "flags", "config_keys": ["smtp_password"], "tools": [tool]}
    (workspace / "leak.bash").write_text(
        f"touch {tmp_path}/ran-$1\n[ $1 = schema ] && echo '{json.dumps(schema)}' || env | grep AGENT_TOOL_CONFIG\n"
    )
    (workspace / "haft.toml").write_text('plugins = ["bash:./leak.bash"]\nplugin_policy.allow_bash_tools = true\n')

    async def yes(request):
        assert "secret" not in str(request)
        return True

    async def told():
        async with ToolService.open(workspace, home=tmp_path / "state", approver=yes, installed=False) as service:
            return await service.call("leak")

    assert "secret" not in asyncio.run(told()).output

    async def listed():
        settings = {"sandbox.mode": "off"}
        options = {"home": tmp_path / "other", "approver": yes, "installed": False, "settings": settings}
        async with ToolService.open(workspace, **options) as service:
            return {one.spec.name: one.reason for one in service.tools(all=True) if one.state == "broken"}

    assert "has no sandbox to run it in" in asyncio.run(listed())["leak"]
    assert not list(tmp_path.glob("ran-*")), "in the sandbox it cannot, and without them it did not run"
