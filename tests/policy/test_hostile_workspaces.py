"""Workspaces that set traps for lines that only read: in the sandbox that such lines get, no trap does anything.

Each trap is first sprung without a sandbox and without the neutral environment, so that it is known to work. Its
payload leaves a mark in three places that it could reach. Behind the sandbox of `read-only` the payload may run where
git cannot be kept from it; it can then leave no mark."""

import asyncio
import os
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from haft.contracts import Command, Limits
from haft.files import Root
from haft.sandbox import Sandbox

sys.path.insert(0, str(Path(__file__).parent))
from corpora.project import git

PLAIN = {"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"}


@dataclass(frozen=True, slots=True)
class Place:
    """A workspace with a trap in it, and where its payload leaves marks."""

    workspace: Path
    home: Path
    outside: Path

    @property
    def payload(self) -> Path:
        return self.workspace / "payload"

    def marks(self) -> list[Path]:
        places = (self.workspace, self.home, self.outside)
        return [path for place in places for path in place.rglob("*mark-of-the-payload*")]

    def config(self, *pairs: str) -> None:
        for pair in pairs:
            name, _, value = pair.partition("=")
            git(self.workspace, "config", name, value.replace("PAYLOAD", shlex.quote(str(self.payload))))


def monitor(place):
    place.config("core.fsmonitor=PAYLOAD")


def external_diff(place):
    place.config("diff.external=PAYLOAD")


def textconv(place):
    place.config("diff.trap.textconv=PAYLOAD")
    (place.workspace / ".gitattributes").write_text("* diff=trap\n")


def diff_driver(place):
    place.config("diff.trap.command=PAYLOAD")
    (place.workspace / ".gitattributes").write_text("* diff=trap\n")


def clean_filter(place):
    place.config("filter.trap.clean=PAYLOAD", "filter.trap.smudge=PAYLOAD", "filter.trap.required=true")
    (place.workspace / ".gitattributes").write_text("* filter=trap\n")
    (place.workspace / "a.txt").write_text("aleph\n")  # As long as before, so that git must read it.


def process_filter(place):
    place.config("filter.trap.process=PAYLOAD", "filter.trap.required=true")
    (place.workspace / ".git/info").mkdir(exist_ok=True)
    (place.workspace / ".git/info/attributes").write_text("* filter=trap\n")


def hooks_path(place):
    hooks = place.workspace / "hooks"
    hooks.mkdir()
    (hooks / "post-index-change").symlink_to(place.payload)
    place.config("core.hooksPath=hooks")


def index_hook(place):
    hook = place.workspace / ".git/hooks/post-index-change"
    hook.parent.mkdir(exist_ok=True)
    hook.symlink_to(place.payload)


def signature(place):
    place.config("gpg.program=PAYLOAD", "log.showSignature=true")
    tree = subprocess.check_output(["git", "-C", place.workspace, "write-tree"], text=True).strip()
    commit = (
        f"tree {tree}\nauthor A <a@example.org> 1700000000 +0000\ncommitter A <a@example.org> 1700000000 +0000\n"
        "gpgsig -----BEGIN PGP SIGNATURE-----\n \n aGVsbG8=\n -----END PGP SIGNATURE-----\n\nsigned\n"
    )
    made = subprocess.run(
        ["git", "-C", place.workspace, "hash-object", "-t", "commit", "-w", "--stdin"],
        input=commit, text=True, capture_output=True, check=True,
    ).stdout.strip()  # fmt: skip
    git(place.workspace, "update-ref", "refs/heads/main", made)


def included(place):
    (place.workspace / "settings").write_text(f'[core]\n\tfsmonitor = "{place.payload}"\n')
    place.config("include.path=../settings")


def included_on_condition(place):
    (place.workspace / "settings").write_text(f'[core]\n\tfsmonitor = "{place.payload}"\n')
    place.config("includeIf.onbranch:main.path=../settings")


def moved_repository(place):
    """`.git` is a file that leads to a repository with a trap."""
    monitor(place)
    (place.workspace / ".git").rename(place.workspace / "inner")
    (place.workspace / ".git").write_text("gitdir: inner\n")


def bare_repository(place):
    """The workspace itself looks like one."""
    shutil.rmtree(place.workspace / ".git")
    git(place.workspace, "init", "-q", "--bare", ".")
    (place.workspace / "config").write_text(
        f'[core]\n\trepositoryformatversion = 0\n\tbare = false\n\tworktree = "{place.workspace}"\n'
        f'\tfsmonitor = "{place.payload}"\n'
    )


def worktree_settings(place):
    place.config("extensions.worktreeConfig=true")
    (place.workspace / ".git/config.worktree").write_text(f'[core]\n\tfsmonitor = "{place.payload}"\n')


def submodule(place):
    """A repository in the repository, with a trap of its own."""
    inner = place.workspace / "inner"
    inner.mkdir()
    git(inner, "init", "-q", "-b", "main")
    (inner / "file").write_text("x\n")
    git(inner, "add", "file")
    git(inner, "commit", "-qm", "x")
    git(place.workspace, "add", "inner")
    git(place.workspace, "commit", "-qm", "with a repository inside")
    git(inner, "config", "core.fsmonitor", str(place.payload))


