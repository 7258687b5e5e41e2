"""Real git inside of calls: whatever it does is committed with its repository, undone without a trace, and redone; what
it could be made to run later on the host does not come in unasked. And a tree as large as package managers make them.
"""

import asyncio
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from haft.service import ToolService
from sampling import IS_AGAIN, IS_WHOLE, SELDOM

sys.path.insert(0, str(Path(__file__).parent))
import nasty
from fingerprint import difference, fingerprint

pytestmark = [
    pytest.mark.every_user(share=SELDOM),
    pytest.mark.skipif(sys.platform != "linux", reason="calls work above the workspace only on Linux"),
    pytest.mark.skipif(shutil.which("git") is None, reason="git is not on this machine"),
]

ENVIRONMENT = {
    "GIT_AUTHOR_NAME": "A", "GIT_AUTHOR_EMAIL": "a@example.org", "GIT_COMMITTER_NAME": "C",
    "GIT_COMMITTER_EMAIL": "c@example.org", "GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": "/dev/null",
}  # fmt: skip


def git(directory, *words):
    done = subprocess.run(
        ["git", *words], cwd=directory, env={**os.environ, **ENVIRONMENT}, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def repository(path):
    """One with two branches that can be merged, and something to stash."""
    path.mkdir(parents=True, exist_ok=True)
    git(path, "init", "-q", "-b", "main", "--template=")
    for name in ("file", "lib/one", "lib/two"):
        (path / name).parent.mkdir(exist_ok=True)
        (path / name).write_text(f"{name}\n" * 5)
    git(path, "add", ".")
    git(path, "commit", "-qm", "first")
    git(path, "checkout", "-qb", "side")
    (path / "lib/two").write_text("side\n")
    git(path, "commit", "-qam", "side")
    git(path, "checkout", "-q", "main")
    (path / "file").write_text("main\n" + "file\n" * 5)
    git(path, "commit", "-qam", "second")


@pytest.fixture
def workspace(tmp_path):
    repository(tmp_path / "workspace")
    yield tmp_path / "workspace"
    nasty.erase(os.fsencode(tmp_path))
    tmp_path.mkdir()


async def yes(_request):
    return True


def with_service(workspace, go, **settings):
    async def main():
        async with ToolService.open(
            workspace, approver=yes, home=workspace.parent / "home", installed=False,
            settings={"limits.max_seconds": 300, **settings},
        ) as service:  # fmt: skip
            return await go(service)

    return asyncio.run(main())


async def call(service, command, **options):
    return await service.call("shell", {"command": f"set -e\n{command}", "env": ENVIRONMENT}, **options)


def is_sound(workspace):
    """What git says of it, without writing anything."""
    git(workspace, "fsck", "--full", "--strict")
    return git(workspace, "--no-optional-locks", "status", "--porcelain=v2", "--branch")


AT_WORK = {
    "commit": "echo more >> file; git commit -qam more",
    "branch": "git branch new; git branch -m side other",
    "checkout": "git checkout -q side; git checkout -qb third",
    "merge": "git merge -q --no-edit side",
    "merge that meets a conflict": "git checkout -q side; echo x > file; git commit -qam x; git merge main || true",
    "rebase": "git checkout -q side; git rebase -q main",
    "stash": "echo more >> file; echo new > new; git stash -q -u; git stash apply -q",
    "rename of a file": "git mv file renamed; git commit -qm renamed",
    "gc": "git gc -q --prune=now",
    "tag and reset": "git tag -am v1 v1; git reset -q --hard HEAD~1",
    "worktree": "git worktree add -q -b tree inside; echo t > inside/t; cd inside; git add t; git commit -qm t",
    "remote": "git remote add origin https://example.org/r.git; git update-ref refs/remotes/origin/main HEAD; "
    "git branch -q -u origin/main",
    "user": "git config user.name Someone; git config user.email someone@example.org",
    "init": "git init -q --template= nested; cd nested; echo n > n; git add n; git commit -qm n",
    "init with a template": "git init -q nested; cd nested; echo n > n; git add n; git commit -qm n",
    "bisect": "git bisect start HEAD HEAD~1",
    "submodule": "git init -q --template= other; cd other; echo o > o; git add o; git commit -qm o; cd ..;"
    "git -c protocol.file.allow=always submodule --quiet add ./other sub; git commit -qm submodule",
}


SETS = ("branch", "remote", "user")
"""What writes the configuration, which is closed to calls in the workspace itself unless a grant opens it."""


@pytest.mark.parametrize("engine", ["auto", "snapshot"])
@pytest.mark.parametrize("what", AT_WORK)
def test_what_git_did_is_committed_undone_and_redone(workspace, what, engine):
    async def go(service):
        before, told = fingerprint(workspace), is_sound(workspace)
        outcome = await call(service, AT_WORK[what])
        if engine == "snapshot" and what in SETS:
            assert outcome.error.code == "sandbox-denied", outcome.error
            assert git_of(before).items() >= {(b".git/config", before[b".git/config"])}
            if outcome.changes.state == "committed":
                assert (await service.undo(outcome.run_id)).status == "done"
            outcome = await call(service, AT_WORK[what], grants={"write": [".git/config"]})
        if what == "submodule" and outcome.changes.state == "held":
            assert outcome.error.code == "sandbox-denied", outcome.error
            assert difference(before, fingerprint(workspace)) == []
            applied = await service.apply(outcome.run_id)
            assert applied.status == "done", applied.error
        else:
            assert (outcome.status, outcome.changes.state) == ("done", "committed"), (outcome.error, outcome.output)
        after, told_after = fingerprint(workspace), is_sound(workspace)
        assert difference(before, after)
        undone = await service.undo(outcome.run_id)
        assert undone.status == "done", undone.error
        assert difference(before, fingerprint(workspace)) == []
        assert is_sound(workspace) == told
        redone = await service.redo(outcome.run_id)
        assert redone.status == "done", redone.error
        assert difference(after, fingerprint(workspace)) == []
        assert is_sound(workspace) == told_after

    with_service(workspace, go, **{"changes.engine": engine})


def test_a_directory_is_renamed_by_git(workspace):
    async def go(service):
        before = fingerprint(workspace)
        outcome = await call(service, "git mv lib renamed; git commit -qm renamed")
        if os.geteuid() != 0:
            assert (outcome.status, outcome.error.code) == ("error", "tool-failed")
            assert "renamed from within" in outcome.error.hint
            assert "snapshot" in outcome.error.hint
            outcome = await call(service, "cp -a lib renamed; git rm -rq lib; git add renamed; git commit -qm renamed")
        assert (outcome.status, outcome.changes.state) == ("done", "committed"), outcome.error
        assert (workspace / "renamed" / "one").exists()
        sources = {change.path: change.renamed_from for change in outcome.changes.files}
        assert sources["renamed/one"] == "lib/one"
        assert (await service.undo(outcome.run_id)).status == "done"
        assert difference(before, fingerprint(workspace)) == []
        is_sound(workspace)
        assert (await service.redo(outcome.run_id)).status == "done"
        is_sound(workspace)

    with_service(workspace, go)


PLANTED = {
    "a hook": "echo 'touch hooked' > .git/hooks/pre-commit; chmod +x .git/hooks/pre-commit",
    "a folder of hooks": "mkdir own; printf '#!/bin/sh\\ntouch hooked\\n' > own/pre-commit; chmod +x own/pre-commit; "
    "git config core.hooksPath own",
    "a folder of hooks in a new repository": "git init -q new; mkdir own; git -C new config core.hooksPath ../own",
    "a hook in a new repository": "git init -q new; mkdir -p new/.git/hooks; echo x > new/.git/hooks/post-checkout; "
    "chmod +x new/.git/hooks/post-checkout",
    "a hook by a template": "mkdir -p template/hooks; echo x > template/hooks/pre-commit; "
    "chmod +x template/hooks/pre-commit; git init -q --template=template new",
    "a hook in a bare repository": "git init -q --bare bare.git; mkdir -p bare.git/hooks; echo x > "
    "bare.git/hooks/update; chmod +x bare.git/hooks/update",
    "an included configuration": "echo '[core] fsmonitor = touch hooked' > extra; git config include.path ../extra",
    "a conditional inclusion": "echo '[core] pager = touch hooked' > extra; "
    "git config includeIf.gitdir:/.path ../extra",
    "an alias": "git config alias.st '!touch hooked'",
    "a filter": "git config filter.f.clean 'touch hooked'",
    "a credential helper": "git config credential.helper '!touch hooked'",
    "an ssh command": "git config core.sshCommand 'touch hooked'",
    "an editor": "git config core.editor 'touch hooked'",
    "a moved repository": "mv .git elsewhere; echo x > elsewhere/hooks/pre-commit; "
    "chmod +x elsewhere/hooks/pre-commit; echo 'gitdir: elsewhere' > .git",
}


NAMED = {"a script": "clean.sh", "a hook of husky": ".husky/pre-commit", "a hook of everyone": ".everyone/pre-commit"}


@pytest.mark.parametrize(
    "how", [{}, {"changes.engine": "snapshot"}, {"sandbox.mode": "off"}], ids=["layer", "snapshot", "open"]
)
@pytest.mark.parametrize("what", NAMED)
def test_files_that_configuration_names_do_not_change_without_approval(workspace, what, how, monkeypatch):
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(workspace.parent / "everyone"))
    git(workspace.parent, "config", "--file", "everyone", "core.hooksPath", ".everyone")
    git(workspace, "config", "filter.f.clean", "sh clean.sh")
    path = workspace / NAMED[what]
    path.parent.mkdir(exist_ok=True)
    path.write_text("as it was\n")

    async def go(service):
        outcome = await call(service, f"echo evil >> {NAMED[what]}; echo more > {path.parent}/more")
        assert (outcome.status, path.read_text()) == ("error", "as it was\n"), outcome.output

    with_service(workspace, go, **how)


