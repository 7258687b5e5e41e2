"""What the specification of CDD's toolbox says, sentence by sentence: each test quotes the words that it holds the
installed executables to.

They are placed by the installed `cdd-toolbox` and run as a host would run them, in processes whose environment is PATH
and what the protocol sets, and nothing else. What the specification leaves open, and was settled for it, comes last.
"""

import ast
import asyncio
import json
import logging
import os
import re
import shutil
import signal
import subprocess
import sys
import sysconfig
from dataclasses import dataclass
from pathlib import Path

import pytest
from cdd.cli import main as cdd
from click.testing import CliRunner

from haft import ToolService
from haft.surfaces.cli.main import run as haft

PROJECT = Path(__file__).parents[2]
SCRIPTS = sysconfig.get_path("scripts")
PATH = os.pathsep.join([SCRIPTS, "/usr/bin", "/bin"])

ARGUMENTS = {
    "cdd-init": {},
    "cdd-start": {"track_name": "string"},
    "cdd-recite": {"track_name": "string"},
    "cdd-log": {"track_name": "string", "message": "string"},
    "cdd-archive": {"track_name": "string"},
    "cdd-view": {
        "track_name": "string",
        **dict.fromkeys(["archived", "spec", "plan", "log", "raw", "inbox"], "boolean"),
    },
    "cdd-agents": {"install": "boolean", "all": "boolean", "target": "string"},
    "cdd-delete": {"track_name": "string"},
    "cdd-version": {},
    "cdd-pack": {"focus": "string", "limit": "integer", "raw": "boolean"},
}
REQUIRED = {
    "cdd-start": {"track_name"},
    "cdd-archive": {"track_name"},
    "cdd-delete": {"track_name"},
    "cdd-pack": {"focus"},
}
DOCUMENTS = {".context/product.md", ".context/tech-stack.md", ".context/domain.md"}
OF_A_TRACK = {"spec.md", "plan.md", "decisions.md", "current_state.md", "metadata.json"}
SKILLS = ("cdd-close-track", "cdd-start-track", "cdd-work-the-plan")


@dataclass(frozen=True)
class Toolbox:
    """A directory with the executables."""

    path: Path

    def start(self, name, given="", *, at, action="execute", path=PATH, front=(), **more):
        """One of them as a process that ended."""
        text = given if isinstance(given, str) else json.dumps(given)
        if "stdin" not in more:
            more["input"] = text.encode("utf-8", "surrogatepass")
        env = {"PATH": path} if action is None else {"PATH": path, "TOOLBOX_ACTION": action}
        if not {"stdout", "stderr"} & more.keys():
            more["capture_output"] = True
        command = [*front, str(self.path / name)]
        return subprocess.run(command, cwd=at, env=env, timeout=60, check=False, **more)


@pytest.fixture(scope="module")
def toolbox(tmp_path_factory):
    """ "the system shall place all executables in that directory": by `cdd-toolbox --to DIR`."""
    directory = tmp_path_factory.mktemp("placed") / "toolbox"
    subprocess.run([f"{SCRIPTS}/cdd-toolbox", "--to", directory], env={"PATH": PATH}, check=True, capture_output=True)
    return Toolbox(directory)


@pytest.fixture(scope="module")
def described(toolbox, tmp_path_factory):
    """How each process ended that was asked to describe itself, by the executable's name."""
    empty = tmp_path_factory.mktemp("empty")
    return {name: toolbox.start(name, action="describe", at=empty) for name in ARGUMENTS}


@pytest.fixture
def bare_path(tmp_path):
    """Where a Python is, and no `cdd`."""
    folder = tmp_path / "bare"
    folder.mkdir()
    (folder / "python3").symlink_to(os.path.realpath(sys.executable))
    return str(folder)


