"""The system calls that the filters refuse, to programs of every width that this kernel runs, tracers included."""

import errno
import os
import struct
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

sys.path.insert(0, str(Path(__file__).parent))
import tiny

from haft.helper import abi, tracing
from haft.sandbox.abilities import Abilities

pytestmark = [
    pytest.mark.every_user,
    pytest.mark.skipif(sys.platform != "linux", reason="filters are made of Linux"),
]

NEWUSER, NEWNET, NEWNS = 0x1000_0000, 0x4000_0000, 0x0002_0000
UNIX, INET, PACKET, VSOCK = 1, 2, 17, 40
STREAM, DATAGRAM, RAW, SEQUENCED, CLOSED_ON_EXEC = 1, 2, 3, 5, 0o2000000
OPEN_SOCKET, OPEN_PAIR, RECEIVE = 1, 8, 17
NO_SUCH_CALL, NOT_PERMITTED, NO_SUCH_FAMILY = errno.ENOSYS, errno.EPERM, errno.EAFNOSUPPORT
DONE, OPENED, LET_THROUGH = 0, 253, errno.EFAULT
"""A descriptor, the third, shows as 253. LET_THROUGH: the kernel itself looked, and missed where to put an answer."""

RULES = {
    ("add_key", 0): (NO_SUCH_CALL, NO_SUCH_CALL),
    ("request_key", 0): (NO_SUCH_CALL, NO_SUCH_CALL),
    ("keyctl", 0): (NO_SUCH_CALL, NO_SUCH_CALL),
    ("io_uring_setup", 1): (NO_SUCH_CALL, NO_SUCH_CALL),
    ("socketcall", OPEN_SOCKET): (NO_SUCH_CALL, NO_SUCH_CALL),
    ("socketcall", OPEN_PAIR): (NO_SUCH_CALL, NO_SUCH_CALL),
    ("socketcall", RECEIVE): (LET_THROUGH, LET_THROUGH),
    ("socketcall", 21): (NO_SUCH_CALL, NO_SUCH_CALL),
    ("clone3", 0): (NO_SUCH_CALL, NO_SUCH_CALL),
    ("memfd_secret", 0): (NO_SUCH_CALL, NO_SUCH_CALL),
    ("io_setup", 1): (NO_SUCH_CALL, NO_SUCH_CALL),
    ("clone", NEWUSER): (NOT_PERMITTED, NOT_PERMITTED),
    ("unshare", NEWUSER): (NOT_PERMITTED, NOT_PERMITTED),
    ("unshare", NEWNET): (NOT_PERMITTED, NOT_PERMITTED),
    ("unshare", 0): (DONE, DONE),
    ("prlimit64", 1, 7): (NOT_PERMITTED, NOT_PERMITTED),
    ("prlimit64", 0, 7): (DONE, DONE),
    ("socket", VSOCK, STREAM): (NO_SUCH_FAMILY, NO_SUCH_FAMILY),
    ("socket", PACKET, RAW): (NO_SUCH_FAMILY, NO_SUCH_FAMILY),
    ("socket", INET, STREAM): (OPENED, OPENED),
    ("socket", UNIX, STREAM): (OPENED, NO_SUCH_FAMILY),
    ("socket", UNIX, DATAGRAM | CLOSED_ON_EXEC): (OPENED, NO_SUCH_FAMILY),
    ("socketpair", UNIX, STREAM): (LET_THROUGH, LET_THROUGH),
    ("socketpair", UNIX, SEQUENCED | CLOSED_ON_EXEC): (LET_THROUGH, LET_THROUGH),
    ("socketpair", UNIX, DATAGRAM): (LET_THROUGH, NO_SUCH_FAMILY),
    ("socketpair", UNIX, DATAGRAM | CLOSED_ON_EXEC): (LET_THROUGH, NO_SUCH_FAMILY),
    ("socketpair", UNIX, RAW): (LET_THROUGH, NO_SUCH_FAMILY),
    ("socketpair", INET, STREAM): (NO_SUCH_FAMILY, NO_SUCH_FAMILY),
}
"""By call and arguments: what becomes of it in a call that was approved, and in one that nobody approved."""


def runs_here(bits: int, place: Path) -> None:
    if not tiny.runs(bits, place):
        pytest.skip(f"this kernel runs no programs of {bits} bits")


@pytest.mark.parametrize("bits", tiny.WIDTHS)
def test_each_rule_holds_for_programs_of_every_width(bits, host):
    runs_here(bits, host.workspace)
    way = tiny.of_width(bits)
    traces = DONE if host.abilities.tracing else NOT_PERMITTED
    rules = {**RULES, ("ptrace", tracing.TRACEME): (traces, NOT_PERMITTED)}
    for call, allowed in {("memfd_create", 0): LET_THROUGH, ("vmsplice", 99): errno.EBADF}.items():
        rules[call] = (allowed if "memory" in host.abilities.cgroups else NO_SUCH_CALL,) * 2
    expected = {}
    for call, results in rules.items():
        if call[0] in way.numbers:
            name = "-".join(map(str, call))
            tiny.write(host.workspace / f"tiny-{name}", tiny.program(way, *call))
            expected[name] = results
    command = "for each in tiny-*; do ./$each; echo ${each#tiny-} $?; done"
    approved, unasked, asked = host.behind(command).output, host.unasked(command)[1], host.asking(command)[1]
    for path in host.workspace.glob("tiny-*"):
        path.unlink()
    assert came_of(approved) == {name: results[0] for name, results in expected.items()}
    assert came_of(unasked) == came_of(asked) == {name: results[1] for name, results in expected.items()}


def came_of(output: str) -> dict[str, int]:
    return {name: int(code) for name, _, code in (line.partition(" ") for line in output.splitlines())}