@pytest.mark.parametrize("engine", ["auto", "snapshot"])
@pytest.mark.parametrize("what", PLANTED)
def test_files_that_git_would_run_later_are_not_written_without_approval(workspace, what, engine):
    async def go(service):
        before = fingerprint(workspace)
        outcome = await call(service, f"mkdir -p .git/hooks; {PLANTED[what]}; echo more > more")
        assert outcome.status == "error", outcome.output
        assert outcome.error.code in ("sandbox-denied", "tool-failed"), outcome.error
        if outcome.changes.state == "held":
            assert difference(before, fingerprint(workspace)) == []
        else:  # What is there already is closed to calls in the workspace itself; the rest of what it did is kept.
            assert engine == "snapshot"
            assert git_of(before) == git_of(fingerprint(workspace))
        (workspace / "file").write_text("again\n")
        git(workspace, "commit", "-qam", "by the person")
        git(workspace, "status")
        assert not (workspace / "hooked").exists()
        settle = service.drop if outcome.changes.state == "held" else service.undo
        assert (await settle(outcome.run_id)).status == "done"

    with_service(workspace, go, **{"changes.engine": engine})


def git_of(found):
    return {path: each for path, each in found.items() if path.startswith(b".git/") and each.kind == "file"}


PACKAGES = 500 if IS_WHOLE else 20 if IS_AGAIN else 40
"""Of a hundred files each."""