@pytest.fixture
def fake(tmp_path):
    """A `cdd` that stands first on PATH: it notes the words that it got and what stdin held, then does as said."""
    folder = tmp_path / "fake"
    folder.mkdir()
    noted = tmp_path / "noted.json"

    def fake(does=""):
        program = folder / "cdd"
        note = f"open({str(noted)!r}, 'a').write(json.dumps([sys.argv[1:], sys.stdin.read()]) + '\\n')"
        program.write_text(f"#!{sys.executable} -IS\nimport json, os, sys\n{note}\n{does}\n")
        program.chmod(0o755)
        return os.pathsep.join([str(folder), PATH])

    fake.calls = lambda: [json.loads(line) for line in noted.read_text().splitlines()] if noted.exists() else []
    return fake


def tree(folder):
    """Every path below, with what a file holds."""
    return {str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None for path in folder.rglob("*")}


def files_of(folder):
    return {path for path, content in tree(folder).items() if content is not None}


# The life of a track, once by the executables and once by `cdd` itself.

MESSAGE = '--tokens, "because" of\ntwo servers: größe'
LIFE = {
    "init": ("init", {}, []),
    "init again": ("init", {}, []),
    "start": ("start", {"track_name": "add-login"}, ["add-login"]),
    "start again": ("start", {"track_name": "add-login"}, ["add-login"]),
    "log": ("log", {"track_name": "add-login", "message": MESSAGE}, ["add-login", "--", MESSAGE]),
    "view": ("view", {}, []),
    "view log": ("view", {"track_name": "add-login", "log": True, "raw": True}, ["add-login", "--log", "--raw"]),
    "view inbox": ("view", {"inbox": True}, ["--inbox"]),
    "recite": ("recite", {"track_name": "add-login"}, ["add-login"]),
    "recite which": ("recite", {}, []),
    "archive too early": ("archive", {"track_name": "add-login"}, ["add-login"]),
    "archive": ("archive", {"track_name": "add-login"}, ["add-login"]),
    "view archived": (
        "view",
        {"track_name": "add-login", "archived": True, "plan": True},
        ["add-login", "--archived", "--plan"],
    ),
    "pack": ("pack", {"focus": "expiry of sessions"}, ["--focus", "expiry of sessions"]),
    "delete": ("delete", {"track_name": "setup"}, ["setup"]),
    "agents": ("agents", {"target": "claude"}, ["--target", "claude"]),
    "version": ("version", {}, []),
}
OPEN = "# P\n\n## One\n- [x] a\n\n## Two\n- [ ] b\n\n## Three\n- [ ] c\n"


def prepare(step, workspace):
    """What a person does before a step."""
    plan = workspace / ".context/tracks/add-login/plan.md"
    if step == "recite":
        plan.write_text(OPEN)
    if step == "archive":
        plan.write_text(OPEN.replace("[ ]", "[x]"))
    if step == "pack":
        (workspace / ".context/specs/sessions.md").write_text("# Sessions\n\nTheir expiry is an hour.\n")


@dataclass(frozen=True)
class Step:
    code: int
    out: str
    err: str
    before: dict
    after: dict


def live(workspace, start):
    found = {}
    for step, (command, given, words) in LIFE.items():
        prepare(step, workspace)
        before = tree(workspace)
        done = start(command, given, words)
        found[step] = Step(done.returncode, done.stdout.decode(), done.stderr.decode(), before, tree(workspace))
    return found


@pytest.fixture(scope="module")
def life(toolbox, tmp_path_factory):
    workspace = tmp_path_factory.mktemp("life")
    return live(workspace, lambda command, given, _words: toolbox.start(f"cdd-{command}", given, at=workspace))


# 1. Overview.