GIT_TRAPS = {
    "core.fsmonitor": (monitor, "git status"),
    "core.fsmonitor at git diff": (monitor, "git diff"),
    "core.fsmonitor at git ls-files": (monitor, "git ls-files -m"),
    "diff.external": (external_diff, "git diff"),
    "diff.external at git diff HEAD": (external_diff, "git diff HEAD"),
    "textconv at git diff": (textconv, "git diff"),
    "textconv at git log": (textconv, "git log -p"),
    "textconv at git show": (textconv, "git show HEAD"),
    "textconv at git blame": (textconv, "git blame a.txt"),
    "textconv at git grep": (textconv, "git grep --textconv alpha"),
    "diff driver": (diff_driver, "git diff"),
    "filter.clean": (clean_filter, "git diff"),
    "filter.clean at git status": (clean_filter, "git status"),
    "filter.process": (process_filter, "git diff"),
    "core.hooksPath": (hooks_path, "git status"),
    "post-index-change": (index_hook, "git status"),
    "gpg.program": (signature, "git log"),
    "gpg.program at git show": (signature, "git show"),
    "include.path": (included, "git status"),
    "includeIf": (included_on_condition, "git status"),
    "gitdir file": (moved_repository, "git status"),
    "bare repository": (bare_repository, "git status"),
    "config.worktree": (worktree_settings, "git status"),
    "repository inside": (submodule, "git status"),
}
QUIET = {
    "core.pager": (("core.pager=PAYLOAD", "pager.log=PAYLOAD", "pager.status=true"), "git log"),
    "pager.branch": (("pager.branch=PAYLOAD", "pager.diff=PAYLOAD"), "git branch; git diff"),
    "alias": (("alias.status=!PAYLOAD", "alias.log=!PAYLOAD"), "git status; git log"),
    "core.sshCommand": (("core.sshCommand=PAYLOAD", "remote.o.url=ssh://h/x"), "git remote -v"),
    "credential.helper": (("credential.helper=!PAYLOAD", "core.askPass=PAYLOAD"), "git remote -v"),
    "core.editor": (("core.editor=PAYLOAD", "sequence.editor=PAYLOAD"), "git log; git branch"),
    "init.templateDir": (("init.templateDir=hooks",), "git status"),
}
"""Settings that run nothing where a line only reads: a terminal, a remote side or an editor would have to be there."""


def plant(place, *names):
    for name in names:
        path = place.workspace / name
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(place.payload, path)


def npm_settings(place):
    settings = ("node-options=--require PAYLOAD", "script-shell=PAYLOAD", "git=PAYLOAD", "")
    (place.workspace / ".npmrc").write_text("\n".join(settings).replace("PAYLOAD", str(place.payload)))
    (place.workspace / ".yarnrc").write_text(f'yarn-path "{place.payload}"\n')
    (place.workspace / ".yarnrc.yml").write_text(f"yarnPath: {place.payload}\nplugins: [./payload]\n")
    scripts = '{"prelist": "./payload", "list": "./payload"}'
    (place.workspace / "package.json").write_text(f'{{"name": "p", "version": "1.0.0", "scripts": {scripts}}}\n')


def pip_settings(place):
    for name in ("pip.conf", "pip.ini", ".pip/pip.conf"):
        path = place.workspace / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"[global]\nlog = {place.workspace}/mark-of-the-payload-log\nindex-url = http://127.0.0.1:9/\n")
    for name in ("pip.py", "sitecustomize.py", "usercustomize.py"):
        (place.workspace / name).write_text(f"import os\nos.system({str(place.payload)!r})\n")


def start_up_files(place):
    for name in (".bashrc", ".profile", ".bash_profile", ".inputrc", ".gitconfig", ".config/git/config"):
        path = place.workspace / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{place.payload}\n")


def planted(*names):
    return lambda place: plant(place, *names)


PLANTED = {
    "programs": (planted("ls", "git", "cat", "sort", "npm", "bin/ls"), "ls; git status; cat a.txt | sort"),
    "programs in a directory": (planted("src/ls", "src/git"), "cd src && ls && git status"),
    "npm and yarn settings": (npm_settings, "npm list"),
    "pip settings": (pip_settings, "pip list"),
    "start-up files": (start_up_files, "ls; git log"),
    "node_modules": (planted("node_modules/.bin/ls", "node_modules/.bin/git"), "ls; git status; npm list"),
    "file names like options": (planted("--help", "-la", "-delete"), "ls -- *; wc -l ./*; wc -l ./-la"),
}


@pytest.fixture
def place(tmp_path):
    found = Place(tmp_path / "workspace", tmp_path / "home", tmp_path / "outside")
    for path in (found.workspace, found.home, found.outside):
        path.mkdir()
    git(found.workspace, "init", "-q", "-b", "main")
    (found.workspace / "a.txt").write_text("alpha\n")
    marks = (found.workspace, found.home, found.outside)
    touched = "\n".join(f"touch {shlex.quote(str(path))}/mark-of-the-payload-$$ 2>/dev/null" for path in marks)
    found.payload.write_text(f"#!/bin/sh\n{touched}\necho the payload ran\ntrue\n")
    found.payload.chmod(0o755)
    git(found.workspace, "add", "a.txt")
    git(found.workspace, "commit", "-qm", "one")
    (found.workspace / "a.txt").write_text("alpha\nbeta\n")
    return found


