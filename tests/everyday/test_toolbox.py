"""Tools as people publish them, in the languages they write them in: each runs without a word of configuration, or says
in one line what it has to be granted, and runs once it is."""

import http.server
import os
import shutil
import subprocess
import tempfile
import threading
from pathlib import Path

import pytest
from uv import find_uv_bin

from haft import ToolService
from sampling import SELDOM

pytestmark = pytest.mark.every_user(share=SELDOM)

HERE = Path(__file__).parent
TOOLBOXES = ("toolbox", "package/toolbox", "python_package/toolbox")
SECRETS = {
    "SLACK_WEBHOOK_URL": "hook-of-the-team-0123456789",
    "LINEAR_API_KEY": "lin_api_0123456789",
    "CALENDAR_TOKEN": "calendar-0123456789",
}
FILES = {
    "README.md": "# Title\n\ntext\n\n## Use\n\n### More\n",
    "notes.txt": "the cat and the dog and the bird\n",
    "data.csv": "name,amount\na,1\nb,2\nc,4\n",
    "app.log": "10:00 INFO started\n10:01 ERROR no disk\n10:02 WARN hot\n",
    "package.json": '{"name": "site", "version": "1.4.2", "scripts": {"test": "vitest"}}\n',
    "src/one.ts": "export function first() {}\n\nexport class Second {}\n",
    "src/two.py": "# TODO: mend this\nx = 1\n",
}
NEEDED = {
    "word_frequency": "zsh",
    "path_parts": "fish",
    "log_grep": "perl",
    "convert_units": "tclsh",
    "code_outline": "bun",
    "http_status": "curl",
    "git_branch_diff": "jq",
    "hash_file": "jq",
    "column_sum": "awk",
    **dict.fromkeys(
        ("semver_bump", "fetch_json", "markdown_toc", "team_calendar", "glob_files", "check_schema"), "node"
    ),
}
PLAIN = {
    "current_time": ({"zone": "Europe/Madrid"}, "CE"),
    "count_lines": ({"extension": "md"}, "7"),
    "git_branch_diff": ({"base": "main"}, "added.txt | 1 +"),
    "todo_add": ({"text": "buy: milk", "urgent": True}, "- [ ] (!) buy: milk"),
    "hash_file": ({"path": "notes.txt"}, "5e39e4d8cd8ffb85ed10736336d9c1e52bda0a02de9e1874ce5fb99c3434a870"),
    "find_todos": ({"dir": "src"}, "src/two.py line 1:# TODO: mend this"),
    "slugify": ({"title": "A Plain Title"}, "a-plain-title"),
    "release_notes": ({"count": 1}, "feat - a second file"),
    "host_of": ({"url": "https://example.org:8443"}, "example.org"),
    "word_frequency": ({"path": "notes.txt"}, "3 the"),
    "path_parts": ({"path": "src/one.ts"}, "directory src\nfile one.ts"),
    "column_sum": ({"path": "data.csv", "column": 2}, "7"),
    "log_grep": ({"path": "app.log", "level": "WARN"}, "10:02 WARN hot"),
    "convert_units": ({"miles": 2}, "3.22 km"),
    "csv_summary": ({"path": "data.csv"}, "amount: sum 7, mean 2.33333"),
    "json_query": ({"file": "package.json", "query": "scripts.test"}, '"vitest"'),
    "env_lines": ({"setting": "PORT", "help": "Where it listens: a number"}, "documented PORT, reviewed at 09h30"),
    "sqlite_query": ({"database": "rows.db", "sql": "select 6 * 7"}, "[42]"),
    "text_wrap": ({"path": "notes.txt", "width": 12}, "the cat and\nthe dog and\nthe bird"),
    "semver_bump": ({"part": "minor"}, "1.5.0"),
    "markdown_toc": ({"file": "README.md"}, "- Title\n  - Use\n    - More"),
    "code_outline": ({"file": "src/one.ts"}, "1: function first\n3: class Second"),
    "glob_files": ({"ending": ".ts"}, "src/one.ts"),
    "author_initials": ({"name": "Ada Lovelace"}, "AL"),
}
WITHHELD = {
    "notify_slack": ({"message": "hello"}, "SLACK_WEBHOOK_URL", "would post 5 characters to a hook of 27 characters"),
    "linear_issues": ({}, "LINEAR_API_KEY", "signed in with a key of 18 characters"),
    "team_calendar": ({}, "CALENDAR_TOKEN", "token of 19 characters"),
}
NETWORK = {
    "http_status": ("/", "is 200"),
    "fetch_title": ("/", "A page"),
    "fetch_json": ("/data.json", '{"answer":42}'),
}


class Page(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        text = b'{"answer": 42}' if self.path.endswith(".json") else b"<title>A page</title>"
        self.send_response(200)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_words):
        pass


@pytest.fixture(scope="module")
def address():
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Page) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """A person's home, with their tools and what other programs keep there."""
    home = tmp_path_factory.mktemp("home")
    for name in {box.partition("/")[0] for box in TOOLBOXES}:
        shutil.copytree(HERE / name, home / "code" / name)
    (home / ".aws").mkdir()
    (home / ".aws/credentials").write_text("[default]\nkey = 0123456789\n[work]\nkey = 9876543210\n")
    return home


