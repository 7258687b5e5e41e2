"""Finds the dangers of a command, such as deleting whole directories, without the table of programs.

A danger is named in the prompt, and a rule allows the command only if the rule names the danger. If haft misses a
danger, analysis alone still does not allow the command, because the table lists none of the commands in this module as
safe. If haft is not certain, it reports the danger.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable
from typing import Final

from haft.lazy import regex
from haft.policy.analysis.command.wrappers import INTERPRETERS, SHELLS, is_interpreter, unwrap_any
from haft.policy.analysis.program import Argument
from haft.policy.analysis.tree.path_resolver import PathResolver
from haft.policy.analysis.verdict import DANGERS, Danger
from haft.values import dataclass

_MAX_WRAPPERS: Final = 6
_FORMATS: Final = regex(
    r"mkfs(?:\..+)?|mke2fs|mkswap|fdisk|sfdisk|cfdisk|gdisk|sgdisk|parted|wipefs|format|newfs|blkdiscard|shred-device"
    r"|cryptsetup|pvcreate|vgremove|lvremove|zpool|mdadm"
)
_PRIVILEGE: Final = frozenset((
    "sudo", "su", "doas", "pkexec", "chroot", "unshare", "nsenter", "mount", "umount", "setcap", "visudo", "usermod",
    "useradd", "passwd", "runuser", "setpriv", "capsh", "insmod", "modprobe", "sysctl", "iptables", "nft",
))  # fmt: skip
_SHUTDOWN: Final = frozenset((
    "shutdown", "reboot", "halt", "poweroff", "killall", "killall5", "pkill", "init", "telinit", "kexec",
))  # fmt: skip
_STOPPING: Final = frozenset((
    "stop", "restart", "kill", "isolate", "poweroff", "reboot", "halt", "suspend", "hibernate", "disable", "mask",
    "emergency", "rescue", "kexec", "exit",
))  # fmt: skip
_ALL_OPERANDS: Final = frozenset((
    "rm", "rmdir", "unlink", "shred", "mv", "chmod", "chown", "chgrp", "chattr", "setfacl", "tee", "touch", "mkdir",
    "truncate", "fallocate", "mkfifo", "mknod", "sed", "dd", "patch", "vi", "vim", "nano", "ed", "ex",
))  # fmt: skip
DELETING: Final = frozenset(("rm", "rmdir", "unlink", "shred"))
"""Programs that delete a whole tree if another program, such as `find`, starts them with each file in it."""
_LAST_OPERAND: Final = frozenset(("cp", "install", "ln", "rsync", "scp"))
_HOME: Final = regex(r"\$\{?HOME\}?|~(?=/|$)")
_DEVICE: Final = regex(
    r"/dev/(?:[shv]d[a-z]|xvd|nvme|mmcblk|disk|rdisk|mapper/|dm-|loop[0-9]|md[0-9]|mem|kmem|port|sr[0-9]|nbd)"
)
_FORKING: Final = regex(r"\bfork\b.*\bwhile\b|\bwhile\b.*\bfork\b|os\.fork", re.DOTALL)
_CODE: Final = regex(r"-[A-Za-z]*[ce]|--eval|--exec|-p|-r|--command")
DELETES_IN_CODE: Final = regex(
    r"shutil\.rmtree|\brmtree\s*\(|import[^;\n]*\brmtree\b|rmSync|rimraf|rm_rf|remove_tree|FileUtils\.rm_r"
    r"|FileUtils\.remove_(?:dir|entry)|\brm(?:dir)?(?:Sync)?\([^;]*\brecursive\b"
)


@dataclass(frozen=True, slots=True)
class Dangers:
    """The dangers of a command, or of a line."""

    visible: tuple[Danger, ...] = ()
    """The dangers that are visible in the words of the command."""
    possible: tuple[Danger, ...] = ()
    """The dangers that the command may have although its words do not show them: see `Part.possible`."""


@dataclass(frozen=True, slots=True)
class DangerFinder:
    """Finds the dangers of commands in one context."""

    resolver: PathResolver
    line_dangers: Callable[[str, int, bool], Dangers]
    """Returns the dangers of a line within a line (`sh -c '…'`). Its arguments are the text, the depth of the text, and
    whether a pipe is the shell's input."""
    depth: int

    def find(
        self, arguments: list[Argument], directory: str | None, *, has_input: bool, has_outer_input: bool = False
    ) -> Dangers:
        """The dangers of a command. The first of `arguments` is the program. `has_input` says whether a pipe is the
        command's input; `has_outer_input`, whether a pipe is the input of the statement around the command.
        """
        found: list[Danger] = []
        for _ in range(_MAX_WRAPPERS):
            name = arguments[0].text.rpartition("/")[2]
            rest = arguments[1:]
            found += self._find_one(name, rest, directory, has_input=has_input, has_outer_input=has_outer_input)
            following = unwrap_any(name, rest)
            if not following:
                break
            if name in ("xargs", "parallel") and is_interpreter(following[0].text.rpartition("/")[2]):
                found.append("fetch-and-run")
            arguments = following
        return Dangers(in_class_order(found))

    def operand_dangers(self, arguments: list[Argument], directory: str | None) -> tuple[Danger, ...]:
        """The danger `outside-workspace` if an operand lies outside of the workspace, whatever the program is; empty
        otherwise."""
        for argument in arguments[1:]:
            for text in self._texts(argument):
                path = _path_in(text)
                is_known = directory is not None or path.startswith(("/", "..", "~"))
                if path and is_known and self.resolver.write_dangers(directory, path):
                    return ("outside-workspace",)
        return ()

    def _find_one(
        self, name: str, rest: list[Argument], directory: str | None, *, has_input: bool, has_outer_input: bool = False
    ) -> list[Danger]:
        texts = [each.text for each in rest]
        found = self.find_by_program(name, rest, directory)
        if name == "eval" or (name in ("source", ".") and any(not each.literal for each in rest)):
            found.append("fetch-and-run")
        if is_interpreter(name):
            found += self._interpreter_dangers(name, rest, has_input=has_input, has_outer_input=has_outer_input)
        if name == "eval" and all(each.literal for each in rest):
            found += self.line_dangers(" ".join(texts), self.depth + 1, has_input or has_outer_input).visible
        if name == "find":
            found += self._find_exec_dangers(rest, directory)
        return found

    def find_by_program(self, name: str, rest: list[Argument], directory: str | None) -> list[Danger]:
        """The dangers that a program has because of its own options and operands."""
        texts = [text for each in rest for text in ((each.text,) if each.literal else (each.text, *(each.paths or ())))]
        found = list(_program_dangers(name, texts))
        if deletes_trees(name, texts):
            found.append("recursive-delete")
        if any(_DEVICE.search(text) for text in texts):
            found.append("raw-device")
        return found + self._write_dangers(name, rest, directory)

    def _find_exec_dangers(self, rest: list[Argument], directory: str | None) -> list[Danger]:
        found: list[Danger] = []
        for at, each in enumerate(rest[:-1]):
            if each.text in ("-exec", "-execdir", "-ok", "-okdir"):
                started = rest[at + 1].text.rpartition("/")[2]
                if started not in ("find", "xargs"):
                    found += self._find_one(started, rest[at + 2 :], directory, has_input=False)
                if started in DELETING:
                    found.append("recursive-delete")
        return found

    def _write_dangers(self, name: str, rest: list[Argument], directory: str | None) -> list[Danger]:
        operands = [each for each in rest if not each.text.startswith("-")]
        if name == "dd":
            operands = [Argument(each.text[3:]) for each in rest if each.text.startswith("of=")]
        elif name in _LAST_OPERAND:
            targets = [each.text.partition("=")[2] for each in rest if each.text.startswith("--target-directory=")]
            targets += [after.text for each, after in itertools.pairwise(rest) if each.text == "-t"]
            operands = operands[-1:] + [Argument(each) for each in targets]
        elif name not in _ALL_OPERANDS or (name == "sed" and not any(_in_place(each.text) for each in rest)):
            operands = [Argument(rest[at + 1].text) for at, each in enumerate(rest[:-1]) if each.text in ("-o", "-O")]
            operands += [Argument(each.text.partition("=")[2]) for each in rest if each.text.startswith("--output=")]
        found: list[Danger] = []
        for operand in operands:
            for text in self._texts(operand):
                found += self.resolver.write_dangers(directory, text)
        return found

    def _interpreter_dangers(
        self, name: str, rest: list[Argument], *, has_input: bool, has_outer_input: bool
    ) -> list[Danger]:
        found: list[Danger] = []
        code = next((at for at, each in enumerate(rest) if _CODE.fullmatch(each.text)), None)
        if any("<(" in each.text and not each.literal for each in rest):
            found.append("fetch-and-run")
        if code is not None and code + 1 < len(rest):
            given = rest[code + 1]
            if not given.literal:
                found.append("fetch-and-run")
            elif name in SHELLS:
                found += self.line_dangers(given.text, self.depth + 1, has_input or has_outer_input).visible
            if _FORKING.search(given.text) and INTERPRETERS.fullmatch(name):
                found.append("fork-bomb")
            if DELETES_IN_CODE.search(given.text):
                found.append("recursive-delete")
        elif (has_input or has_outer_input) and "-m" not in [each.text for each in rest]:
            operands = [each for each in rest if not each.text.startswith("-")]
            if not operands or "-s" in [each.text for each in rest] or (has_input and name in SHELLS):
                found.append("fetch-and-run")
        return found

    def _texts(self, argument: Argument) -> tuple[str, ...]:
        if argument.literal:
            return (argument.text,)
        if argument.paths is not None:
            return argument.paths
        text = argument.text.strip("\"'").replace('"', "").replace("'", "")
        return (_HOME.sub(lambda _: self.resolver.context.home, text, count=1),)

    def texts(self, argument: Argument) -> tuple[str, ...]:
        """The possible values of an argument, with the path of the home directory in place of words such as `~`."""
        return self._texts(argument)


