"""Trace programs, and change a register of each at the moment that its first system call enters the kernel:
`tracer.py SIZE WIDTH REGISTER PROGRAM VALUE...`. SIZE is that of all registers, WIDTH that of one.

Prints what came of each call. It runs inside of calls, so it needs nothing but Python.
"""

import ctypes
import os
import signal
import struct
import sys

TRACEME, SYSCALL, SETOPTIONS, GETREGSET, SETREGSET, GET_SYSCALL_INFO = 0, 24, 0x4200, 0x4204, 0x4205, 0x420E
libc = ctypes.CDLL(None, use_errno=True)


def ptrace(request, pid, address=0, data=0):
    if libc.ptrace(request, pid, ctypes.c_void_p(address), ctypes.c_void_p(data)) < 0:
        sys.exit(f"ptrace: {os.strerror(ctypes.get_errno())}")


def next_stop(pid):
    ptrace(SYSCALL, pid)
    os.waitpid(pid, 0)
    found = ctypes.create_string_buffer(96)
    ptrace(GET_SYSCALL_INFO, pid, len(found), ctypes.addressof(found))
    return found.raw[0], struct.unpack_from("=q", found.raw, 24)[0]


def changed(size, width, register, program, value):
    """What came of its first call."""
    pid = os.fork()
    if pid == 0:
        try:
            if not libc.ptrace(TRACEME, 0, None, None):
                os.execv(program, [program])
        finally:
            os._exit(ctypes.get_errno())
    _, status = os.waitpid(pid, 0)
    if os.WIFEXITED(status):
        return os.strerror(os.WEXITSTATUS(status))
    try:
        ptrace(SETOPTIONS, pid, 0, 1 | 1 << 20)
        assert next_stop(pid)[0] == 1
        held = ctypes.create_string_buffer(size)
        vector = (ctypes.c_size_t * 2)(ctypes.addressof(held), size)
        ptrace(GETREGSET, pid, 1, ctypes.addressof(vector))
        held[register * width : (register + 1) * width] = value.to_bytes(width, "little")
        ptrace(SETREGSET, pid, 1, ctypes.addressof(vector))
        kind, result = next_stop(pid)
        assert kind == 2
        return os.strerror(-result) if result < 0 else "done"
    finally:
        os.kill(pid, signal.SIGKILL)


layout = [int(word) for word in sys.argv[1:4]]
for program, value in zip(sys.argv[4::2], sys.argv[5::2], strict=True):
    print(changed(*layout, program, int(value)))