@pytest.fixture(scope="module")
def workspace():
    """Not in /tmp: there each call has a /tmp of its own."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as workspace:
        yield Path(workspace)


@pytest.fixture(scope="module")
def service(workspace, home):
    for name, text in FILES.items():
        (workspace / name).parent.mkdir(exist_ok=True)
        (workspace / name).write_text(text)
    git = ["git", "-C", str(workspace), "-c", "user.name=A", "-c", "user.email=a@example.org"]
    subprocess.run([*git, "init", "-q", "-b", "main"], check=True)
    subprocess.run([*git, "add", "."], check=True)
    subprocess.run([*git, "commit", "-qm", "chore: first"], check=True)
    subprocess.run([*git, "switch", "-qc", "feature"], check=True)
    (workspace / "added.txt").write_text("one\n")
    subprocess.run([*git, "add", "."], check=True)
    subprocess.run([*git, "commit", "-qm", "feat: a second file"], check=True)

    async def yes(_request):
        return True

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", str(home))
        patch.setenv("XDG_CONFIG_HOME", str(home / ".config"))
        patch.setenv("PATH", os.pathsep.join([os.environ["PATH"], os.path.dirname(find_uv_bin())]))
        patch.setenv("AMP_TOOLBOX", os.pathsep.join(str(home / "code" / box) for box in TOOLBOXES))
        for name, value in SECRETS.items():
            patch.setenv(name, value)
        with ToolService.open_sync(workspace, home=home / "state", approver=yes) as service:
            yield service


def call(service, name, arguments=None, **options):
    if name in NEEDED and shutil.which(NEEDED[name]) is None:
        pytest.skip(f"{NEEDED[name]} is not installed")
    return service.call(f"tb__{name}", arguments or {}, thread="T-everyday", **options).wait(60)


def told(outcome):
    """The lines that a person is told about an outcome."""
    failure = [outcome.error.message, outcome.error.hint or ""] if outcome.error else []
    return [line for text in [*failure, *outcome.notes] for line in text.splitlines()]


@pytest.mark.parametrize("name", PLAIN)
def test_a_tool_that_needs_nothing_runs_without_configuration(service, name):
    arguments, expected = PLAIN[name]
    outcome = call(service, name, arguments)
    assert outcome.status == "done", outcome.error
    assert expected in outcome.output
    assert not outcome.notes


@pytest.mark.parametrize("name", WITHHELD)
def test_a_tool_that_misses_its_variable_says_how_to_pass_it_and_then_runs(service, name):
    arguments, variable, expected = WITHHELD[name]
    (line,) = [line for line in told(call(service, name, arguments)) if f"--env {variable}" in line]
    assert SECRETS[variable] not in line
    outcome = call(service, name, arguments, grants={"env": [variable]})
    assert outcome.status == "done"
    assert expected in outcome.output
    assert not outcome.notes


@pytest.mark.parametrize("name", NETWORK)
def test_a_tool_that_misses_the_network_says_how_to_open_it_and_then_runs(service, address, name):
    path, expected = NETWORK[name]
    (line,) = [
        line for line in told(call(service, name, {"url": "http://everyday.example" + path})) if "--network" in line
    ]
    assert line
    outcome = call(service, name, {"url": address + path}, grants={"network": True})
    assert outcome.status == "done"
    assert expected in outcome.output
    assert not outcome.notes


def test_a_tool_that_misses_a_file_of_the_home_says_how_to_let_it_read_there_and_then_runs(service, home):
    file = str(home / ".aws/credentials")
    (line,) = [line for line in told(call(service, "bucket_list")) if "--read" in line]
    assert ".aws/credentials" in line
    outcome = call(service, "bucket_list", grants={"read": [file]})
    assert outcome.status == "done"
    assert "profiles: default, work" in outcome.output


def test_one_tool_reads_in_tmp_what_another_one_wrote_there(service):
    assert call(service, "export_report", {"rows": 10}).status == "done"
    assert call(service, "sum_report").output == "55\n"


def test_a_tool_whose_library_is_not_installed_says_which_and_runs_once_it_is(service, home):
    outcome = call(service, "check_schema")
    assert outcome.status == "error"
    assert "Cannot find package 'everyday-schema'" in outcome.error.message
    library = home / "code/package/node_modules/everyday-schema"
    library.mkdir(parents=True)
    (library / "package.json").write_text('{"name": "everyday-schema", "type": "module", "exports": "./index.js"}')
    (library / "index.js").write_text("export const parse = () => 'it is fine';\n")
    outcome = call(service, "check_schema")
    assert outcome.status == "done"
    assert outcome.output == "it is fine\n"


def test_every_tool_here_is_called_by_some_test():
    written = {path.name for box in TOOLBOXES for path in (HERE / box).iterdir()}
    assert written == {*PLAIN, *WITHHELD, *NETWORK, "bucket_list", "export_report", "sum_report", "check_schema"}
    assert len(written) >= 30