def in_class_order(dangers: Iterable[Danger]) -> tuple[Danger, ...]:
    """Each danger once, in the order of `DANGERS`."""
    unique = set(dangers)
    return tuple(danger for danger in DANGERS if danger in unique)


def _program_dangers(name: str, texts: list[str]) -> Iterable[Danger]:
    if _FORMATS.fullmatch(name):
        yield "format"
    if name in _PRIVILEGE:
        yield "privilege"
    if name in ("chmod", "install") and any(
        re.fullmatch(r"[ugoa]*\+[rwx]*s.*|[0-7]?[4-7][0-7]{3}", each) for each in texts
    ):
        yield "privilege"
    if name in _SHUTDOWN or (name in ("systemctl", "service", "launchctl", "rc-service") and _STOPPING & set(texts)):
        yield "shutdown"
    if name == "kill" and "-1" in texts[1:]:
        yield "shutdown"


def deletes_trees(name: str, texts: list[str]) -> bool:
    """Whether a program, with these words, deletes whole directories."""
    name = {"grm": "rm", "gfind": "find", "gtar": "tar", "bsdtar": "tar"}.get(name, name)
    if name == "rm":
        return any(_has_letter(each, "rR") or ("--recursive".startswith(each) and len(each) > 2) for each in texts)
    if name == "find":
        return "-delete" in texts
    if name == "tar":
        return any(
            _is_short_for(each, "--rem", "ove-files") or _is_short_for(each, "--recursive", "-unlink") for each in texts
        )
    if name == "zip":
        return any(_has_letter(each, "m") or _is_short_for(each, "--mo", "ve") for each in texts)
    if name == "7z":
        return "-sdel" in texts
    if name == "rsync":
        return any(each.startswith("--del") or _is_short_for(each, "--remov", "e-source-files") for each in texts)
    if name == "git":
        return _git_deletes_trees(texts)
    return name in ("rimraf", "trash", "srm")


def _git_deletes_trees(texts: list[str]) -> bool:
    pairs = [*itertools.pairwise(each for each in texts if not each.startswith("-"))]
    if ("worktree", "remove") in pairs or ("submodule", "deinit") in pairs:
        return True
    return "clean" in texts and any(
        _has_letter(each, "fdxX") or _is_short_for(each, "--f", "orce") or "clean.requireforce" in each.lower()
        for each in texts
    )


def _is_short_for(text: str, least: str, more: str) -> bool:
    """Whether a word is the long option `least` + `more`, or an abbreviation of this option that begins with
    `least`."""
    return text.startswith(least) and (least + more).startswith(text)


def _has_letter(text: str, letters: str) -> bool:
    return text.startswith("-") and not text.startswith("--") and any(letter in text[1:] for letter in letters)


def _in_place(text: str) -> bool:
    return text.startswith("--in-place") or _has_letter(text, "i")


def _path_in(text: str) -> str:
    """The path that a word contains: the whole word, or the value of an option in it."""
    if not text.startswith("-"):
        return text
    _, equals, value = text.partition("=")
    return value if equals else text[2:] if text[2:3] == "/" else ""