CHANGED = {
    "a new user namespace": (("unshare", 0), NEWUSER, errno.EPERM),
    "a new network": (("unshare", 0), NEWNET, errno.EPERM),
    "new mounts": (("unshare", 0), NEWNS, errno.EPERM),
    "a socket to the machine below": (("socket", INET, STREAM), VSOCK, errno.EAFNOSUPPORT),
    "a socket that sees every packet": (("socket", INET, STREAM), PACKET, errno.EAFNOSUPPORT),
    "limits of another process": (("prlimit64", 0, 7), 1, errno.EPERM),
}
"""A call that is allowed, what a tracer makes of its first argument, and how that is refused."""


@pytest.mark.parametrize("bits", tiny.WIDTHS)
def test_no_tracer_gets_a_call_past_the_filter(bits, host, python):
    runs_here(bits, host.workspace)
    way = tiny.of_width(bits)
    traced, tracer = tracing.PROGRAMS[way.audit], Path(__file__).with_name("tracer.py").read_text()
    words: list[object] = [traced.size, bits // 8, traced.arguments[0]]
    for number, (call, value, _error) in enumerate(CHANGED.values()):
        tiny.write(host.workspace / f"traced-{number}", tiny.program(way, *call))
        words += [f"./traced-{number}", value]
    line = python(tracer, *words)
    try:
        approved, unasked, asked = host.behind(line).output, host.unasked(line)[1], host.asking(line)[1]
        bare = host.passes_bare(line)
    finally:
        for path in host.workspace.glob("traced-*"):
            path.unlink()
    refused = [os.strerror(errno.EPERM)] * len(CHANGED)
    assert unasked.splitlines() == asked.splitlines() == refused
    held = [os.strerror(error) for _call, _value, error in CHANGED.values()]
    assert approved.splitlines() == (held if host.abilities.tracing else refused)
    assert bare.splitlines()[0] == "done"


def test_a_call_that_nobody_approved_traces_nothing(host, python):
    code = """
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
sys.exit(os.strerror(ctypes.get_errno()) if libc.ptrace(0, 0, None, None) else 0)
"""
    for code_of, said in (host.unasked(python(code)), host.asking(python(code))):
        assert (code_of, said) == (1, "Operation not permitted\n")
    assert host.passes_bare(python(code)) == ""


def test_a_program_that_git_runs_for_a_line_that_passes_unasked_traces_nothing(host):
    """Nobody is asked for `git diff`, and the repository says what it runs."""
    place = host.workspace / "repository"
    place.mkdir()
    git = ["git", "-C", place, "-c", "user.name=n", "-c", "user.email=e@example.org"]
    (place / ".gitattributes").write_text("a.txt diff=odd\n")
    (place / "a.txt").write_text("one\n")
    for words in (["init", "-q"], ["add", "."], ["commit", "-qm", "first"]):
        subprocess.run([*git, *words], check=True)
    (place / "a.txt").write_text("two\n")
    for name, call in {"trace": ("ptrace", tracing.TRACEME), "connect": ("socket", UNIX, STREAM)}.items():
        tiny.write(place / name, tiny.program(abi.kernel_abis()[0], *call))
    shown = "./trace; echo traced $?; ./connect; echo connected $?; cat"
    subprocess.run([*git, "config", "diff.odd.textconv", f"sh -c '{shown} $1' -"], check=True)
    outcome = host.call("auto", "cd repository && git diff")
    assert outcome.decision.unasked, outcome.decision
    assert f" traced {NOT_PERMITTED}\n connected {NO_SUCH_FAMILY}\n-one\n+two\n" in outcome.output


@pytest.mark.parametrize("bits", tiny.WIDTHS)
def test_a_kernel_that_shows_the_filter_an_argument_as_it_was_is_found_out(bits, tmp_path):
    """Such a kernel is played by a tracer that changes another register than that of the first argument."""
    runs_here(bits, tmp_path)
    way = tiny.of_width(bits)
    program = tracing.PROGRAMS[way.audit]
    aside = next(one for one in range(20) if one not in program.arguments)
    assert not tracing.holds(way, program._replace(arguments=(aside, *program.arguments[1:])))


def test_the_numbers_follow_the_width_of_the_process_and_not_the_name_of_the_kernel(monkeypatch):
    known = {
        "x86_64": (250, 288),
        "i686": (250, 288),
        "aarch64": (219, 311),
        "armv8l": (219, 311),
        "armv7l": (219, 311),
    }
    for machine, numbers in known.items():
        monkeypatch.setattr(os, "uname", lambda machine=machine: SimpleNamespace(machine=machine))
        for width, number in zip((8, 4), numbers, strict=True):
            monkeypatch.setattr(struct, "calcsize", lambda _format, width=width: width)
            assert abi.own_number("keyctl") == number, (machine, width)
            assert {way.bits for way in abi.kernel_abis()} == {32, 64}


def test_filters_are_there_under_the_32_bit_name_of_a_64_bit_kernel():
    code = "import os; from haft.helper import seccomp; print(os.uname().machine, seccomp.problem())"
    done = subprocess.run(["setarch", "linux32", sys.executable, "-c", code], capture_output=True, text=True)
    machine, _, problem = done.stdout.strip().partition(" ")
    assert machine != os.uname().machine or struct.calcsize("P") == 4, done.stderr
    assert problem == "None"


def test_a_machine_whose_calls_are_not_known_is_named():
    why = "haft does not know the system calls of sparc64"
    hello = {"namespaces": True, "landlock": 6, "network": True, "proc": True, "problem": None, "seccomp_problem": why}
    found = Abilities.from_hello(hello)
    assert not found.seccomp
    assert [each for each in found.missing() if why in each]
