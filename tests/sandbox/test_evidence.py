"""Real messages of programs that the sandbox or a limit stopped are recognised; similar messages are not."""

import os
import socket

import pytest

from haft.contracts import Confinement, Limits
from haft.sandbox.evidence import (
    HostFacts,
    diagnose,
    looked_for_credentials,
    swallowed_failure,
    waited_for_network,
)

pytestmark = pytest.mark.every_user

WORKSPACE = "/srv/project"
LAYERS = ("namespaces", "landlock")


@pytest.fixture
def home(tmp_path):
    """A hidden home with something in it."""
    (tmp_path / "secret").write_text("x")
    return str(tmp_path)


@pytest.fixture
def said(home):
    """What is made of some output, in the sandbox of a call that may write the workspace."""

    def said(output, host=None, **confinement):
        given = {
            "profile": "workspace", "network": False, "writable": (WORKSPACE,), "hidden": (home, "/run"),
            "layers": LAYERS, **confinement,
        }  # fmt: skip
        return diagnose(
            output.replace("HOME", home), Confinement(**given), Limits(), HostFacts(WORKSPACE, home, **(host or {}))
        )

    return said


NETWORK = [
    "curl: (6) Could not resolve host: example.com",
    "curl: (7) Failed to connect to 93.184.216.34 port 443 after 0 ms: Couldn't connect to server",
    "wget: unable to resolve host address ‘example.com’",
    "fatal: unable to access 'https://github.com/x/y/': Could not resolve host: github.com",
    ("ssh: Could not resolve hostname github.com: Temporary failure in name resolution\n"
    "fatal: Could not read from remote repository.\n\n"
    "Please make sure you have the correct access rights\nand the repository exists."),
    ("npm error code EAI_AGAIN\nnpm error syscall getaddrinfo\nnpm error errno EAI_AGAIN\n"
    "npm error request to https://registry.example/x failed, reason: getaddrinfo EAI_AGAIN registry.example"),
    "npm ERR! code ENOTFOUND\nnpm ERR! network request to https://registry.example/x failed",
    ("WARNING: Retrying (Retry(total=0, connect=None)) after connection broken by 'NewConnectionError("
    "'<pip._vendor.urllib3.connection.HTTPSConnection object at 0x7f>: Failed to establish a new connection: "
    "[Errno -3] Temporary failure in name resolution')': /simple/x/\n"
    "ERROR: Could not find a version that satisfies the requirement x (from versions: none)\n"
    "ERROR: No matching distribution found for x"),
    ("error: Failed to fetch: `https://index.example/simple/x/`\n  Caused by: client error (Connect)\n"
    "  Caused by: dns error: failed to lookup address information: Temporary failure in name resolution"),
    "Caused by:\n  [6] Could not resolve hostname (Could not resolve host: index.crates.io)",
    ("go: example.com/x: Get \"https://proxy.golang.org/x\": dial tcp: lookup proxy.golang.org: "
    "Temporary failure in name resolution"),
    "OSError: [Errno 101] Network is unreachable",
    "urllib.error.URLError: <urlopen error [Errno -2] Name or service not known>",
    "    errno: -3001,\n    code: 'EAI_AGAIN',\n    syscall: 'getaddrinfo',\n    hostname: 'example.com'\n  }\n}",
    "Err:1 http://deb.debian.org/debian bookworm InRelease\n  Temporary failure resolving 'deb.debian.org'",
    "bash: connect: Network is unreachable\nbash: line 1: /dev/tcp/1.1.1.1/80: Network is unreachable",
    "lookup failed: TypeError: fetch failed",
    "error: Unable to connect. Is the computer able to access the url?",
    "Get \"https://api.example/x\": dial tcp: lookup api.example: no such host",
    "socket.gaierror: [Errno -5] No address associated with hostname",
    "error sending request for url (https://api.example/): client error (Connect): dns error",
    "Could not connect to server: java.net.UnknownHostException: api.example",
    "error: Failed to download https://python.example/3.13.tar.gz\n  Caused by: dns error: no record found",
]  # fmt: skip

