"""Checks out one commit of a foreign repository, in a sandbox of its own.

Git handles untrusted data here. So it runs in an empty directory, reaches only the host and port of the repository's
address, and has a configuration with one transport, no hooks, no filters and no credentials. The result is a plain
directory without history. This module does not check the content of the files.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from haft.contracts import NO_GRANTS, Command, Grants, near_miss
from haft.files import Root
from haft.sandbox import Sandbox
from haft.sources import run_briefly, stderr_summary
from haft.storage import StateHome
from haft.toolsets.download_network import RefusedConnections, git_host, restricted
from haft.toolsets.git_source import GitSource, is_commit

if TYPE_CHECKING:
    from haft.config import Config
    from haft.sources import ProgramOutput

MOST_BYTES: Final = 200_000_000
MOST_FILES: Final = 20_000
MAKING: Final = ".making-"
_STORE: Final = "store"
_TREE: Final = "tree"
_CONFIG: Final = """\
[protocol]
	allow = never
[protocol "{scheme}"]
	allow = always
[core]
	hooksPath = /dev/null
	attributesFile = /dev/null
	fsmonitor = false
	protectHFS = true
	protectNTFS = true
	autocrlf = false
[credential]
	helper =
[safe]
	directory = *
[submodule]
	recurse = false
[gc]
	auto = 0
[maintenance]
	auto = false
"""
_ENVIRONMENT: Final = {
    "GIT_ASKPASS": "",
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_LFS_SKIP_SMUDGE": "1",
    "GIT_SSH_COMMAND": "ssh -oBatchMode=yes",
    "GIT_TERMINAL_PROMPT": "0",
    "LC_ALL": "C",
    "SSH_ASKPASS": "",
}


class NotFetched(Exception):
    """Why a repository could not be fetched, in a sentence."""


@dataclass(frozen=True, slots=True)
class Checkouts:
    """Makes checkouts in one cache directory."""

    cache: str
    state_home: str
    config: Config
    env: Mapping[str, str]

    def place(self, source: GitSource, commit: str) -> str:
        """The path of a checkout, which need not exist yet."""
        return os.path.join(self.cache, source.folder, commit)

    async def check_out(self, source: GitSource, commit: str | None, seconds: float) -> str:
        """Check out `commit`, or if it is None the current commit of the source's ref. Returns the commit that was
        checked out."""
        with self._git(source, seconds) as git:
            commit = await git.take(commit)
            place = self.place(source, commit)
            if not os.path.isdir(place):
                await git.require_reasonable(commit)
                await git.write(commit)
                await asyncio.to_thread(_require_inside, git.tree)
                _put(git.tree, place)
            return commit

    async def resolve(self, source: GitSource, seconds: float) -> str:
        """The current commit of the source's ref. Fetches nothing, unless the ref may be an abbreviated commit."""
        with self._git(source, seconds) as git:
            return await git.take(None) if source.may_be_short else await git.remote()

    @contextlib.contextmanager
    def _git(self, source: GitSource, seconds: float) -> Iterator[_Git]:
        _make_private(self.cache)
        StateHome(self.state_home).prepare()
        folder = tempfile.mkdtemp(prefix=MAKING, dir=self.cache)
        limits = replace(self.config.limits, max_written_file_bytes=MOST_BYTES, max_changed_files=2 * MOST_FILES)
        sandbox = Sandbox(
            folder, self.state_home, self.env, Root(folder).open_directory, limits, self.config.sandbox_mode
        )
        refused = RefusedConnections()
        try:
            with open(os.path.join(folder, "config"), "w", encoding="utf-8") as file:
                file.write(_CONFIG.format(scheme=source.scheme))
            yield _Git(source, folder, sandbox, refused, time.monotonic() + seconds)
        finally:
            sandbox.close()
            for kept, _target in sandbox.site.caches:
                shutil.rmtree(
                    os.path.dirname(kept), ignore_errors=True
                )  # The sandbox keeps a directory for each workspace; for this one, it is not needed again.
            shutil.rmtree(folder, ignore_errors=True)