def sprung(place, command):
    """Run without a sandbox; what it said."""
    env = {**PLAIN, "HOME": str(place.home)}
    done = subprocess.run(
        ["bash", "-c", command],
        cwd=place.workspace,
        env=env,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=30,
    )
    return done.stdout + done.stderr


def in_sandbox(place, tmp_path, command):
    """Run as a line that passes unasked: in the sandbox of `read-only`, with what runs programs neutralised."""
    heard = bytearray()

    class Sink:
        def output(self, _stream, data):
            heard.extend(data)

        def processes_ended(self, _children): ...

    async def run():
        env = {**os.environ, "HOME": str(place.home), "PATH": f"{place.workspace}:.::{os.environ.get('PATH', '')}"}
        find = Root(str(place.workspace)).open_directory
        sandbox = Sandbox(str(place.workspace), str(tmp_path / "state"), env, find, Limits())
        try:
            missing = (await sandbox.ready()).missing()
            if missing:
                pytest.skip(f"the sandbox cannot be built whole here: {'; '.join(missing)}")
            return await sandbox.launcher("read-only", neutral=True).run(Command(["bash", "-c", command]), Sink())
        finally:
            sandbox.close()

    asyncio.run(run())
    return heard.decode(errors="replace")


@pytest.mark.parametrize("name", GIT_TRAPS)
def test_what_a_repository_runs_leaves_no_mark(place, tmp_path, name):
    trap, command = GIT_TRAPS[name]
    trap(place)
    for stamp in range(1_000_000_000, 1_000_000_005):
        os.utime(place.workspace / "a.txt", (stamp, stamp))  # So that git has to look at it again.
        sprung(place, command)
        if place.marks():
            break  # Git writes no index that is as young as its files: it may take another time.
    assert place.marks(), "the trap does not work"
    for mark in place.marks():
        mark.unlink()
    os.utime(place.workspace / "a.txt", (1_100_000_000, 1_100_000_000))
    said = in_sandbox(place, tmp_path, command)
    assert not place.marks(), said


@pytest.mark.parametrize("name", QUIET)
def test_settings_for_other_occasions_run_nothing(place, tmp_path, name):
    settings, command = QUIET[name]
    place.config(*settings)
    said = in_sandbox(place, tmp_path, command)
    assert not place.marks(), said
    assert "the payload ran" not in said


@pytest.mark.parametrize("name", PLANTED)
def test_what_lies_about_is_not_run(place, tmp_path, name):
    trap, command = PLANTED[name]
    trap(place)
    said = in_sandbox(place, tmp_path, command)
    assert not place.marks(), said
    assert "\nthe payload ran" not in f"\n{said}"


NEUTRALISED = ("core.fsmonitor", "core.hooksPath", "post-index-change", "gpg.program", "include.path", "gitdir file")


@pytest.mark.parametrize("name", NEUTRALISED)
def test_what_can_be_neutralised_does_not_even_run(place, tmp_path, name):
    trap, command = GIT_TRAPS[name]
    trap(place)
    assert "the payload ran" not in in_sandbox(place, tmp_path, command)


HONEST = ("git status", "git diff", "git diff --stat", "git log -p", "git show", "git stash list")


@pytest.mark.parametrize("command", HONEST)
def test_an_honest_repository_works_in_the_same_sandbox(place, tmp_path, command):
    plain = sprung(place, command)
    before = (place.workspace / ".git/index").read_bytes()
    os.utime(place.workspace / "a.txt")
    assert in_sandbox(place, tmp_path, command) == plain
    assert (place.workspace / ".git/index").read_bytes() == before


def test_a_link_that_leads_out_shows_nothing_of_the_host(place, tmp_path):
    (place.outside / "secret").write_text("a secret\n")
    (place.workspace / "link").symlink_to(place.outside)
    (place.workspace / "file").symlink_to(place.outside / "secret")
    assert "a secret" in sprung(place, "cat link/secret file")
    said = in_sandbox(place, tmp_path, "cat link/secret file; grep -r secret link/; git diff --no-index a.txt file")
    assert "a secret" not in said


@pytest.mark.parametrize("name", GIT_TRAPS)
def test_a_line_that_needs_no_approval_leaves_no_mark_when_haft_runs_it(place, tmp_path, name):
    from haft import ToolService

    trap, command = GIT_TRAPS[name]
    trap(place)
    before = set(place.marks())

    async def call():
        settings = {"approval.expires_seconds": 0}
        async with ToolService.open(place.workspace, home=tmp_path / "state", settings=settings) as service:
            return await service.call("shell", {"command": command})

    outcome = asyncio.run(call())
    assert set(place.marks()) == before
    # What does not pass unasked was not run.
    assert outcome.decision.action == "reject" or outcome.sandbox.profile == "read-only"