WRITE = [
    "touch: cannot touch '/etc/x': Read-only file system",
    "OSError: [Errno 30] Read-only file system: '/etc/x'",
    "bash: line 1: /etc/x: Read-only file system",
    "mkdir: cannot create directory ‘/usr/lib/x’: Read-only file system",
    "mv: cannot move '/srv/project/a' to '/etc/y': Read-only file system",
    "cp: cannot create regular file '/usr/x': Read-only file system",
    "sed: couldn't open temporary file /etc/sedgwEHw9: Read-only file system",
    'error: Read-only file system (os error 30) at path "/usr/share/x"',
    ("Error: EROFS: read-only file system, open '/etc/x'\n    at Object.openSync (node:fs:573:18) {\n  errno: -30,\n"
    "  code: 'EROFS',\n  syscall: 'open',\n  path: '/etc/x'\n}\n\nNode.js v20.20.2"),
    "open /usr/local/bin/x: read-only file system",
    "java.io.FileNotFoundException: /etc/x (Read-only file system)",
]  # fmt: skip

PROTECTED = {
    "error: could not write config file .git/config: Device or resource busy": ".git/config",
    "error: could not lock config file .git/config: Read-only file system": ".git/config",
    "bash: line 1: .git/hooks/pre-commit: Read-only file system": ".git/hooks",
    f"touch: cannot touch '{WORKSPACE}/.vscode/tasks.json': Read-only file system": ".vscode",
    "rm: cannot remove '.envrc': Device or resource busy": ".envrc",
    f"mv: cannot move 'x' to '{WORKSPACE}/.git/hooks': Device or resource busy": ".git/hooks",
    "mv: cannot move '../.git' to '../.git/config': Device or resource busy": ".git/config",
}

READ = [
    "cat: HOME/secret: No such file or directory",
    "cat: ~/secret: No such file or directory",
    "FileNotFoundError: [Errno 2] No such file or directory: 'HOME/secret'",
    "Error: ENOENT: no such file or directory, open 'HOME/secret'",
    "bash: line 1: HOME/secret: No such file or directory",
    "sh: 1: cannot open HOME/secret: No such file",
    "sh: 1: HOME/secret: not found",
]

LIMITS = {
    "OSError: [Errno 27] File too large": "max_written_file_bytes",
    "dd: error writing 'big': File too large": "max_written_file_bytes",
    "bash: line 1:    10 File size limit exceeded(core dumped) dd": "max_written_file_bytes",
    "Error: EFBIG: file too large, write": "max_written_file_bytes",
    "OSError: [Errno 24] Too many open files: '/dev/null'": "max_open_files",
    "Error: EMFILE: too many open files, open 'x'": "max_open_files",
}

NONE = [
    "",
    "bash: line 1: nosuch: command not found",
    "ls: cannot access '/srv/project/x': No such file or directory",
    "cat: nofile: No such file or directory",
    "cat: HOME/nothing: No such file or directory",
    "cat: /srv/project/HOME: No such file or directory",
    "sh: 1: open HOME/secret",
    "HOME/secret is fine",
    "curl: (22) The requested URL returned error: 404 Not Found",
    "curl: (7) Failed to connect to localhost port 1 after 0 ms: Couldn't connect to server",
    "ConnectionRefusedError: [Errno 111] Connection refused",
    "connect ECONNREFUSED 127.0.0.1:1",
    "/usr/bin/ld: net.o: undefined reference to `getaddrinfo'",
    "test_getaddrinfo.py::test_one FAILED",
    "the network is slow",
    "ModuleNotFoundError: No module named 'nope'",
    "error: package `x` not found in registry",
    "rm: cannot remove 'mounted': Device or resource busy",
    "umount: /mnt: target is busy",
    "bash: line 1: /etc/shadow: Permission denied",
    "413 Request Entity Too Large",
    "AssertionError: expected 'EROFS' to be thrown",
    "No space left on device",
    "Error: Cannot find module 'zod'\nRequire stack:\n- HOME/secret",
    "Error [ERR_MODULE_NOT_FOUND]: Cannot find package 'zod' imported from HOME/secret",
    'error: Cannot find package "zod" from "HOME/secret"',
    "error: No interpreter found for Python 3.13 in managed installations or search path",
    "TypeError: fetch failed\n  [cause]: Error: connect ECONNREFUSED 127.0.0.1:1",
]


@pytest.mark.parametrize("output", NETWORK)
def test_the_network_is_missed(output, said):
    error = said(output)
    assert error is not None and error.code == "sandbox-denied"
    assert "network" in error.message
    assert (
        error.hint == "to allow it: add `--network=HOST` to this call, "
        "or write a rule: `haft permissions add allow … --network=HOST`"
    )
    assert said(output, network=True) is None