class _Git:
    """The git commands for one repository, run in one directory, all within one deadline."""

    def __init__(
        self, source: GitSource, folder: str, sandbox: Sandbox, refused: RefusedConnections, until: float
    ) -> None:
        self._source = source
        self._folder = folder
        self._sandbox = sandbox
        self._refused = refused
        self._until = until
        self.tree = os.path.join(folder, _TREE)

    async def take(self, commit: str | None) -> str:
        """Fetch `commit`, or if it is None the current commit of the source's ref. Returns the full commit."""
        source = self._source
        if source.path is not None and not os.path.exists(source.path):
            raise NotFetched(f"there is no repository at {source.path}")
        await self._do("init", "--quiet", "--bare", "--template=", _STORE)
        wanted = commit or source.commit
        if wanted is None:
            with contextlib.suppress(_NoSuchRef) if source.may_be_short else contextlib.nullcontext():
                wanted = await self.remote()
        fetch = (*self._at_store, "fetch", "--quiet", "--no-tags", "--no-recurse-submodules", "--no-write-fetch-head")
        if wanted is not None:
            output = await self._run(*fetch, "--depth=1", source.address, wanted)
            if output.exit_code == 0:
                return await self._whole(wanted)
        # Some servers deliver only tags and branches, and an abbreviated commit must be looked up among them.
        await self._do(*fetch, source.address, "+refs/heads/*:refs/heads/*", "+refs/tags/*:refs/tags/*")
        return await self._whole(wanted or source.ref or "HEAD")

    async def remote(self) -> str:
        """The current commit of the source's ref in the repository. If a tag and a branch have this name, the tag
        counts."""
        source = self._source
        if source.commit is not None:
            return source.commit
        ref = source.ref or "HEAD"
        names = [ref] if source.ref is None or ref.startswith("refs/") else [f"refs/tags/{ref}", f"refs/heads/{ref}"]
        wanted = [form for name in names for form in (f"{name}^{{}}", name)]
        output = await self._do("ls-remote", "--quiet", source.address, *wanted)
        found = _refs(output.stdout)
        for name in wanted:
            if is_commit(found.get(name, "")):
                return found[name]
        raise _NoSuchRef(f"{source.url} has no tag, branch or commit `{ref}`{await self._near(ref)}")

    async def _near(self, ref: str) -> str:
        output = await self._run("ls-remote", "--quiet", "--heads", "--tags", "--refs", self._source.address)
        names = [name.split("/", 2)[-1] for name in _refs(output.stdout)]
        near = near_miss(ref, names)
        return f"; did you mean `{near}`?" if near else ""

    async def _whole(self, name: str) -> str:
        output = await self._run(*self._at_store, "rev-parse", "--verify", "--quiet", f"{name}^{{commit}}")
        found = output.stdout.decode("ascii", "replace").strip()
        if output.exit_code != 0 or not is_commit(found):
            raise NotFetched(f"{self._source.url} has no commit `{name}`")
        return found

    async def require_reasonable(self, commit: str) -> None:
        """Raise `NotFetched` if the commit has too many files or bytes. Called before any file is written, because a
        small download can contain very many files."""
        output = await self._run(*self._at_store, "ls-tree", "-r", "-l", "--abbrev=4", "--full-tree", commit)
        if not output.is_too_long and output.exit_code != 0:
            raise self._failed(output)
        sizes = [line.split(b"\t")[0].split()[-1] for line in output.stdout.splitlines()]
        if output.is_too_long or len(sizes) > MOST_FILES:
            raise NotFetched(f"it has more files than a plugin may have ({MOST_FILES:_})")
        if sum(int(size) for size in sizes if size.isdigit()) > MOST_BYTES:
            raise NotFetched(f"it is larger than a plugin may be ({MOST_BYTES:_} bytes)")

    async def write(self, commit: str) -> None:
        os.mkdir(self.tree, 0o700)
        await self._do(*self._at_store, f"--work-tree={_TREE}", "checkout", "--quiet", "--force", "--detach", commit)

    @property
    def _at_store(self) -> tuple[str, ...]:
        return (f"--git-dir={_STORE}",)

    async def _do(self, *words: str) -> ProgramOutput:
        output = await self._run(*words)
        if output.exit_code != 0:
            raise self._failed(output)
        return output

    async def _run(self, *words: str) -> ProgramOutput:
        env = {**_ENVIRONMENT, "GIT_CONFIG_GLOBAL": os.path.join(self._folder, "config")}
        readable = () if self._source.path is None else (self._source.path,)
        left = self._until - time.monotonic()
        grants = await self._grants()
        launcher = self._sandbox.launcher("workspace", grants, observer=self._refused)
        return await run_briefly(
            Command(["git", *words], env=env, readable=readable), launcher, seconds=max(left, 0.001)
        )

    async def _grants(self) -> Grants:
        host = git_host(self._source.address) if self._source.path is None else None
        return NO_GRANTS if host is None else Grants(network=await restricted(self._sandbox, host))

    def _failed(self, output: ProgramOutput) -> NotFetched:
        if output.start_failure is not None:
            cure = "; install git" if output.start_failure.startswith("`git`") else ""
            return NotFetched(f"git could not be started: {output.start_failure}{cure}")
        if (sentence := self._refused.sentence()) is not None:
            return NotFetched(
                f"{sentence}: only the host in {self._source.url} is granted; if the repository has moved, write its "
                "new address in `plugins`"
            )
        if output.timed_out:
            return NotFetched(f"{self._source.url} did not answer in time")
        hint = ""
        if self._source.scheme == "ssh":
            hint = "; the sandbox has no keys: clone the repository yourself, and write `bash:` and its path"
        words = stderr_summary(output.stderr.replace(self._source.address.encode(), self._source.url.encode()))
        return NotFetched(f"git failed: {words or f'it exited {output.exit_code}'}{hint}")


class _NoSuchRef(NotFetched):
    """The repository has no such ref."""


def _refs(listed: bytes) -> dict[str, str]:
    """The commits by ref name, from the output of `ls-remote`."""
    pairs = (line.split("\t", 1) for line in listed.decode("utf-8", "replace").splitlines() if "\t" in line)
    return {name: commit for commit, name in pairs}


def _require_inside(tree: str) -> None:
    """Raise `NotFetched` if a link leads out of the tree: a plugin may read only its own folder."""
    root = os.path.realpath(tree)
    for top, directories, names in os.walk(tree):
        for name in (*directories, *names):
            path = os.path.join(top, name)
            if not os.path.islink(path):
                continue
            target, real = os.readlink(path), os.path.realpath(path)
            if os.path.isabs(target) or (real != root and not real.startswith(root + "/")):
                raise NotFetched(f"its link {os.path.relpath(path, tree)} leads out of it, to {target}"[:300])


def _put(tree: str, place: str) -> None:
    """Move the tree to `place` in one step. If another process has put the same tree there already, that tree stays."""
    _make_private(os.path.dirname(place))
    try:
        os.rename(tree, place)
    except OSError:
        if not os.path.isdir(place):
            raise


def _make_private(folder: str) -> None:
    os.makedirs(folder, mode=0o700, exist_ok=True)