def test_a_tree_as_large_as_package_managers_make_them_comes_goes_and_comes_back(tmp_path):
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    script = (
        "import os\n"
        f"for package in range({PACKAGES}):\n"
        "    for part in ('lib', 'dist', 'node_modules/inner', 'test', '.'):\n"
        "        here = f'node_modules/p{package}/{part}'\n"
        "        os.makedirs(here, exist_ok=True)\n"
        "        for n in range(20):\n"
        "            with open(f'{here}/f{n}.js', 'w') as file: file.write(f'{package} {part} {n}')\n"
    )

    async def go(service):
        made = await service.call("shell", {"command": f'/usr/bin/env python3 -c "{script}"'})
        assert (made.status, made.changes.state) == ("done", "committed"), made.error
        assert count(workspace) == PACKAGES * 100
        gone = await service.call("shell", {"command": "rm -rf node_modules"})
        assert (gone.status, gone.changes.state) == ("done", "committed"), gone.error
        assert count(workspace) == 0
        assert (await service.undo(gone.run_id)).status == "done"
        assert count(workspace) == PACKAGES * 100
        assert (workspace / "node_modules/p19/node_modules/inner/f19.js").read_text() == "19 node_modules/inner 19"
        assert (await service.undo(made.run_id)).status == "done"
        assert os.listdir(workspace) == []
        assert (await service.redo(made.run_id)).status == "done"
        assert count(workspace) == PACKAGES * 100

    with_service(workspace, go, **{"limits.max_changed_files": 100_000})
    shutil.rmtree(tmp_path)
    tmp_path.mkdir()


def count(directory):
    return sum(len(files) for _path, _directories, files in os.walk(directory))