@pytest.mark.parametrize("output", WRITE)
def test_for_a_directory_of_the_system_no_grant_is_suggested(output, said):
    error = said(output)
    assert error is not None and error.code == "sandbox-denied"
    assert "outside of what it may write" in error.message
    assert "--write" not in error.hint and "belongs to the system" in error.hint


@pytest.mark.parametrize("output", PROTECTED)
def test_something_protected_is_not_written(output, said):
    error = said(output)
    assert error is not None and error.code == "sandbox-denied"
    assert f"`{PROTECTED[output]}` is protected" in error.message
    assert f"`--write /srv/project/{PROTECTED[output]}` to this call" in error.hint


@pytest.mark.parametrize("output", READ)
def test_something_hidden_is_not_read(output, said, home):
    error = said(output)
    assert error is not None and error.code == "sandbox-denied"
    assert f"`{home}/secret` is hidden" in error.message
    assert f"`--read {home}/secret` to this call" in error.hint
    assert said(output, readable=(home,)) is None


@pytest.mark.parametrize("output", LIMITS)
def test_a_limit_is_recognised(output, said):
    error = said(output)
    assert error is not None and error.code == "limit-exceeded"
    assert error.limit == LIMITS[output]
    assert f"limits.{LIMITS[output]}" in error.hint


@pytest.mark.parametrize("output", NONE)
def test_other_failures_are_not_blamed_on_the_sandbox(output, said):
    assert said(output) is None


def test_a_call_that_may_only_read_is_told_so(said):
    for output in ("touch: cannot touch 'x': Read-only file system", f"{WORKSPACE}/x: Read-only file system"):
        error = said(output, profile="read-only", writable=())
        assert error is not None and "the tool may only read" in error.message


def test_without_a_sandbox_nothing_is_blamed_on_it(said):
    for output in (*NETWORK, *WRITE, *READ):
        assert said(output, layers=()) is None


REFUSED = [
    "curl: (7) Failed to connect to 127.0.0.1 port PORT after 0 ms: Couldn't connect to server",
    "curl: (7) Failed to connect to localhost port PORT: Connection refused",
    "npm error connect ECONNREFUSED 127.0.0.1:PORT",
    "Error: connect ECONNREFUSED ::1:PORT",
    (
        "HTTPConnectionPool(host='127.0.0.1', port=PORT): Max retries exceeded with url: /simple/x (Caused by "
        "NewConnectionError('Failed to establish a new connection: [Errno 111] Connection refused'))"
    ),
    (
        "error: Failed to fetch: http://127.0.0.1:PORT/simple/x/\n  cause: tcp connect error\n"
        "  cause: Connection refused (os error 111)"
    ),
    (
        "Looking in indexes: http://localhost:PORT/simple\nWARNING: Retrying after connection broken by "
        "'NewConnectionError('[Errno 111] Connection refused')': /simple/x/\nERROR: No matching distribution for x"
    ),
]


@pytest.mark.parametrize("output", REFUSED)
def test_a_server_of_this_machine_is_missed_where_there_is_one(output, said):
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        output = output.replace("PORT", str(server.getsockname()[1]))
        assert said(output) is None  # bound, and not listening: nobody is there
        server.listen()
        error = said(output)
        assert error is not None and "it has no network" in error.message
        assert said(output, network=True) is None


def test_the_last_word_counts(said):
    error = said("touch: cannot touch '/etc/x': Read-only file system\ncurl: (6) Could not resolve host: example.com")
    assert "network" in error.message


def test_long_output_is_looked_at_from_its_end(said):
    noise = "all is well\n" * 10_000
    assert said(noise + NETWORK[0]) is not None
    assert said(NETWORK[0] + "\n" + noise) is None


def test_long_lines_are_shown_in_short(said):
    error = said("x" * 100_000 + " Read-only file system")
    assert len(error.message) < 400


def test_a_script_whose_interpreter_is_hidden_names_that(said, home, tmp_path):
    (tmp_path / "tools/bin").mkdir(parents=True)
    (tmp_path / "tools/bin/python").touch()
    (tmp_path / "own").mkdir()
    (tmp_path / "own/tool").write_text(f"#!{home}/tools/bin/python\n")
    host = {"shown": (f"{home}/own",)}
    error = said("bash: line 1: HOME/own/tool: cannot execute: required file not found", host=host)
    assert f"`{home}/tools/bin/python` is hidden" in error.message
    assert f"`--read {home}/tools` to this call" in error.hint
    (tmp_path / "own/tool").write_text("#!/usr/bin/env python3\n")
    assert said("bash: line 1: HOME/own/tool: not found", host=host) is None