def test_all_subcommands_are_exposed_as_individual_executable_wrappers(toolbox, described):
    """ "The CDD CLI is fully compatible with Amp's toolbox system." "All subcommands are exposed as individual
    executable wrappers that follow Amp's tool protocol (describe/execute actions), allowing Amp to discover and execute
    them via the AMP_TOOLBOX environment variable." """
    asked = subprocess.run([f"{SCRIPTS}/cdd", "--help"], env={"PATH": PATH}, capture_output=True, text=True, check=True)
    commands = re.findall(r"^  ([a-z]+) ", asked.stdout.partition("Commands:")[2], re.MULTILINE)
    assert {f"cdd-{one}" for one in commands} == set(ARGUMENTS) == {path.name for path in toolbox.path.iterdir()}
    assert all(os.access(toolbox.path / name, os.X_OK) for name in ARGUMENTS)
    assert {name: done.returncode for name, done in described.items()} == dict.fromkeys(ARGUMENTS, 0)


class Place:
    """A workspace with haft over it, which finds the toolbox by AMP_TOOLBOX and asks nobody."""

    def __init__(self, tmp_path):
        self.workspace, self.state = tmp_path / "workspace", tmp_path / "state"
        (self.workspace / ".git").mkdir(parents=True)

    def run(self, body):
        async def yes(_request):
            return True

        async def main():
            async with ToolService.open(self.workspace, home=self.state, approver=yes) as service:
                return await body(service)

        return asyncio.run(main())


@pytest.fixture
def place(tmp_path, monkeypatch, toolbox):
    made = Place(tmp_path)
    monkeypatch.chdir(made.workspace)
    monkeypatch.setenv("PATH", PATH)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("HAFT_HOME", str(made.state))
    monkeypatch.setenv("AMP_TOOLBOX", str(toolbox.path))
    log = logging.getLogger("haft")
    monkeypatch.setattr(log, "handlers", log.handlers)
    monkeypatch.setattr(log, "propagate", log.propagate)
    return made


def test_the_tools_shall_be_discoverable_when_amp_toolbox_points_to_that_directory(place):
    """ "The tools shall be discoverable by Amp when the AMP_TOOLBOX environment variable points to that directory."
    And each is called as any other tool of haft: what it made can be taken back, every file of it and no other."""
    before = tree(place.workspace)

    async def body(service):
        found = {one.spec.name: one for one in service.tools(all=True) if one.spec.kind == "amp-toolbox"}
        made = await service.call("tb__cdd-init", {})
        files = files_of(place.workspace)
        started = await service.call("tb__cdd-start", {"track_name": "add-login"})
        refused = await service.call("tb__cdd-start", {"track_name": "../x"})
        both = files_of(place.workspace)
        undone = [(await service.undo(one.run_id)).status for one in (started, made)]
        return found, made, files, started, refused, both, undone

    found, made, files, started, refused, both, undone = place.run(body)
    assert {name: one.state for name, one in found.items()} == {f"tb__{name}": "ready" for name in ARGUMENTS}
    properties = found["tb__cdd-view"].spec.input_schema["properties"]
    assert {name: one["type"] for name, one in properties.items()} == ARGUMENTS["cdd-view"]
    assert (made.status, made.stderr) == ("done", "") and "made .context/tracks/setup/" in made.output
    assert files == DOCUMENTS | {f".context/tracks/setup/{file}" for file in OF_A_TRACK}
    assert started.status == "done" and both - files == {f".context/tracks/add-login/{file}" for file in OF_A_TRACK}
    assert (refused.status, refused.exit_code) == ("error", 1) and "cannot be a track's name" in refused.output
    assert undone == ["done", "done"]
    assert tree(place.workspace) == before


# 2.1 Describe Action.


@pytest.mark.parametrize("name", ARGUMENTS)
def test_describe_shall_output_valid_json(described, name):
    """ "When a tool is invoked with TOOLBOX_ACTION=describe, the system shall output valid JSON describing the tool."
    "The JSON output shall include name (string), description (string), and args (object)." """
    said = json.loads(described[name].stdout)
    assert set(said) == {"name", "description", "args"}
    assert said["name"] == name
    assert isinstance(said["description"], str) and len(said["description"].split()) > 2
    assert isinstance(said["args"], dict)


