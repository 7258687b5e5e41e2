"""Finds out whether seccomp filters hold for a traced process, by tracing a tiny program of each width (32 and 64
bits).

A tracer may change the arguments of a system call when the call enters the kernel. On x86 a filter then sees the new
arguments. Many kernels for ARM show the filter the old first argument, but run the call with the new first argument, so
a process that may trace its child can evade every rule about that argument. The kernel version does not tell which
kernels behave in this way, so haft finds out by trying.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import signal
import struct
from typing import NamedTuple

from haft.helper.abi import Abi, kernel_abis
from haft.helper.kernel import checked, libc
from haft.helper.seccomp import ALLOW, AT_ARGUMENTS, JUMP_EQUAL, LOAD, REFUSE, RETURN, packed, restrict

TRACEME, SYSCALL, SETOPTIONS, GETREGSET, SETREGSET, GET_SYSCALL_INFO = 0, 24, 0x4200, 0x4204, 0x4205, 0x420E
MARKED_STOPS, KILL_WITH_TRACER, GENERAL_REGISTERS = 1, 1 << 20, 1
ENTERED, LEFT = 1, 2
MARK, SEEN = 0x5EED, errno.ENOTTY
"""The value to which the tracer changes every argument, and the errno that the filter returns if it sees that value."""
LOADED_AT = 0x40_0000


class Program(NamedTuple):
    """How to make and trace a program that only calls getppid."""

    machine: int
    code: bytes
    number: int
    size: int
    """The size of all registers."""
    arguments: tuple[int, ...]
    """The registers that contain the arguments."""


PROGRAMS = {
    0xC000_003E: Program(62, b"\xb8\x6e\0\0\0\x0f\x05", 110, 216, (14, 13, 12, 7, 9, 8)),
    0x4000_0003: Program(3, b"\xb8\x40\0\0\0\xcd\x80", 64, 68, (0, 1, 2, 3, 4, 5)),
    0xC000_00B7: Program(183, struct.pack("<II", 0xD280_15A8, 0xD400_0001), 173, 272, (0, 1, 2, 3, 4, 5)),
    0x4000_0028: Program(40, struct.pack("<II", 0xE3A0_7040, 0xEF00_0000), 64, 72, (0, 1, 2, 3, 4, 5)),
}
"""The program for each ABI, by the ABI's audit number."""


def filters_hold() -> bool:
    """Whether filters hold for traced programs of every width that this machine runs; False if that is unknown."""
    return bool(kernel_abis()) and all(
        way.audit in PROGRAMS and holds(way, PROGRAMS[way.audit]) for way in kernel_abis()
    )


def executable(way: Abi, machine: int, code: bytes) -> bytes:
    """An ELF executable with these instructions."""
    wide = way.bits == 64
    header, entry = (64, 56) if wide else (52, 32)
    size, start = header + entry + len(code), LOADED_AT + header + entry
    words = "<HHIQQQIHHHHHH" if wide else "<HHIIIIIHHHHHH"
    flags = 0x0500_0000 if machine == 40 else 0  # The ABI that 32-bit ARM has had since 2005.
    begin = b"\x7fELF" + bytes([2 if wide else 1, 1, 1]) + bytes(9)
    begin += struct.pack(words, 2, machine, 1, start, header, 0, flags, header, entry, 1, 0, 0, 0)
    if wide:
        begin += struct.pack("<IIQQQQQQ", 1, 5, 0, LOADED_AT, LOADED_AT, size, size, 0x1_0000)
    else:
        begin += struct.pack("<IIIIIIII", 1, 0, LOADED_AT, LOADED_AT, size, size, 5, 0x1_0000)
    return begin + code


def holds(way: Abi, program: Program) -> bool:
    """Whether a filter sees the arguments that a tracer has changed, in a program of one width (32 or 64 bits)."""
    try:
        file = os.memfd_create("haft-traced", os.MFD_CLOEXEC)
    except OSError:
        return False
    try:
        os.write(file, executable(way, program.machine, program.code))
        pid = os.fork()
        if pid == 0:
            _be_traced(file)
        try:
            return _sees_changes(pid, way, program)
        finally:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
    except OSError:
        return False
    finally:
        os.close(file)


def _be_traced(file: int) -> None:
    """Execute the program, under a filter that returns `SEEN` if it sees every argument changed."""
    code = 255
    try:
        steps = []
        for number, place in enumerate(AT_ARGUMENTS):
            left = 2 * (len(AT_ARGUMENTS) - number - 1)
            steps += [(LOAD, 0, 0, place), (JUMP_EQUAL, 0, left + 1, MARK)]
        restrict(packed([*steps, (RETURN, 0, 0, REFUSE | SEEN), (RETURN, 0, 0, ALLOW)]))
        _ptrace(TRACEME, 0)
        os.execve(file, ["getppid"], {})  # noqa: S606  made of the bytes above
    except OSError as error:
        code = error.errno or code
    finally:
        os._exit(code)


def _sees_changes(pid: int, way: Abi, program: Program) -> bool:
    _, status = os.waitpid(pid, 0)
    if os.WIFEXITED(status):
        return os.WEXITSTATUS(status) == errno.ENOEXEC  # No program of this width runs here.
    _ptrace(SETOPTIONS, pid, 0, MARKED_STOPS | KILL_WITH_TRACER)
    entered, seen, number = _next_stop(pid)
    if (entered, seen, number) != (ENTERED, way.audit, program.number):
        return False
    width = way.bits // 8
    registers = bytearray(program.size + width)
    if _registers(GETREGSET, pid, registers) != program.size:
        return False
    for one in program.arguments:
        registers[one * width : (one + 1) * width] = MARK.to_bytes(width, "little")
    _registers(SETREGSET, pid, registers[: program.size])
    left, _seen, result = _next_stop(pid)
    return (left, result) == (LEFT, -SEEN)


def _registers(request: int, pid: int, held: bytearray) -> int:
    """Read or write the registers of a traced process; returns their size in bytes."""
    place = (ctypes.c_char * len(held)).from_buffer(held)
    vector = (ctypes.c_size_t * 2)(ctypes.addressof(place), len(held))
    _ptrace(request, pid, GENERAL_REGISTERS, ctypes.addressof(vector))
    return vector[1]


def _next_stop(pid: int) -> tuple[int, int, int]:
    """Run the traced program to the beginning or the end of its next system call. Returns which of the two it is, the
    ABI, and a number: at the beginning the number of the system call, at the end its result."""
    _ptrace(SYSCALL, pid)
    os.waitpid(pid, 0)
    found = ctypes.create_string_buffer(96)
    _ptrace(GET_SYSCALL_INFO, pid, len(found), ctypes.addressof(found))
    kind, seen = struct.unpack_from("=B3xI", found.raw)
    return kind, seen, struct.unpack_from("=q", found.raw, 24)[0]


def _ptrace(request: int, pid: int, address: int = 0, data: int = 0) -> None:
    checked(libc.ptrace(request, pid, ctypes.c_void_p(address), ctypes.c_void_p(data)), "ptrace")