def test_a_program_of_an_environment_in_the_workspace_is_said_to_be_off_path(said, tmp_path):
    (tmp_path / ".venv/bin").mkdir(parents=True)
    (tmp_path / ".venv/bin/pytest").touch(mode=0o755)
    confinement = Confinement("workspace", network=False, layers=LAYERS, hidden=("/run",))
    host = HostFacts(str(tmp_path), "/nowhere", path=f"/usr/bin:{tmp_path}/.venv/bin")
    error = diagnose("bash: line 1: pytest: command not found", confinement, Limits(), host)
    assert error.code == "sandbox-denied" and "`.venv/bin/pytest`" in error.hint
    assert diagnose("bash: line 1: other: command not found", confinement, Limits(), host) is None


def test_an_existing_file_is_named_itself_and_quoted(said, tmp_path):
    place = tmp_path / "a;b"
    place.mkdir()
    (place / "file").touch()
    error = said(f"bash: line 1: {place}/new: Read-only file system".replace(";", "x"))
    assert "--write" in error.hint or "no right" in error.hint
    error = said(f"x: {tmp_path}/secret: Read-only file system")
    assert f"`--write {tmp_path}/secret`" in error.hint


def test_of_a_directory_elsewhere_the_grant_is_named(said, tmp_path):
    (tmp_path / "out").mkdir()
    error = said(f"touch: cannot touch '{tmp_path}/out/new': Read-only file system")
    assert f"`--write {tmp_path}/out`" in error.hint


def test_a_home_as_a_whole_and_what_lies_above_it_are_not_suggested(said, home, tmp_path):
    for place in (home, str(tmp_path.parent)):
        hint = said(f"touch: cannot touch '{place}/new': Read-only file system").hint
        assert hint == "to allow it: `--write PATH`, once you know what it wants there"


def test_what_nobody_may_open_is_not_offered(said):
    error = said("bash: /proc/self/setgroups: Read-only file system")
    assert "--write" not in error.hint and "no grant opens the host" in error.hint


def test_of_a_worktree_the_whole_repository_is_named(said, tmp_path):
    common = tmp_path / "main/.git"
    (common / "worktrees/w").mkdir(parents=True)
    output = f"fatal: Unable to create '{common}/worktrees/w/index.lock': Read-only file system"
    assert f"`--write {common}`" in said(output, host={"repository": str(common)}).hint


def test_a_call_that_ran_out_of_time_had_no_network_only_where_it_says_so():
    assert waited_for_network("npm http fetch attempt 1 failed with EAI_AGAIN")
    assert not waited_for_network("compiling 1 of 300")
    assert not waited_for_network("")


def test_curls_own_exit_code_tells_where_it_says_nothing(home):
    confinement = Confinement("workspace", network=False, hidden=(home,), layers=LAYERS)
    host = HostFacts(WORKSPACE, home)
    assert "could not resolve a host" in diagnose("", confinement, Limits(), host, 6).message
    assert diagnose("", confinement, Limits(), host, 7) is None
    assert diagnose("", Confinement("workspace", network=True, layers=LAYERS), Limits(), host, 6) is None


@pytest.mark.parametrize("output", NETWORK)
def test_a_network_failure_that_was_caught_is_told_with_the_grant(output, home):
    confinement = {"profile": "workspace", "hidden": (home,), "layers": LAYERS}
    found = swallowed_failure(f"{output}\nwent on without\n", Confinement(**confinement, network=False))
    assert "it has no network" in found.message and "`--network=HOST`" in found.hint
    assert swallowed_failure(output, Confinement(**confinement, network=True)) is None
    assert "never" in swallowed_failure(output, Confinement(**confinement, network=False, never_network=True)).hint


@pytest.mark.parametrize("output", NONE)
def test_other_words_are_not_told_as_a_network_failure(output, home):
    assert swallowed_failure(output, Confinement("workspace", network=False, hidden=(home,), layers=LAYERS)) is None


CREDENTIALS = {
    "Could not read ~/.aws/credentials, skipping": ".aws/credentials",
    'Unable to locate credentials. You can configure credentials by running "aws configure".': ".aws/credentials",
    "warning: HERE/.netrc does not exist": ".netrc",
    "To get started with GitHub CLI, please run:  gh auth login": ".config/gh/hosts.yml",
    "npm error code ENEEDAUTH": ".npmrc",
    "$HOME/.npmrc not found": ".npmrc",
    "no .netrc: please create one": ".netrc",
}