@pytest.mark.parametrize("name", ARGUMENTS)
def test_each_argument_shall_be_a_tuple_of_type_and_help_text(described, name):
    """ "Each argument in the args object shall be defined as a tuple of [type, help_text]." """
    args = json.loads(described[name].stdout)["args"]
    assert all(isinstance(one, list) and len(one) == 2 for one in args.values())
    assert {argument: kind for argument, (kind, _help) in args.items()} == ARGUMENTS[name]
    assert all(isinstance(text, str) and text.strip() for _kind, text in args.values())
    optional = {argument for argument, (_kind, text) in args.items() if "optional" in text.lower()}
    assert optional == set(args) - REQUIRED.get(name, set())


def test_describe_shall_not_write_any_output_to_stderr(described):
    """ "The system shall not write any output to stderr during the describe action." """
    assert {name: done.stderr for name, done in described.items()} == dict.fromkeys(ARGUMENTS, b"")


# 2.2 Execute Action.

PASSED = {
    "cdd-init": [({}, ["init"])],
    "cdd-start": [({"track_name": "-größe 'b'"}, ["start", "--", "-größe 'b'"])],
    "cdd-log": [({"track_name": "a", "message": MESSAGE}, ["log", "--", "a", MESSAGE])],
    "cdd-log of the only track": [({"message": MESSAGE}, ["log"])],
    "cdd-view": [
        ({}, ["view"]),
        (
            {"track_name": "a", **dict.fromkeys(["archived", "spec", "plan", "log", "raw", "inbox"], True)},
            ["view", "--archived", "--spec", "--plan", "--log", "--raw", "--inbox", "--", "a"],
        ),
        ({"track_name": None, "archived": False, "spec": True}, ["view", "--spec"]),
    ],
    "cdd-agents": [
        ({"install": True, "all": True, "target": "cursor"}, ["agents", "--install", "--target=cursor", "--all"])
    ],
    "cdd-pack": [
        ({"focus": "--a b"}, ["pack", "--focus=--a b"]),
        ({"focus": "a", "limit": 2, "raw": True}, ["pack", "--focus=a", "--limit=2", "--raw"]),
    ],
}


@pytest.mark.parametrize("name", PASSED)
def test_execute_reads_json_arguments_from_stdin_and_executes_the_corresponding_command(toolbox, fake, tmp_path, name):
    """ "When a tool is invoked with TOOLBOX_ACTION=execute, the system shall read JSON arguments from stdin." "The
    system shall execute the corresponding cdd command with the provided arguments." And settled: "An absent optional
    argument is not passed on, so that the program's own default holds." """
    path = fake()
    for given, _words in PASSED[name]:
        assert toolbox.start(name.partition(" ")[0], given, at=tmp_path, path=path).returncode == 0
    stdin = MESSAGE if name.endswith("only track") else ""
    assert fake.calls() == [[words, stdin] for _given, words in PASSED[name]]


def test_execute_shall_inherit_stdio_from_the_parent_process(toolbox, fake, tmp_path):
    """ "The system shall inherit stdio from the parent process to pipe output and error directly to Amp." The very
    files: what the program writes goes through nobody's hands."""
    tells = "os.write(1, b'out \\xff %d' % os.fstat(1).st_ino); os.write(2, b'err \\xff %d' % os.fstat(2).st_ino)"
    path = fake(tells)
    with open(tmp_path / "out", "wb") as out, open(tmp_path / "err", "wb") as err:
        assert toolbox.start("cdd-version", at=tmp_path, path=path, stdout=out, stderr=err).returncode == 0
        assert (tmp_path / "out").read_bytes() == b"out \xff %d" % os.fstat(out.fileno()).st_ino
        assert (tmp_path / "err").read_bytes() == b"err \xff %d" % os.fstat(err.fileno()).st_ino


