"""Programs of a few instructions, made of bytes: they need no compiler, and there is one of every width that a kernel
of this machine runs. Each makes one system call and ends with what came of it."""

import struct
import subprocess
from collections.abc import Sequence
from pathlib import Path

from haft.helper.abi import Abi, kernel_abis
from haft.helper.tracing import PROGRAMS, executable

WIDTHS = [way.bits for way in kernel_abis()]


def of_width(bits: int) -> Abi:
    return next(way for way in kernel_abis() if way.bits == bits)


def program(way: Abi, call: str, *arguments: int) -> bytes:
    """Makes a call, and exits with the number of its error, or with less of its result than nothing."""
    number = way.numbers[call]
    machine = PROGRAMS[way.audit].machine
    code = {62: _x86_64, 3: _i386, 183: _aarch64, 40: _arm}[machine](number, arguments)
    return executable(way, machine, code)


def _x86_64(number: int, arguments: Sequence[int]) -> bytes:
    loads = b"".join(
        bytes([into]) + struct.pack("<I", value) for into, value in zip(b"\xbf\xbe\xba", arguments, strict=False)
    )
    leave = b"\x89\xc7\xf7\xdf\xb8\x3c\0\0\0\x0f\x05"
    return loads + b"\xb8" + struct.pack("<I", number) + b"\x0f\x05" + leave


def _i386(number: int, arguments: Sequence[int]) -> bytes:
    loads = b"".join(
        bytes([into]) + struct.pack("<I", value) for into, value in zip(b"\xbb\xb9\xba", arguments, strict=False)
    )
    leave = b"\x89\xc3\xf7\xdb\xb8\x01\0\0\0\xcd\x80"
    return loads + b"\xb8" + struct.pack("<I", number) + b"\xcd\x80" + leave


def _aarch64(number: int, arguments: Sequence[int]) -> bytes:
    steps = []
    for into, value in (*enumerate(arguments), (8, number)):
        steps += [0xD280_0000 | (value & 0xFFFF) << 5 | into, 0xF2A0_0000 | (value >> 16) << 5 | into]
    steps += [0xD400_0001, 0xCB00_03E0, 0xD280_0000 | 93 << 5 | 8, 0xD400_0001]
    return struct.pack(f"<{len(steps)}I", *steps)


def _arm(number: int, arguments: Sequence[int]) -> bytes:
    steps = []
    for into, value in (*enumerate(arguments), (7, number)):
        for opcode, half in ((0xE300_0000, value & 0xFFFF), (0xE340_0000, value >> 16)):
            steps.append(opcode | (half >> 12) << 16 | into << 12 | half & 0xFFF)
    steps += [0xEF00_0000, 0xE260_0000, 0xE3A0_7001, 0xEF00_0000]
    return struct.pack(f"<{len(steps)}I", *steps)


def runs(bits: int, place: Path) -> bool:
    """Whether this kernel runs programs of that width at all."""
    path = place / f"runs-{bits}"
    write(path, program(of_width(bits), "unshare", 0))
    try:
        return subprocess.run([path]).returncode == 0
    except OSError:
        return False
    finally:
        path.unlink()


def write(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    path.chmod(0o755)
