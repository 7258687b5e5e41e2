"""The check at commit: everyday work passes, and what would run later on the host does not."""

import hashlib
import io
import os
import shutil
import stat
import subprocess
from pathlib import Path

import pytest

from haft.changes.commit.entry import Entry, entry_from
from haft.changes.commit.manifest import PathChange
from haft.changes.guard.guard import is_granted, offences
from haft.files.protected import NAMES, elsewhere

HOOK = "#!/bin/sh\necho evil\n"
EVIL = '[core]\n\tfsmonitor = "touch /tmp/evil"\n'
FRESH = "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = false\n\tlogallrefupdates = true\n"


# ── two trees and what lies between them ─────────────────────────────────────────────────────────────────────────────


def tree(root: Path) -> dict[str, tuple[Entry, bytes]]:
    found = {}
    for directory, names, files in os.walk(root):
        for name in (*names, *files):
            path = os.path.join(directory, name)
            status = os.lstat(path)
            content, words = None, b""
            if stat.S_ISREG(status.st_mode):
                words = Path(path).read_bytes()
                content = hashlib.sha256(words).hexdigest()
            elif stat.S_ISLNK(status.st_mode):
                content = os.readlink(path)
            found[os.path.relpath(path, root)] = entry_from(status, content), words
    return found


class Between:
    """What happened to a workspace since this was made, put before the guard."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.before = tree(root)
        self.after: dict[str, tuple[Entry, bytes]] = {}

    def entries(self) -> list[PathChange]:
        self.after = tree(self.root)
        found = []
        for path in sorted(self.before | self.after):
            before, after = (each[path][0] if path in each else None for each in (self.before, self.after))
            if before is None or not before.is_like(after):
                found.append(PathChange(path, before, after))
        return found

    def read(self, entry: PathChange, when: str) -> io.BytesIO:
        return io.BytesIO((self.before if when == "before" else self.after)[entry.path][1])

    def offences(self, granted_paths=(), own=()):
        return offences(self.entries(), self.read, workspace=str(self.root), granted_paths=granted_paths, own=own)

    def paths(self, **more) -> list[str]:
        return [each.path for each in self.offences(**more)]


@pytest.fixture
def place(tmp_path):
    """A place that git knows nothing of, so that only what a test says counts."""
    (tmp_path / "home").mkdir()
    return tmp_path


@pytest.fixture
def git(place):
    def git(*words, cwd=None, fine=True, **env):
        done = subprocess.run(
            ["git", "-c", "protocol.file.allow=always", *map(str, words)],
            cwd=cwd or place / "ws",
            capture_output=True,
            text=True,
            env={
                "PATH": os.environ["PATH"],
                "HOME": str(place / "home"),
                "GIT_CONFIG_NOSYSTEM": "1",
                "GIT_AUTHOR_NAME": "a",
                "GIT_AUTHOR_EMAIL": "a@b",
                "GIT_COMMITTER_NAME": "a",
                "GIT_COMMITTER_EMAIL": "a@b",
                "GIT_EDITOR": "true",
                **env,
            },
        )
        assert done.returncode == 0 or not fine, done.stderr
        return done.stdout

    return git


@pytest.fixture
def ws(place, git):
    """A workspace with a repository and two commits, and another repository beside it."""
    for name in ("ws", "other"):
        (place / name).mkdir()
        git("init", "-q", "-b", "main", cwd=place / name)
        for number in (1, 2):
            (place / name / f"{number}.txt").write_text(f"{number}\n")
            git("add", ".", cwd=place / name)
            git("commit", "-qm", f"{number}", cwd=place / name)
    return place / "ws"


def put(root: Path, path: str, words: str = "x\n", mode: int = 0o644) -> None:
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_text(words)
    (root / path).chmod(mode)


def bare(root: Path, path: str, config: str | None = None) -> None:
    """The least that git takes for a repository."""
    put(root, f"{path}/HEAD", "ref: refs/heads/main\n")
    for name in ("objects", "refs"):
        (root / path / name).mkdir()
    if config is not None:
        put(root, f"{path}/config", config)


# ── everyday work ────────────────────────────────────────────────────────────────────────────────────────────────────


def commit(git, ws, other):
    put(ws, "new.txt")
    git("add", ".")
    git("commit", "-qm", "new")


def branches(git, ws, other):
    git("remote", "add", "origin", other)
    git("fetch", "-q", "origin")
    git("branch", "-q", "-u", "origin/main")
    git("checkout", "-qb", "haft.toml")  # A branch may be called anything.
    git("branch", "config/hooks")
    git("remote", "set-url", "--push", "origin", "git@example.org:a/b.git")
    git("config", "branch.main.rebase", "true")
    git("config", "branch.main.description", "what\nit is")


def who(git, ws, other):
    git("config", "user.name", "x")
    git("config", "user.email", "x@y")
    git("config", "pull.rebase", "true")


def merge(git, ws, other):
    git("checkout", "-qb", "side", "HEAD~1")
    put(ws, "side.txt")
    git("add", ".")
    git("commit", "-qm", "side")
    git("checkout", "-q", "main")
    git("merge", "-q", "--no-edit", "side")


def rebase(git, ws, other):
    git("checkout", "-qb", "side", "HEAD~1")
    put(ws, "side.txt")
    git("add", ".")
    git("commit", "-qm", "side")
    git("rebase", "-q", "main")


def rebase_half_done(git, ws, other):
    git("checkout", "-qb", "side", "HEAD~1")
    put(ws, "2.txt", "otherwise\n")
    git("add", ".")
    git("commit", "-qm", "side")
    git("rebase", "-q", "main", fine=False)
    assert (ws / ".git/rebase-merge/git-rebase-todo").exists()


def rebases_half_done_with_options(git, ws, other):
    git("config", "user.name", "O'Br!en")
    git("checkout", "-qb", "side", "HEAD~1")
    put(ws, "2.txt", "otherwise\n")
    git("add", ".")
    git("commit", "-qm", "side", GIT_AUTHOR_NAME="O'Br!en")
    put(ws, "1.txt", "not yet\n")
    options = ("-X", "patience", "-X", "find-renames=50%", "-X", "ignore-space-change")
    git("rebase", "-q", "--autostash", "-s", "ort", *options, "main", fine=False)
    for name in ("strategy", "strategy_opts", "autostash", "author-script"):
        assert (ws / ".git/rebase-merge" / name).exists()
    git("worktree", "add", "-q", "-b", "third", "trees/w", "side")
    tree = ws / "trees/w"
    git("rebase", "-q", "--apply", "--whitespace=fix", "-C1", "main", cwd=tree, fine=False)
    assert (ws / ".git/worktrees/w/rebase-apply/apply-opt").exists()


def picked_half_done_with_options(git, ws, other):
    git("checkout", "-qb", "side", "HEAD~1")
    for number in (2, 3):
        put(ws, f"{number}.txt", "otherwise\n")
        git("add", ".")
        git("commit", "-qm", "side")
    git("checkout", "-q", "main")
    (ws / ".git/rr-cache").mkdir()
    git("cherry-pick", "-x", "-s", "-X", "patience", "--strategy=recursive", "main..side", fine=False)
    assert "strategy" in (ws / ".git/sequencer/opts").read_text()
    assert (ws / ".git/MERGE_RR").read_bytes()


def bisect_half_done(git, ws, other):
    put(ws, "it's/x.txt")
    git("add", ".")
    git("commit", "-qm", "3")
    git("bisect", "start", "HEAD", "HEAD~2", "--", "it's", "2.txt")
    assert (ws / ".git/BISECT_NAMES").exists()


def index_of_every_kind(git, ws, other):
    put(ws, "a/.hidden/é~1/..x")
    put(ws, "x" * 200 + "/" + "y" * 200)
    git("add", ".")
    for version in "234":
        git("update-index", "--index-version", version)
    git("update-index", "--split-index")
    put(ws, "a/more")
    git("add", ".")
    git("init", "-q", "--object-format=sha256", "long")
    put(ws, "long/x/y")
    git("add", ".", cwd=ws / "long")


def submodule(git, ws, other):
    git("submodule", "--quiet", "add", other, "libs/other")
    git("commit", "-qm", "sub")
    git("submodule", "--quiet", "update", "--init", "--recursive")
    assert (ws / ".git/modules/libs/other/config").exists()
    assert (ws / "libs/other/.git").is_file()


def submodule_taken_in(git, ws, other):
    git("clone", "-q", other, ws / "taken")
    git("submodule", "--quiet", "add", "./taken", "taken")
    git("submodule", "absorbgitdirs")
    assert (ws / "taken/.git").is_file()


def worktree(git, ws, other):
    git("worktree", "add", "-q", "trees/w")
    put(ws, "trees/w/x.txt")
    git("add", ".", cwd=ws / "trees/w")
    git("commit", "-qm", "w", cwd=ws / "trees/w")


def worktree_of_a_nested_repository(git, ws, other):
    git("clone", "-q", other, ws / "main")
    git("worktree", "add", "-q", "../beside", cwd=ws / "main")


def worktree_with_a_submodule(git, ws, other):
    submodule(git, ws, other)
    git("worktree", "add", "-q", "trees/w")
    git("submodule", "--quiet", "update", "--init", cwd=ws / "trees/w")
    assert (ws / ".git/worktrees/w/modules/libs/other/config").exists()


def worktree_moved(git, ws, other):
    git("worktree", "add", "-q", "trees/w")
    git("worktree", "move", "trees/w", "trees/v")
    git("worktree", "lock", "trees/v")


def nested_with_submodules(git, ws, other):
    git("clone", "-q", other, other.parent / "third")
    git("submodule", "--quiet", "add", other, "inner", cwd=other.parent / "third")
    git("commit", "-qm", "inner", cwd=other.parent / "third")
    git("clone", "-q", "--recurse-submodules", other.parent / "third", "vendor/third")
    git("submodule", "--quiet", "add", other.parent / "third", "third")
    git("submodule", "--quiet", "update", "--init", "--recursive")
    assert (ws / ".git/modules/third/modules/inner/config").exists()


def remotes_and_branches_renamed(git, ws, other):
    git("remote", "add", "origin", other)
    git("fetch", "-q", "origin")
    git("checkout", "-q", "--track", "-b", "one", "origin/main")
    git("branch", "-m", "one", "two")
    git("remote", "rename", "origin", "upstream")
    git("remote", "remove", "upstream")


def left_in_the_middle(git, ws, other):
    git("bisect", "start")
    git("bisect", "bad")
    git("bisect", "reset")
    git("checkout", "-qb", "side", "HEAD~1")
    put(ws, "2.txt", "otherwise\n")
    git("add", ".")
    git("commit", "-qm", "side")
    put(ws, "3.txt", "more\n")
    git("add", ".")
    git("commit", "-qm", "more")
    git("checkout", "-q", "main")
    git("cherry-pick", "main..side", fine=False)
    assert (ws / ".git/sequencer/todo").exists()


def sparse(git, ws, other):
    git("sparse-checkout", "set", "src")
    assert (ws / ".git/config.worktree").exists()


def nested(git, ws, other):
    git("init", "-q", "fresh")
    git("clone", "-q", other, "vendor/other")
    git("clone", "-q", "--bare", other, "bare.git")
    git("clone", "-q", "--depth=1", f"file://{other}", "shallow")
    git("clone", "-q", "--mirror", other, "mirror")
    git("config", "uploadpack.allowFilter", "true", cwd=other)
    git("clone", "-q", "--filter=blob:none", f"file://{other}", "partial")


def stash_and_gc(git, ws, other):
    put(ws, "1.txt", "changed\n")
    git("stash", "-q")
    git("gc", "-q")
    git("stash", "pop", "-q")
    git("tag", "v1")


def config_touched(git, ws, other):
    os.utime(ws / ".git/config", (1, 1))
    put(ws, ".git/config", "# a comment\n" + (ws / ".git/config").read_text())


@pytest.mark.parametrize(
    "work",
    [
        commit, branches, who, merge, rebase, rebase_half_done, rebases_half_done_with_options,
        picked_half_done_with_options, bisect_half_done, index_of_every_kind, submodule, submodule_taken_in, worktree,
        worktree_of_a_nested_repository, worktree_with_a_submodule, worktree_moved, nested_with_submodules,
        remotes_and_branches_renamed, left_in_the_middle, sparse, nested, stash_and_gc, config_touched,
    ],
)  # fmt: skip
def test_git_at_work_is_let_pass(work, ws, git, place):
    between = Between(ws)
    work(git, ws, place / "other")
    assert between.entries()
    assert between.offences() == []


def test_what_git_takes_away_again_is_let_pass(ws, git, place):
    submodule(git, ws, place / "other")
    worktree(git, ws, place / "other")
    nested(git, ws, place / "other")
    put(ws, "vendor/other/.git/hooks/pre-commit", HOOK, 0o755)
    put(ws, "vendor/other/.vscode/settings.json")
    between = Between(ws)
    git("worktree", "remove", "--force", "trees/w")
    git("rm", "-qf", "libs/other")
    for name in (".git/modules/libs", "vendor", "bare.git", "fresh"):
        shutil.rmtree(ws / name)
    assert between.offences() == []


def test_a_repository_where_there_was_none_is_let_pass(place, git):
    (place / "ws").mkdir()
    between = Between(place / "ws")
    git("init", "-q")
    assert between.offences() == []


def test_a_submodule_with_a_working_tree_setting_of_its_own_is_let_pass(ws, git, place):
    submodule(git, ws, place / "other")
    between = Between(ws)
    git("sparse-checkout", "set", "src", cwd=ws / "libs/other")
    assert "core.worktree" not in [each.why for each in between.offences()]
    assert between.offences() == []


HARMLESS = {
    "names that only resemble": [".github/workflows/x.yml", ".gitignore", ".gitattributes", "vscode/x", "git/hooks/x"],
    "no repository": ["config", "hooks/pre-commit", "src/hooks/use.ts", "x/config", "x/HEAD", "modules/x/config"],
    "samples": [".git/hooks/pre-commit.sample", "x/.git/hooks/a.sample"],
    "insides": [".git/refs/heads/config", ".git/logs/refs/heads/hooks/x", ".git/info/exclude", ".git/refs/.mcp.json"],
    "the work itself": [
        "package.json", "Makefile", "pyproject.toml", "conftest.py", "Cargo.toml", ".cargo/x", ".yarn/cache/x.zip",
        ".yarn/install-state.gz", ".config/other", "x.workspace", "code-workspace", ".haft-notes", ".haft-1-x",
    ],
    "half done by name": ["rebase-merge/strategy", "MERGE_RR", "index", "sequencer/opts", "logs/x", ".git/index.lock"],
    "strange": ["a\nb/c", "é/ü", "-rf", "x" * 200],
}  # fmt: skip


@pytest.mark.parametrize("paths", HARMLESS.values(), ids=HARMLESS)
def test_other_files_are_let_pass(paths, tmp_path):
    between = Between(tmp_path)
    for path in paths:
        put(tmp_path, path)
    assert between.offences() == []


def test_empty_directories_are_let_pass(tmp_path):
    between = Between(tmp_path)
    for name in (".vscode", ".git/hooks", "x/.git/hooks/sub", ".claude/commands"):
        (tmp_path / name).mkdir(parents=True)
    assert between.offences() == []


def test_a_tree_deeper_than_the_stack_is_judged():
    deep = "/".join(["d"] * 1900)
    after = Entry("file", 0o644, 0, 0, content="1")
    entries = [PathChange(f"{deep}/x", None, after), PathChange(f"{deep}/.envrc", None, after)]
    found = offences(entries, lambda entry, when: None, workspace="/nowhere")
    assert [each.path for each in found] == [f"{deep}/.envrc"]


# ── attacks ──────────────────────────────────────────────────────────────────────────────────────────────────────────


PLANTED = [
    *(name for name in NAMES if name not in (".git/config", ".git/config.worktree", ".gitmodules", ".git/hooks")),
    ".git/hooks/pre-commit", ".git/hooks/post-index-change", ".git/hooks/lib/x", ".git/hooks/x.sample.sh",
    "sub/dir/.git/hooks/x", "vendor/x/.mcp.json", "vendor/x/.claude/commands/a.md", "packages/a/.vscode/tasks.json",
    ".GIT/hooks/pre-commit", ".Vscode/tasks.json", "git~1/hooks/x", ".git./hooks/x", ".git /hooks/x",
    ".g\u200cit/hooks/x",
    ".git/HOOKS/x", "HAFT.TOML", "x/.EnvRC", ".git/remotes/origin", ".git/branches/x",
    ".git/worktrees/w/hooks/x", ".git/worktrees/w/modules/m/commondir/.git/hooks/x", "node_modules/x/.envrc",
    ".vscode/.git/hooks/x", ".git/x/.git/hooks/y", "x/My.Code-Workspace", "x/.config/fish/conf.d/a.fish",
    "home/.config/fish/functions/ls.fish", "a/.devcontainer/devcontainer.json", "crates/x/.cargo/config.toml",
    "web/.yarn/releases/yarn.cjs", "a/b/Mise.TOML",
]  # fmt: skip


@pytest.mark.parametrize("path", PLANTED)
def test_what_is_planted_is_found(path, tmp_path):
    between = Between(tmp_path)
    put(tmp_path, path, HOOK, 0o755)
    (found,) = between.offences()
    assert found.path == path
    assert found.why
    assert between.offences(granted_paths=[found.grant]) == []


SETTINGS = [
    "core.hooksPath=evil", "core.fsmonitor=evil", "core.pager=evil", "core.editor=evil", "core.sshCommand=evil",
    "core.askPass=evil", "core.gitProxy=evil", "core.attributesFile=x", "core.worktree=/",
    "core.alternateRefsCommand=evil",
    "alias.st=!evil", "filter.x.clean=evil", "filter.x.process=evil", "diff.external=evil", "diff.x.command=evil",
    "diff.x.textconv=evil", "merge.x.driver=evil", "mergetool.x.cmd=evil", "credential.helper=!evil", "include.path=/x",
    "includeIf.gitdir:/.path=/x", "gpg.program=evil", "gpg.ssh.program=evil", "url.ext::evil.insteadOf=https://",
    "http.proxy=http://evil", "http.sslVerify=false", "protocol.ext.allow=always", "sequence.editor=evil",
    "pager.log=evil",
    "remote.origin.uploadpack=evil", "remote.origin.receivepack=evil", "remote.origin.vcs=evil",
    "remote.origin.proxy=x",
    "remote.origin.url=ext::sh -c evil", "remote.origin.url=fd::7", "remote.origin.url=--upload-pack=evil",
    "remote.origin.url=evil://x", "remote.origin.url=ssh://-oProxyCommand=evil/x", "remote.origin.pushurl=ext::x",
    "remote.--upload-pack=evil.url=x", "branch.main.remote=ext::sh -c evil", "remote.pushDefault=ext::x",
    "submodule.x.update=!evil", "submodule.x.url=ext::x", "user.signingKey=-evil", "gc.recentObjectsHook=evil",
    "uploadpack.packObjectsHook=evil", "interactive.diffFilter=evil", "hook.x.command=evil", "man.x.cmd=evil",
    "lfs.customtransfer.x.path=evil", "extensions.unheardOf=1", "core.x.hooksPath=evil", "user.name=a\nb",
]  # fmt: skip


@pytest.mark.parametrize("setting", SETTINGS)
def test_a_setting_that_makes_git_run_something_is_found(setting, ws, git, place):
    key, value = setting.rsplit("=", 1) if setting.startswith("remote.--") else setting.split("=", 1)
    for config in (ws / ".git/config", place / "bare"):
        between = Between(ws)
        git("config", "--file", config, key, value)
        if config.name == "bare":
            bare(ws, "docs", config.read_text())
        (found,) = between.offences()
        assert key.lower().split(".")[-1] in found.why
        assert between.offences(granted_paths=["docs/**", ".git/config"]) == []


def test_settings_that_were_there_may_stay_or_go_and_not_come_back(ws, git):
    for value in ("first", "second"):
        git("config", "--add", "core.hooksPath", value)
    git("config", "alias.st", "status")
    between = Between(ws)
    git("config", "user.name", "x")
    git("config", "--unset", "alias.st")
    assert between.offences() == []
    put(ws, ".git/config", (ws / ".git/config").read_text().replace("\thooksPath = second\n", ""))
    assert between.paths() == [".git/config"]
    git("config", "--unset", "core.hooksPath")
    assert between.offences() == []


@pytest.mark.parametrize(
    "words", ["[core\n", "[core]\nx = \\q\n", "[a]\nx=1\0", "# " + "x" * 300_000, '[a]\nx = "open\n']
)
def test_configuration_that_cannot_be_judged_is_found(words, tmp_path):
    between = Between(tmp_path)
    put(tmp_path, ".git/config", words)
    put(tmp_path, ".gitmodules", words)
    assert between.paths() == [".git/config", ".gitmodules"]


@pytest.mark.parametrize(
    "path", [".git/config.worktree", ".git/worktrees/w/config.worktree", "a/.GIT/Config", "x/.git/config"]
)
def test_every_configuration_is_judged(path, tmp_path):
    between = Between(tmp_path)
    put(tmp_path, path, FRESH)
    assert between.offences() == []
    put(tmp_path, path, FRESH + EVIL)
    assert between.paths() == [path]


def test_the_configuration_and_hooks_of_a_submodule_are_judged(ws, git, place):
    submodule(git, ws, place / "other")
    between = Between(ws)
    git("config", "core.worktree", "/etc", cwd=ws / "libs/other")
    put(ws, ".git/modules/libs/other/hooks/pre-push", HOOK, 0o755)
    assert between.paths() == [".git/modules/libs/other/config", ".git/modules/libs/other/hooks/pre-push"]


MODULES = [
    "update = !evil", "url = ext::evil", "url = -evil", "path = -evil", "path = ../x", "path = /x",
    "path = a/.git/hooks",
    "active = true", "evil = 1",
]  # fmt: skip


@pytest.mark.parametrize("line", MODULES)
def test_a_submodule_that_would_run_something_is_found(line, tmp_path):
    between = Between(tmp_path)
    put(tmp_path, ".gitmodules", '[submodule "x"]\n\tpath = x\n\turl = ../x.git\n\tupdate = rebase\n\tbranch = main\n')
    assert between.offences() == []
    put(tmp_path, ".gitmodules", f'[submodule "x"]\n\t{line}\n')
    assert between.paths() == [".gitmodules"]


def test_a_submodule_with_a_name_that_leads_out_is_found(tmp_path):
    between = Between(tmp_path)
    put(tmp_path, ".gitmodules", '[submodule "../../x"]\n\tpath = x\n\turl = y\n')
    assert between.paths() == [".gitmodules"]


POINTERS = {
    "elsewhere": ("sub/.git", "gitdir: /tmp/evil\n"),
    "up and out": ("sub/.git", "gitdir: ../../evil\n"),
    "into the workspace": ("sub/.git", "gitdir: ../docs\n"),
    "out of where they are kept": ("sub/.git", "gitdir: ../.git/modules/../../docs\n"),
    "the top": (".git", "gitdir: .bare\n"),
    "no pointer": ("sub/.git", "evil"),
    "two lines": ("sub/.git", "gitdir: ../.git/modules/x\n/../../../evil\n"),
    "common": (".git/commondir", "../evil\n"),
    "common of a worktree": (".git/worktrees/w/commondir", "../../../evil\n"),
    "back of a worktree": (".git/worktrees/w/gitdir", "/srv/someone/.git\n"),
    "common of a submodule": (".git/modules/x/commondir", "/tmp/evil\n"),
}


@pytest.mark.parametrize(("path", "words"), POINTERS.values(), ids=POINTERS)
def test_a_repository_that_is_said_to_be_elsewhere_is_found(path, words, tmp_path):
    if "modules" in path:
        bare(tmp_path, ".git/modules/x")
    between = Between(tmp_path)
    put(tmp_path, path, words)
    assert between.paths() == [path]


LINKS = [
    ".git", "sub/.git", ".vscode", ".config", ".config/fish", ".claude", ".envrc", "haft.toml", ".git/hooks",
    ".git/config",
    ".git/modules", ".git/modules/x", ".git/worktrees", ".git/worktrees/w", ".git/hooks/pre-commit", ".gitmodules",
    ".git/commondir", ".git/rebase-merge", "x/.GIT",
]  # fmt: skip


@pytest.mark.parametrize("path", LINKS)
def test_a_link_where_something_is_obeyed_is_found(path, tmp_path):
    between = Between(tmp_path)
    (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / path).symlink_to("/nowhere")
    assert between.paths() == [path]


def test_a_directory_that_is_replaced_by_a_link_is_found(tmp_path):
    put(tmp_path, "pkg/.vscode/settings.json")
    between = Between(tmp_path)
    (tmp_path / "pkg/.vscode").rename(tmp_path / "moved")
    (tmp_path / "pkg/.vscode").symlink_to("../moved")
    assert between.paths() == ["pkg/.vscode"]


def test_a_directory_that_is_renamed_brings_what_it_holds(tmp_path):
    put(tmp_path, "innocent/hooks/pre-commit", HOOK, 0o755)
    put(tmp_path, "innocent/config", EVIL)
    between = Between(tmp_path)
    (tmp_path / "innocent").rename(tmp_path / ".git")
    assert between.paths() == [".git/config", ".git/hooks/pre-commit"]


@pytest.mark.parametrize("where", ["docs", ".git/modules/x", ".git/x", "modules/x"])
def test_a_repository_by_any_name_is_one(where, tmp_path):
    between = Between(tmp_path)
    bare(tmp_path, where, EVIL)
    put(tmp_path, f"{where}/hooks/pre-push", HOOK, 0o755)
    assert between.paths() == [f"{where}/config", f"{where}/hooks/pre-push"]


@pytest.mark.parametrize("lying", ["config", "hooks/pre-commit", "commondir", "config.worktree"])
@pytest.mark.parametrize("where", ["docs", ".git/modules/x"])
def test_a_repository_that_is_made_in_two_calls_is_found(lying, where, tmp_path):
    first = Between(tmp_path)
    put(tmp_path, f"{where}/{lying}", EVIL)
    for name in ("objects", "refs"):
        (tmp_path / where / name).mkdir()
    assert first.offences() == []
    second = Between(tmp_path)
    put(tmp_path, f"{where}/HEAD", "ref: refs/heads/main\n")
    (found,) = second.offences()
    assert (found.path, f"{where}/{lying}" in found.why) == (f"{where}/HEAD", True)
    assert found.activates


def test_a_repository_around_the_workspace_opens_nothing(tmp_path):
    put(tmp_path, "HEAD", "ref: refs/heads/main\n")
    for name in ("objects", "refs"):
        (tmp_path / name).mkdir()
    between = Between(tmp_path)
    planted = ["modules/x/.vscode/tasks.json", "rebase-merge/.envrc", "worktrees/w/.mcp.json", "refs/heads/haft.toml"]
    for path in ("config", "hooks/pre-commit", *planted):
        put(tmp_path, path, EVIL)
    assert between.paths() == sorted(["config", "hooks/pre-commit", *planted])


def test_a_half_done_rebase_with_a_command_is_found(ws, git, place):
    between = Between(ws)
    git("rebase", "-q", "-x", "false", "HEAD~1", fine=False)
    git("rebase", "--edit-todo", GIT_SEQUENCE_EDITOR="echo 'exec touch evil' >>")
    assert between.paths() == [".git/rebase-merge/git-rebase-todo"]
    later = Between(ws)
    put(ws, "1.txt", "changed")
    os.utime(ws / ".git/rebase-merge/git-rebase-todo")
    assert later.offences() == []


@pytest.mark.parametrize("touched", ["config", "hooks/pre-commit"])
@pytest.mark.parametrize("how", ["touched", "added to"])
@pytest.mark.parametrize("where", ["docs", ".git/modules/x", ".git/x"])
def test_what_was_left_lying_is_judged_also_where_it_is_touched(touched, how, where, tmp_path):
    put(tmp_path, f"{where}/{touched}", EVIL, 0o755)
    between = Between(tmp_path)
    bare(tmp_path, where)
    if how == "touched":
        os.utime(tmp_path / where / touched, (1, 1))
    else:
        put(tmp_path, f"{where}/{touched}", EVIL + "# nothing\n", 0o755)
    assert f"{where}/{touched}" in between.paths()


def test_a_repository_that_is_made_in_two_calls_and_harmless_is_let_pass(tmp_path):
    put(tmp_path, "docs/config", FRESH)
    put(tmp_path, "docs/hooks/pre-commit.sample")
    put(tmp_path, "docs/.envrc")
    between = Between(tmp_path)
    bare(tmp_path, "docs")
    os.utime(tmp_path / "docs/config", (1, 1))
    assert between.offences() == []


def test_what_lies_where_a_repository_is_made_is_not_judged_by_halves(tmp_path, monkeypatch):
    monkeypatch.setattr("haft.changes.guard.directory_roles.MOST_EXISTING", 10)
    for number in range(20):
        put(tmp_path, f"docs/{number}")
    between = Between(tmp_path)
    bare(tmp_path, "docs")
    assert between.paths() == ["docs/HEAD"]


LYING = ["hooks", "config", "config.worktree", "commondir", "rebase-merge", "objects", "logs", "logs/HEAD", "refs",
         "COMMIT_EDITMSG", "index"]  # fmt: skip


@pytest.mark.parametrize("name", LYING)
@pytest.mark.parametrize("where", ["docs", ".git/modules/x"])
def test_a_link_in_what_becomes_a_repository_is_found(name, where, tmp_path):
    (tmp_path / where / name).parent.mkdir(parents=True)
    (tmp_path / where / name).symlink_to("../scripts")
    between = Between(tmp_path)
    put(tmp_path, f"{where}/HEAD", "ref: refs/heads/main\n")
    for other in {"objects", "refs"} - {name}:
        (tmp_path / where / other).mkdir()
    (found,) = between.offences()
    assert (found.path, f"{where}/{name}" in found.why) == (f"{where}/HEAD", True)


@pytest.mark.parametrize("name", [*LYING, "refs/heads/x", "hooks/x.sample", "info/attributes"])
@pytest.mark.parametrize("where", [".git", "sub/.git", "docs"])
def test_a_link_in_a_repository_is_found(name, where, tmp_path):
    put(tmp_path, f"{where}/HEAD", "ref: refs/heads/main\n")
    for other in {"objects", "refs"} - {name}:
        (tmp_path / where / other).mkdir()
    between = Between(tmp_path)
    (tmp_path / where / name).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / where / name).symlink_to("/nowhere")
    assert between.paths() == [f"{where}/{name}"]


STATES = {
    "rebase-merge/strategy": ["x/y", "../x", "evil", "ort evil"],
    "rebase-merge/strategy_opts": ["--exec=evil", "evil"],
    "rebase-merge/gpg_sign_opt": ["--exec", "-S-evil", "evil", "-Sa\nb"],
    "rebase-merge/autostash": ["--index", "evil"],
    "rebase-merge/author-script": ["evil", "GIT_AUTHOR_NAME='a'; evil", "GIT_AUTHOR_NAME=$(evil)", "PATH='x'"],
    "rebase-merge/git-rebase-todo.backup": ["exec evil"],
    "rebase-apply/strategy": ["x/y"],
    "rebase-apply/apply-opt": [
        "'--unsafe-paths'", "'--directory=../x'", "'--directory=/etc'", "--build-fake-ancestor=x",
    ],
    "rebase-apply/author-script": ["evil"],
    "sequencer/opts": [
        "[options]\n\tstrategy = x/y\n", "[options]\n\tgpg-sign = -evil\n", "[options]\n\tstrategy-option = evil\n",
        "[core]\n\teditor = evil\n", "evil",
    ],
    "sequencer/todo": ["pick 1\n\tx evil"],
    "BISECT_NAMES": ["$(evil)", "'a' ; evil", "'a"],
    "BISECT_START": ["--evil"],
    "BISECT_TERMS": ["a;evil\nb", "-a\nb"],
    "MERGE_AUTOSTASH": ["--index"],
    "MERGE_RR": ["evil", f"{'0' * 40}\t../x\0", f"{'0' * 40}\t/etc/x\0", f"{'0' * 40}\ta/.git/x\0"],
}  # fmt: skip


@pytest.mark.parametrize(("name", "words"), [(name, each) for name, some in STATES.items() for each in some])
@pytest.mark.parametrize("where", [".git", "sub/.git", ".git/worktrees/w"])
def test_what_is_half_done_and_would_run_something_is_found(name, words, where, tmp_path):
    between = Between(tmp_path)
    put(tmp_path, f"{where}/{name}", words)
    assert between.paths() == [f"{where}/{name}"]
    os.utime(tmp_path / where / name, (1, 1))
    (tmp_path / where / name).unlink()
    assert between.offences() == []


@pytest.mark.parametrize("version", "24")
@pytest.mark.parametrize("instead", [".git/hooks", ".GIT/hooks", "../../hoo", "/home/hook", "a//b/hooks", "git~1/hook"])
def test_an_index_that_would_write_where_no_file_belongs_is_found(version, instead, ws, git):
    put(ws, "xgit/hooks/post-checkout", HOOK, 0o755)
    git("add", ".")
    git("update-index", "--index-version", version)
    between = Between(ws)
    words = (ws / ".git/index").read_bytes()[:-20].replace(b"xgit/hooks", instead.encode())
    (ws / ".git/index").write_bytes(words + hashlib.sha1(words).digest())
    assert between.paths() == [".git/index"]


@pytest.mark.parametrize("leads", ["out", "back"])
@pytest.mark.parametrize("when", ["before", "with it", "not yet"])
def test_a_repository_that_is_reached_over_a_link_is_found(leads, when, ws, git, place):
    submodule(git, ws, place / "other")
    (place / "evil/.git/modules/x").mkdir(parents=True)
    (place / "ws/evil").mkdir()
    target = place / "evil" if leads == "out" else ws
    if when == "before":
        (ws / "link").symlink_to(target)
    between = Between(ws)
    put(ws, "sub/.git", "gitdir: ../link/.git/modules/x\n")
    put(ws, "more/.git", f"gitdir: {ws}/link/.git/modules/x\n")
    if when == "with it":
        (ws / "link").symlink_to(target)
    assert between.paths() == ["more/.git", "sub/.git"]


def test_a_worktree_or_submodule_that_says_it_is_behind_a_link_is_found(ws, git, place):
    submodule(git, ws, place / "other")
    (ws / "link").symlink_to(place)
    between = Between(ws)
    git("config", "core.worktree", "../../../../link/x", cwd=ws / "libs/other")
    put(ws, ".git/worktrees/w/commondir", "../../../link/../.git\n")
    put(ws, ".git/worktrees/w/gitdir", f"{ws}/link/x/.git\n")
    put(ws, ".git/worktrees/v/gitdir", f"../../../../{ws.name}/x/.git\n")
    assert between.paths() == [
        ".git/modules/libs/other/config", ".git/worktrees/v/gitdir", ".git/worktrees/w/commondir",
        ".git/worktrees/w/gitdir",
    ]  # fmt: skip


@pytest.mark.parametrize("hooks", [".husky", "hooks", "../shared/hooks", "via/hooks"])
def test_hooks_that_a_nested_repository_has_elsewhere_are_protected(hooks, ws, git, place):
    submodule(git, ws, place / "other")
    worktree(git, ws, place / "other")
    git("clone", "-q", place / "other", "apps/one")
    git("clone", "-q", "--bare", place / "other", "apps/bare")
    tops = [ws / "apps/one", ws / "libs/other", ws / "apps/bare", ws / "trees/w"]
    found = []
    for top in tops:
        git("config", "core.hooksPath", hooks, cwd=top)
        (top / "real").mkdir()
        (top / "via").symlink_to("real")
        where = (top / hooks).resolve().relative_to(ws)
        put(ws, f"{where}/pre-commit", HOOK, 0o755)
        put(ws, f"{where}/old", HOOK, 0o755)
        put(ws, f"{top.relative_to(ws)}/src/x.py")
        found.append(f"{where}/pre-commit")
    between = Between(ws)
    for top in tops:
        put(ws, f"{top.relative_to(ws)}/src/x.py", "changed\n")
    assert between.offences() == []
    for path in found:
        put(ws, path, "#!/bin/sh\nevil\n", 0o755)
        (ws / path).with_name("old").unlink(missing_ok=True)
    assert sorted(between.paths()) == sorted(set(found))
    assert {each.why for each in between.offences()} == {"git runs or obeys what lies there"}


def test_what_haft_keeps_beside_a_workspace_is_closed_to_every_grant(tmp_path):
    area = ".haft-1000-0123456789abcdef0123"
    put(tmp_path, f"{area}/kept/r_1/manifest")
    put(tmp_path, f"{area}/lock")
    put(tmp_path, f"deep/er/{area}/lock")
    between = Between(tmp_path)
    put(tmp_path, f"{area}/kept/r_1/manifest", "evil")
    put(tmp_path, f"deep/er/{area}/kept/r_2/out/1")
    (tmp_path / area / "lock").unlink()
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / area.upper()).symlink_to("/nowhere")
    (tmp_path / f"other-{area}").mkdir()
    assert {each.grant for each in between.offences(granted_paths=["**", area, "deep/**"])} == {None}
    files = {each for each in between.paths() if not (tmp_path / each).is_dir()}
    assert files == {
        f"{area}/kept/r_1/manifest", f"{area}/lock", f"deep/er/{area}/kept/r_2/out/1", f"sub/{area.upper()}"
    }  # fmt: skip


# ── other kinds, deletions, grants, own ──────────────────────────────────────────────────────────────────────────────


def judged(before: Entry | None, after: Entry | None, path="tool", **more):
    return offences([PathChange(path, before, after)], lambda entry, when: None, workspace="/nowhere", **more)


def file(mode=0o755, content="1", uid=7, mtime=0):
    return Entry("file", mode, uid, 7, 1, mtime, content)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (None, file(0o4755)),
        (None, file(0o2755)),
        (file(), file(0o4755)),
        (file(0o2755), file(0o6755)),
        (file(0o4755), file(0o4755, "2")),
        (file(0o4755), file(0o4755, uid=0)),
    ],
)
def test_new_rights_of_the_owner_are_found(before, after):
    (found,) = judged(before, after)
    assert "rights of its owner" in found.why
    assert judged(before, after, granted_paths=["tool"]) == []


def test_old_rights_of_the_owner_may_stay():
    assert judged(file(0o4755), file(0o4755, mtime=1)) == []
    assert judged(file(0o6755), file(0o4755)) == []
    assert judged(None, Entry("directory", 0o2775, 7, 7)) == []


@pytest.mark.parametrize("kind", [stat.S_IFBLK, stat.S_IFCHR])
def test_no_grant_opens_a_device(kind):
    (found,) = judged(None, Entry("other", kind | 0o600, 0, 0, content="7"), granted_paths=["tool", "**"])
    assert found.grant is None


def test_a_pipe_is_harmless_but_where_something_is_obeyed():
    pipe = Entry("other", stat.S_IFIFO | 0o600, 0, 0, content="0")
    assert judged(None, pipe) == []
    for path in (".git/config", ".envrc", ".git/hooks/x", ".git"):
        assert judged(None, pipe, path)


def test_only_what_is_obeyed_counts():
    for path in (".envrc", ".git/hooks/pre-commit", ".vscode/tasks.json"):
        assert judged(file(0o644), file(0o644, mtime=5), path) == []
        assert judged(file(0o644), file(0o755), path)
        assert judged(file(content="unreadable"), file(content="unreadable", mtime=5), path)


@pytest.mark.parametrize(
    "path",
    ["haft.toml", ".envrc", ".vscode/settings.json", ".git/hooks/x", ".git/config", ".git", ".config/fish/config.fish"],
)  # fmt: skip
def test_taking_away_what_keeps_a_person_safe_is_found(path):
    assert [each.path for each in judged(file(), None, path)] == [path]
    assert judged(file(), Entry("directory", 0o755, 7, 7), path)


@pytest.mark.parametrize(
    "path",
    ["x/haft.toml", "vendor/.vscode/settings.json", "x/.git/hooks/pre-commit", "x/.git/config", "x/.git", ".gitmodules",
     ".git/hooks/x.sample", ".git/config.worktree", ".git/modules/x/config", ".git/worktrees/w/gitdir"],
)  # fmt: skip
def test_taking_away_anything_else_is_let_pass(path):
    assert judged(file(), None, path) == []


def test_the_repository_of_the_workspace_is_not_removed_without_approval(ws):
    between = Between(ws)
    shutil.rmtree(ws / ".git")
    assert between.paths() == [".git/config"]


GRANTS = {
    ".envrc": [(".envrc", True), ("./.envrc", True), (".env*", True), ("x/.envrc", False), (".", False), ("", False)],
    "a/.vscode/x": [("a", True), ("a/**", True), ("a/.vscode/", True), ("*/.vscode", True), ("a/.vscode/x/**", False)],
    "a/b/.envrc": [("a/*/.envrc", True), ("*/.envrc", False), ("a/b", True), ("a/b/.env", False)],
    "a/.envrc": [("..", False), ("/a", False), ("**", True), ("*", True), ("b", False)],
    "a[1]/.envrc": [("a[1]/.envrc", True), ("a[2]/.envrc", False)],
}  # fmt: skip


@pytest.mark.parametrize(("path", "grant", "opens"), [(path, *each) for path, some in GRANTS.items() for each in some])
def test_a_grant_opens_what_it_says(path, grant, opens):
    assert is_granted(path, [grant]) is opens


def test_what_is_ones_own_is_protected_too(tmp_path):
    put(tmp_path, "tools/box/tool.py")
    put(tmp_path, "tools/single.py")
    own = ["tools/box", "tools/single.py", "deep/er/place"]
    between = Between(tmp_path)
    put(tmp_path, "tools/box/sub/new.py")
    put(tmp_path, "tools/other.py")
    put(tmp_path, "TOOLS/Box/x.py")
    put(tmp_path, "tools/boxes/x.py")
    (tmp_path / "tools/box/tool.py").unlink()
    (tmp_path / "tools/single.py").unlink()
    (tmp_path / "deep").symlink_to("tools")
    expected = ["TOOLS/Box/x.py", "deep", "tools/box/sub/new.py", "tools/box/tool.py", "tools/single.py"]
    assert between.paths(own=own) == expected
    assert between.paths(own=own, granted_paths=["tools/box"]) == ["TOOLS/Box/x.py", "deep", "tools/single.py"]


@pytest.mark.parametrize("key", ["filter.f.clean", "diff.d.textconv", "core.fsmonitor", "gpg.program", "alias.x"])
def test_a_script_that_the_configuration_names_is_protected(key, ws, git):
    put(ws, "scripts/old.sh", HOOK, 0o755)
    git(
        "config",
        key,
        "!sh scripts/old.sh; ./scripts/new.sh" if key == "alias.x" else "sh scripts/old.sh scripts/new.sh",
    )
    between = Between(ws)
    put(ws, "scripts/old.sh", "other", 0o755)
    put(ws, "scripts/new.sh", HOOK, 0o755)
    put(ws, "scripts/free.sh", HOOK, 0o755)
    assert between.paths() == ["scripts/new.sh", "scripts/old.sh"]
    assert key in between.offences()[0].why
    assert between.paths(granted_paths=["scripts"]) == []


def test_a_script_that_is_named_may_go_and_a_link_may_not_take_the_place_of_its_directory(ws, git):
    put(ws, "scripts/clean.sh", HOOK, 0o755)
    git("config", "filter.f.clean", "scripts/clean.sh")
    between = Between(ws)
    (ws / "scripts/clean.sh").unlink()
    assert between.paths() == []
    (ws / "scripts").rmdir()
    (ws / "scripts").symlink_to("else")
    assert between.paths() == ["scripts"]


def test_scripts_that_a_nested_repository_or_a_submodule_names_are_protected(ws, git, place):
    submodule(git, ws, place / "other")
    git("clone", "-q", place / "other", "apps/one")
    for top in (ws / "apps/one", ws / "libs/other"):
        git("config", "filter.f.process", "./run.sh", cwd=top)
    between = Between(ws)
    for top in ("apps/one", "libs/other", "."):
        put(ws, f"{top}/run.sh", HOOK, 0o755)
    assert between.paths() == ["apps/one/run.sh", "libs/other/run.sh"]


def test_hooks_that_a_person_has_in_every_repository_are_protected(ws, git, place, monkeypatch):
    put(place, "home/.gitconfig", "[core]\n\thooksPath = .githooks\n[diff]\n\texternal = tools/diff.sh\n")
    monkeypatch.setenv("HOME", str(place / "home"))
    monkeypatch.delenv("GIT_CONFIG_GLOBAL", raising=False)
    git("clone", "-q", place / "other", "apps/one")
    between = Between(ws)
    for path in (".githooks/pre-commit", "apps/one/.githooks/pre-commit", "tools/diff.sh", "apps/two/.githooks/x"):
        put(ws, path, HOOK, 0o755)
    assert between.paths() == [".githooks/pre-commit", "apps/one/.githooks/pre-commit", "tools/diff.sh"]


def test_all_of_husky_is_protected_at_any_depth(ws):
    between = Between(ws)
    for path in (".husky/pre-commit", ".husky/_/husky.sh", "apps/one/.husky/common.sh", "husky/free"):
        put(ws, path, HOOK, 0o755)
    assert between.paths() == [".husky/_/husky.sh", ".husky/pre-commit", "apps/one/.husky/common.sh"]


def test_hooks_that_the_configuration_puts_elsewhere_are_protected(ws, git):
    git("config", "core.hooksPath", ".husky/_")
    between = Between(ws)
    put(ws, ".husky/_/pre-commit", HOOK, 0o755)
    put(ws, ".husky/pre-commit", HOOK, 0o755)
    assert between.paths(own=elsewhere(str(ws))) == [".husky/_/pre-commit", ".husky/pre-commit"]
