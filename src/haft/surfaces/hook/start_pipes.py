"""`start.py shell` inside a sandbox that forbids sockets, such as that of Codex: over named pipes.

`service/hooked_calls/pipes.py` is the other end. The command gets no input, since a pipe carries no descriptors.
"""

import posix


def run(start, ticket: bytes, command: bytes, variables: bytes, forwards) -> int:  # type: ignore[no-untyped-def]  # noqa: ANN001  only modules know `ModuleType`
    """Run the command, and return its exit status. `forwards` gets a function that sends a signal's number."""
    place = start.state_home() + b"/hook/pipes/" + ticket
    answer = posix.open(place + b"/answer", posix.O_RDONLY | posix.O_NONBLOCK)
    # Without O_NONBLOCK this would wait for ever if the resident has died: now it fails.
    request = posix.open(place + b"/request", posix.O_WRONLY | posix.O_NONBLOCK)
    posix.set_blocking(answer, True)
    posix.set_blocking(request, True)
    here = posix.getcwdb()
    # Where this sandbox forbids to write, the command must not write either.
    access = b"write" if posix.access(here, posix.W_OK) else b"read"
    start.write(request, start.message(b"s", b"1", ticket, command, here, variables, access))
    forwards(lambda number: start.write(request, start.message(b"k", b"%d" % number)))
    data = b""
    while True:
        length, colon, rest = data[1:].partition(b":")
        if colon and len(rest) > int(length):
            fields = start.fields_of(rest[: int(length)])
            kind, data = data[:1], rest[int(length) + 1 :]
            if kind == b"a":
                code, _directory, text = [*fields, b"", b""][:3]
                if text:
                    start.write(2, text.rstrip(b"\n") + b"\n")
                return int(code)
            start.write(2 if kind == b"2" else 1, fields[0])
            continue
        more = posix.read(answer, 1 << 18)
        if not more:
            raise EOFError
        data += more