@pytest.mark.parametrize("words", CREDENTIALS)
def test_a_file_with_credentials_that_is_hidden_is_told_with_the_grant(words, home):
    path = os.path.join(home, CREDENTIALS[words])
    words = words.replace("HERE", home)
    confinement = {"profile": "workspace", "network": False, "hidden": (home,), "layers": LAYERS}
    host = HostFacts(WORKSPACE, home)
    assert looked_for_credentials(words, Confinement(**confinement), host) == []  # It is not there.
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w") as file:
        file.write("x")
    ((found, how),) = looked_for_credentials(words, Confinement(**confinement), host)
    assert found == path and f"`--read {path}`" in how
    assert looked_for_credentials(words, Confinement(**confinement, readable=(path,)), host) == []
    for other in (f"wrote {path}", "could not read elsewhere/.netrc", "cannot open /srv/.aws/credentials"):
        assert looked_for_credentials(other, Confinement(**confinement), host) == []


def test_of_credentials_behind_a_link_it_is_said_that_no_grant_opens_them(home, tmp_path):
    (tmp_path / "dotfiles").mkdir()
    (tmp_path / "dotfiles/netrc").write_text("x")
    (tmp_path / ".netrc").symlink_to(tmp_path / "dotfiles/netrc")
    confinement = Confinement("workspace", network=False, hidden=(home,), layers=LAYERS)
    ((_path, how),) = looked_for_credentials("~/.netrc not found", confinement, HostFacts(WORKSPACE, home))
    assert "--read" not in how and "is a link to" in how


@pytest.mark.parametrize(
    "place", [".ssh/id_rsa", ".ssh", ".ssh/config", ".gnupg/private-keys-v1.d", "keys/server.pem", "linked", ""]
)
def test_no_tool_is_helped_to_private_keys_by_its_words(said, home, place):
    for name in (".ssh/id_rsa", ".ssh/config", ".gnupg/private-keys-v1.d", "keys/server.pem"):
        os.makedirs(os.path.dirname(os.path.join(home, name)), exist_ok=True)
        open(os.path.join(home, name), "w").close()
    os.symlink(".ssh/id_rsa", os.path.join(home, "linked"))
    path = os.path.join(home, place).rstrip("/")
    views = {"is_in_view": lambda _path: False}
    for error in (
        said(f"cat: {path}: No such file or directory"),
        said(f"cat: {path}: No such file or directory", session=True),
        said(f"cat: {path}: No such file or directory", host=views, unasked=True),
    ):
        told = f"{error.message} {error.hint}"
        assert f"`{path}`" in told and "private keys" in told
        assert "--read" not in told and "grant" not in told


def test_other_hidden_files_are_still_named_with_the_grant(said, home):
    assert f"--read {home}/secret" in said("cat: HOME/secret: No such file or directory").hint


@pytest.mark.parametrize(
    ("output", "grant"),
    [
        (f"EROFS: read-only file system, open '{WORKSPACE}/a.txt'", 'write = ["."]'),
        ("getaddrinfo ENOTFOUND api.example", 'network = ["HOST"]'),
        ("cat: HOME/secret: No such file or directory", "read = ["),
    ],
)
def test_a_denial_of_a_server_names_the_line_to_add_below_its_table(said, output, grant):
    hint = said(output, session=True, profile="read-only", writable=(), entry="below `[providers.files]`").hint
    assert hint.startswith(f"to allow it: grant = {{{grant}") and "below `[providers.files]`" in hint
    assert "plugin" not in hint


def test_the_grant_for_a_server_of_a_json_file_is_json(said):
    output = f"EROFS: read-only file system, open '{WORKSPACE}/a.txt'"
    entry = "in the entry `files` of /w/.mcp.json"
    hint = said(output, session=True, profile="read-only", writable=(), entry=entry).hint
    assert hint == f'to allow it: `"grant": {{"write": ["."]}}` {entry}. It then holds for every call of this server'


def test_a_server_that_would_change_its_own_installation_is_told_to_keep_its_files_elsewhere(said):
    output = "EROFS: read-only file system, open '/var/tmp/state/servers/k/w/node_modules/memory/dist/memory.jsonl'"
    error = said(
        output, host={"state_home": "/var/tmp/state"}, session=True, profile="read-only", entry="below `[providers.m]`"
    )
    assert "a server cannot change its own installation" in error.message
    assert "an option or a variable" in error.hint and 'grant = {write = ["."]} below `[providers.m]`' in error.hint