def test_a_missing_optional_argument_has_a_sensible_default(toolbox, tmp_path):
    """ "If an optional argument is missing, the system shall use sensible defaults (e.g., empty string, empty array,
    false)." Nothing at all on stdin is no argument at all."""
    assert toolbox.start("cdd-start", {"track_name": "a"}, at=tmp_path).returncode == 0
    assert toolbox.start("cdd-view", {"raw": True}, at=tmp_path).stdout == b"a\n"
    of_the_only_one = toolbox.start("cdd-recite", "", at=tmp_path)
    assert of_the_only_one.returncode == 0 and b"[ ]" in of_the_only_one.stdout
    assert toolbox.start("cdd-log", {"track_name": "a"}, at=tmp_path).returncode == 1
    assert toolbox.start("cdd-log", {}, at=tmp_path).returncode == 1
    decisions = tmp_path / ".context/tracks/a/decisions.md"
    assert b"] " not in decisions.read_bytes()
    assert toolbox.start("cdd-log", {"message": "-hi"}, at=tmp_path).returncode == 0
    assert decisions.read_bytes().endswith(b"] -hi\n")


# 2.3 Command Mapping.


def test_each_subcommand_shall_be_a_separate_executable_tool(described):
    """ "The system shall expose each cdd subcommand as a separate executable tool (e.g., cdd-init, cdd-start,
    cdd-recite, cdd-log, cdd-archive, cdd-view, cdd-agents, cdd-delete, cdd-version)." """
    named = re.findall(r"cdd-[a-z]+", test_each_subcommand_shall_be_a_separate_executable_tool.__doc__)
    assert len(named) == 9
    assert {name: json.loads(described[name].stdout)["name"] for name in named} == {name: name for name in named}


