"""Programs that take memory which shows nowhere in their own: `hoards.py NAME` takes a little more again and again, and
says how much it has. Each stops by itself at `MOST`, so that none can harm the machine that runs the tests."""

import array
import contextlib
import ctypes
import fcntl
import mmap
import os
import socket
import sys
import tempfile
import time

STEP = 10_000_000
MOST = 1_500_000_000
PAGE = mmap.PAGESIZE
PIPE = 2 * PAGE
PIPES = 8_000_000 // PIPE
SIZE = STEP // PAGE * PAGE
libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
held = []


def nameless():
    """As programs do it: a file in memory, or one in /dev/shm where there is no such thing."""
    try:
        return os.memfd_create("hoard")
    except OSError:
        with tempfile.TemporaryFile(dir="/dev/shm") as file:
            return os.dup(file.fileno())


def write(descriptor):
    """One step; where nothing more goes in, hold on to what there is."""
    try:
        os.write(descriptor, bytes(STEP))
    except OSError:
        time.sleep(60)


def send(end, descriptor):
    end.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [descriptor]))])
    os.close(descriptor)


def fill(end, message=b"x" * 4000):
    """Until no more goes in. How many bytes that were."""
    end.setblocking(False)
    sent = 0
    with contextlib.suppress(BlockingIOError):
        while True:
            sent += end.send(message)
    return sent


def files_that_are_open():
    while True:
        held.append(nameless())
        write(held[-1])
        yield STEP


def files_that_are_mapped():
    while True:
        descriptor = nameless()
        write(descriptor)
        held.append(mmap.mmap(descriptor, PAGE))
        os.close(descriptor)
        yield STEP


def files_on_their_way():
    ours, theirs = socket.socketpair()
    held.append(theirs)
    while True:
        descriptor = nameless()
        write(descriptor)
        send(ours, descriptor)
        yield STEP


def messages():
    while True:
        held.append(socket.socketpair())
        yield fill(held[-1][0])


def messages_of_nobody():
    while True:
        ours, theirs = socket.socketpair()
        held.append(theirs)
        yield fill(ours)
        ours.close()


def packets_of_nobody():
    while True:
        ours, theirs = socket.socketpair(type=socket.SOCK_SEQPACKET)
        held.append(theirs)
        yield fill(ours)
        ours.close()


def messages_in_sockets_on_their_way():
    while True:
        ours, theirs = socket.socketpair()
        held.append(theirs)
        for _ in range(50):
            one, other = socket.socketpair()
            taken = fill(one)
            send(ours, one.detach())
            send(ours, other.detach())
            yield taken


def messages_over_loopback():
    with socket.create_server(("127.0.0.1", 0)) as server:
        while True:
            ours = socket.create_connection(server.getsockname())
            held.append((ours, server.accept()[0]))
            yield fill(ours, bytes(100_000))


def pages_in_messages():
    """One byte of each page is sent, and the file that they were of is emptied."""
    with tempfile.TemporaryFile(dir="/dev/shm") as file:
        while True:
            held.append(socket.socketpair())
            taken = 0
            reading, writing = os.pipe()
            pages = fcntl.fcntl(writing, fcntl.F_GETPIPE_SZ) // PAGE
            held[-1][0].setblocking(False)
            with contextlib.suppress(BlockingIOError):
                while True:
                    os.pwrite(file.fileno(), bytes(pages * PAGE), 0)
                    for page in range(pages):
                        splice(file.fileno(), page * PAGE, writing, 1)
                    splice(reading, None, held[-1][0].fileno(), pages)
                    os.ftruncate(file.fileno(), 0)
                    taken += pages * PAGE
            os.close(reading)
            os.close(writing)
            yield taken


def splice(source, offset, target, count):
    where = None if offset is None else ctypes.byref(ctypes.c_longlong(offset))
    if libc.splice(source, where, target, None, ctypes.c_size_t(count), 2) < 0:
        raise OSError(ctypes.get_errno(), "splice")


def pipes():
    """More than one process can have open."""
    while True:
        pid = os.fork()
        if pid:
            held.append(pid)
            os.waitid(os.P_PID, pid, os.WSTOPPED | os.WNOWAIT)
            yield PIPES * PIPE
            continue
        own = []
        for _ in range(PIPES):
            own.append(os.pipe())
            os.set_blocking(own[-1][1], False)
            with contextlib.suppress(BlockingIOError):
                os.write(own[-1][1], bytes(PIPE))
        os.kill(os.getpid(), 19)


def remains_of_mappings():
    """One page is left of each, and the rest is still there."""
    while True:
        where = libc.mmap(None, SIZE, 3, mmap.MAP_SHARED | mmap.MAP_ANONYMOUS, -1, 0)
        ctypes.memset(where, 1, SIZE)
        libc.munmap(where + PAGE, SIZE - PAGE)
        yield SIZE


def tables():
    """Reading takes no memory, but for the tables that say so: one page for as many as it has entries for."""
    size = PAGE * PAGE // 8
    where, rest = 0, 0
    while True:
        if not rest:
            where, rest = libc.mmap(None, size << 14, 1, 0x4022, -1, 0), 1 << 14
        for _ in range(SIZE // PAGE):
            if not rest:
                break
            ctypes.c_char.from_address(where).value  # read, that is all
            where, rest = where + size, rest - 1
        yield STEP


def segments():
    while True:
        number = libc.shmget(0, ctypes.c_size_t(STEP), 0o600)
        libc.shmat.restype = ctypes.c_void_p
        where = libc.shmat(number, None, 0)
        ctypes.memset(where, 1, STEP)
        libc.shmdt(ctypes.c_void_p(where))
        yield STEP


def queues():
    text = ctypes.create_string_buffer(9000)
    text[0] = 1
    while True:
        number = libc.msgget(0, 0o600)
        for _ in range(2):
            libc.msgsnd(number, text, ctypes.c_size_t(8000), 0o4000)
        yield 16000


def semaphores():
    while libc.semget(0, 32000, 0o600) >= 0:
        yield 32000 * 64
    time.sleep(60)


def main(name):
    taken = told = 0
    for more in globals()[name]():
        taken += more
        if taken - told >= STEP:
            told = taken
            print(taken, flush=True)
            time.sleep(0.04)  # Slowly, so that it is not the speed of the machine that decides.
        if taken >= MOST:
            print("all", flush=True)
            time.sleep(60)


if __name__ == "__main__":
    main(sys.argv[1])