def timeless(text):
    text = re.sub(r"\d{14}_", "MOMENT_", text)
    text = re.sub(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\dZ?", "MOMENT", text)
    return re.sub(r"\b\d+ (second|minute)s?\b", "A WHILE", text)


def outcome(step):
    """What can be seen of it, up to the time of day."""
    files = {timeless(path): None if held is None else timeless(held.decode()) for path, held in step.after.items()}
    return step.code, timeless(step.out), timeless(step.err), files


def test_the_semantic_behavior_of_each_original_command_shall_be_preserved(life, tmp_path, monkeypatch):
    """ "The system shall preserve the semantic behavior of each original command." The life of a track once more, by
    `cdd` itself: the same words, the same codes, the same files."""
    assert {f"cdd-{command}" for command, _given, _words in LIFE.values()} == set(ARGUMENTS)
    monkeypatch.chdir(tmp_path)

    def start(command, _given, words):
        done = CliRunner().invoke(cdd, [command, *words], catch_exceptions=False)
        return subprocess.CompletedProcess(words, done.exit_code, done.stdout_bytes, done.stderr_bytes)

    original = live(tmp_path, start)
    for step, done in life.items():
        assert outcome(done) == outcome(original[step]), step


def changed(step):
    """The paths that are new or hold something else, and those that are gone."""
    new = {path for path, held in step.after.items() if path not in step.before or step.before[path] != held}
    return new, set(step.before) - set(step.after)


def test_the_whole_life_of_a_track_through_the_executables_alone(life):
    """Its files are those of the table of commands, and no others are touched."""
    assert {name: step.code for name, step in life.items() if step.code} == {
        "start again": 1,
        "recite which": 1,
        "archive too early": 1,
    }
    folders = {".context", ".context/tracks", ".context/archive", ".context/specs", ".context/tracks/setup"}
    setup = {f".context/tracks/setup/{file}" for file in OF_A_TRACK}
    track = {f".context/tracks/add-login/{file}" for file in OF_A_TRACK}
    assert changed(life["init"]) == (folders | DOCUMENTS | setup, set())
    assert changed(life["start"]) == (track | {".context/tracks/add-login"}, set())
    assert changed(life["log"]) == ({".context/tracks/add-login/decisions.md"}, set())
    assert changed(life["delete"]) == (set(), setup | {".context/tracks/setup"})
    still = set(life) - {"init", "start", "log", "archive", "delete"}
    assert {name: changed(life[name]) for name in still} == dict.fromkeys(still, (set(), set()))

    began = json.loads(life["start"].after[".context/tracks/add-login/metadata.json"])["started_at"]
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", began)
    decisions = life["log"].after[".context/tracks/add-login/decisions.md"].decode()
    assert re.search(
        r'^\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\] --tokens, "because" of\n +two servers: größe$', decisions, re.M
    )
    assert life["view log"].out == decisions
    assert "## Two\n- [ ] b" in life["recite"].out and "## Three" not in life["recite"].out
    assert {"add-login", "setup"} <= set(re.findall(r"[\w-]+", life["recite which"].err))
    assert "line 7: b" in life["archive too early"].err and life["archive too early"].out == ""

    (archived,) = set(re.findall(r"\.context/archive/\d{14}_add-login", life["archive"].out))
    assert re.search(r"after \d+ (second|minute)", life["archive"].out)
    moved = {f"{archived}/{file}" for file in OF_A_TRACK} | {archived}
    assert changed(life["archive"]) == (moved, track | {".context/tracks/add-login"})
    metadata = json.loads(life["archive"].after[f"{archived}/metadata.json"])
    assert (metadata["started_at"], metadata["archived_at"] >= began) == (began, True)
    assert life["archive"].after[f"{archived}/decisions.md"].decode() == decisions
    assert "- [x] b" in life["view archived"].out
    assert "Their expiry is an hour." in life["pack"].out
    assert re.fullmatch(r"\d+\.\d+\.\d+\S*\n", life["version"].out)


AGENTS = {
    "agent": {f".agent/skills/{skill}/SKILL.md" for skill in SKILLS},
    "antigravity": {f".agent/workflows/{skill}.md" for skill in SKILLS},
    "agents": {f".agents/skills/{skill}/SKILL.md" for skill in SKILLS},
    "claude": {f".claude/skills/{skill}/SKILL.md" for skill in SKILLS},
    "gemini": {f".gemini/skills/{skill}/SKILL.md" for skill in SKILLS},
    "cursor": {f".cursor/rules/{skill}.mdc" for skill in SKILLS},
}


def test_agents_are_installed_for_each_target(toolbox, tmp_path):
    """Into the chosen agent's folder; an older version is kept; without a target it is an error."""
    there = set()
    for target, files in AGENTS.items():
        done = toolbox.start("cdd-agents", {"install": True, "target": target}, at=tmp_path)
        assert (done.returncode, done.stderr) == (0, b"")
        assert files_of(tmp_path) - there == files
        there |= files
    older = tmp_path / ".claude/skills" / SKILLS[0] / "SKILL.md"
    current = older.read_text()
    older.write_text("mine")
    assert toolbox.start("cdd-agents", {"install": True, "all": True}, at=tmp_path).returncode == 0
    assert older.read_text() == current and older.with_name("SKILL.md.bak").read_text() == "mine"
    assert len(files_of(tmp_path)) == len(there) + 1
    before = tree(tmp_path)
    lost = toolbox.start("cdd-agents", {"install": True}, at=tmp_path)
    assert (lost.returncode, lost.stdout) == (1, b"") and b"needs an agent" in lost.stderr
    assert tree(tmp_path) == before


# 2.4 Toolbox Directory.


def recipe(target, **variables):
    """What `make TARGET` runs, as one text for the shell."""
    (found,) = re.findall(rf"^{target}:.*\n((?:\t.*\n)+)", (PROJECT / "Makefile").read_text(), re.MULTILINE)
    for name, value in variables.items():
        found = found.replace(f"$({name})", value)
    assert "$(" not in found
    return "set -e\n" + found.replace("\t@", "")


def test_a_directory_specified_during_build_receives_all_executables(toolbox, bare_path, tmp_path):
    """ "When a toolbox directory is specified during build or installation, the system shall place all executables in
    that directory." By `make toolbox TOOLBOX_DIR=DIR` they run the cdd of this build, wherever PATH leads."""
    directory = tmp_path / "a toolbox"
    text = recipe("toolbox", BIN=SCRIPTS, TOOLBOX_DIR=str(directory))
    done = subprocess.run(["sh", "-c", text], env={"PATH": PATH}, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [str(directory / name) for name in sorted(ARGUMENTS)]
    for name in ARGUMENTS:
        assert os.access(directory / name, os.X_OK)
        placed = (directory / name).read_text()
        assert placed.replace(repr(f"{SCRIPTS}/cdd"), "'cdd'") == (toolbox.path / name).read_text() != placed
    away = Toolbox(directory).start("cdd-version", at=tmp_path, path=bare_path)
    assert away.returncode == 0 and re.fullmatch(rb"\d+\.\d+\.\d+\S*\n", away.stdout)
    unsaid = recipe("toolbox", BIN=SCRIPTS, TOOLBOX_DIR="")
    refused = subprocess.run(["sh", "-c", unsaid], capture_output=True, text=True, check=False, cwd=tmp_path)
    assert (refused.returncode, refused.stdout) == (2, "") and "TOOLBOX_DIR=DIR" in refused.stderr


# 2.5 Error Handling.


@pytest.mark.parametrize("name", REQUIRED)
def test_a_missing_required_argument_is_a_non_zero_exit(toolbox, fake, tmp_path, name):
    """ "If a required argument is missing, the system shall exit with a non-zero code." "The system shall write error
    messages to stderr for visibility in Amp." Nothing is run."""
    done = toolbox.start(name, {}, at=tmp_path, path=fake())
    (missing,) = REQUIRED[name]
    assert (done.returncode, done.stdout) == (1, b"")
    assert f"`{missing}` is missing" in done.stderr.decode()
    assert fake.calls() == []


def test_the_exit_code_of_a_failing_subcommand_is_propagated(toolbox, fake, tmp_path):
    """ "If the underlying cdd subcommand fails, the system shall propagate the exit code." And settled: "Death by
    signal: 128 + n." """
    done = toolbox.start("cdd-archive", {"track_name": "a"}, at=tmp_path, path=fake("sys.exit(7)"))
    assert (done.returncode, done.stdout, done.stderr) == (7, b"", b"")
    for number in (signal.SIGKILL, signal.SIGTERM):
        path = fake(f"os.kill(os.getpid(), {int(number)})")
        assert toolbox.start("cdd-init", at=tmp_path, path=path).returncode == 128 + number
    assert len(fake.calls()) == 3


def test_error_messages_go_to_stderr(toolbox, bare_path, tmp_path):
    """ "The system shall write error messages to stderr for visibility in Amp." Those of cdd; and where there is no
    cdd, that there is none."""
    done = toolbox.start("cdd-view", at=tmp_path)
    assert (done.returncode, done.stdout) == (1, b"") and done.stderr.startswith(b"Error: There is no .context")
    lost = toolbox.start("cdd-init", at=tmp_path, path=bare_path)
    assert (lost.returncode, lost.stdout) == (127, b"") and b"`cdd` cannot be started" in lost.stderr


# What was settled for what the specification leaves open.


def test_the_wrapped_program_gets_an_empty_stdin(toolbox, fake, tmp_path):
    """ "The wrapped program gets an empty stdin unless an argument is mapped to it." Nor can it read the
    arguments again."""
    (tmp_path / "given").write_text('{"track_name": "a"}')
    again = "try: os.lseek(0, 0, 0)\nexcept OSError: pass\nprint(os.read(0, 99))"
    with open(tmp_path / "given", "rb") as given:
        done = toolbox.start("cdd-log", at=tmp_path, path=fake(again), stdin=given)
    assert (done.stdout, done.stderr) == (b"b''\n", b"")
    assert fake.calls() == [[["log", "--", "a"], ""]]


@pytest.mark.parametrize("action", [None, "", "Describe", "run"])
def test_an_action_that_is_unset_or_unknown_is_answered_with_usage(toolbox, fake, tmp_path, action):
    """ "TOOLBOX_ACTION unset or unknown: usage on stderr, exit 2." """
    done = toolbox.start("cdd-delete", {"track_name": "a"}, at=tmp_path, path=fake(), action=action)
    assert (done.returncode, done.stdout) == (2, b"")
    assert b"usage: TOOLBOX_ACTION=describe|execute" in done.stderr
    assert fake.calls() == []


BAD = {
    "broken": '{"track_name": "a"',
    "a list": '["a"]',
    "two": '{"track_name": "a"} {}',
    "no text": "\udcff",
    "another argument": '{"track_name": "a", "trak": "b"}',
    "a wrong type": '{"track_name": ["a"]}',
}


@pytest.mark.parametrize("given", BAD.values(), ids=BAD)
def test_bad_json_is_an_error_on_stderr_and_a_non_zero_exit(toolbox, fake, tmp_path, given):
    """ "a missing required argument and malformed JSON are an error on stderr and a non-zero exit". Nothing is run,
    though without arguments it would be."""
    done = toolbox.start("cdd-recite", given, at=tmp_path, path=fake())
    assert (done.returncode, done.stdout) == (1, b"")
    assert done.stderr.startswith(b"cdd-recite: ") and b"Traceback" not in done.stderr
    assert fake.calls() == []


NAMES = {"parent": "../x", "separator": "a/b", "empty": "", "long": "a" * 300, "control": "a\x1b[31m\nb"}


@pytest.mark.parametrize("name", [name for name, arguments in ARGUMENTS.items() if "track_name" in arguments])
def test_every_track_name_is_checked(toolbox, tmp_path, name):
    """ "Every track name is checked (no separators, no ..), in every command". Nothing is written."""
    inside = tmp_path / "inside"
    for folder in (".context/x", ".context/tracks/a/b", ".context/archive", ".context/specs"):
        (inside / folder).mkdir(parents=True)
        (inside / folder / "plan.md").write_text("# P\n\n- [x] a\n")
    before = tree(tmp_path)
    for bad in NAMES.values():
        done = toolbox.start(name, {"track_name": bad, **({"message": "m"} if name == "cdd-log" else {})}, at=inside)
        assert (done.returncode, done.stdout) == (1, b"")
        assert b"cannot be a track's name" in done.stderr and b"\x1b" not in done.stderr
    assert tree(tmp_path) == before


@pytest.mark.parametrize("name", ARGUMENTS)
def test_an_executable_needs_pythons_own_library_alone(toolbox, name):
    """So that any Python that PATH finds runs it."""
    tree_of = ast.parse((toolbox.path / name).read_text())
    imported = {one.name for node in ast.walk(tree_of) if isinstance(node, ast.Import) for one in node.names}
    imported |= {node.module for node in ast.walk(tree_of) if isinstance(node, ast.ImportFrom)}
    assert {module.partition(".")[0] for module in imported} <= sys.stdlib_module_names


def test_an_executable_runs_by_an_isolated_python_that_has_nothing_installed(toolbox, fake, tmp_path):
    """The system's own, where there is one."""
    python = shutil.which("python3", path="/usr/bin:/bin") or os.path.realpath(sys.executable)
    front = [python, "-I", "-S", "-W", "error"]
    done = toolbox.start("cdd-start", {"track_name": "a"}, at=tmp_path, path=fake(), front=front)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert fake.calls() == [[["start", "--", "a"], ""]]


def test_the_executables_are_those_that_haft_writes_now(place, toolbox, tmp_path, capsys):
    """ "The general capability behind it: any command line becomes a toolbox." They are kept as they were made."""
    to = str(tmp_path / "now")
    assert haft(("-q", "toolbox", "wrap", "--click", "cdd.cli:main", "--to", to)) == 0, capsys.readouterr().err
    now = tree(tmp_path / "now")
    old = {name for name, text in tree(toolbox.path).items() if now.get(name) != text} | (set(now) - set(ARGUMENTS))
    assert not old, f"these are not what `haft toolbox wrap` writes: {sorted(old)}; run `make wrappers`"
