"""`start.py shell TICKET COMMAND`: runs a command through haft that an agent's own shell was about to run.

The resident gets the streams of this process, and its directory and variables. This process forwards signals and ends
with the status of the command. If this process dies, its connection closes, and the resident cancels the call.
"""

import _signal  # type: ignore[import-not-found]  # typeshed does not describe this builtin module
import _socket
import posix
import sys

FORWARDED = ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2", "SIGWINCH")
NOT_TO_ITS_END = b"haft: the command did not run to its end: "
SEE = b". `haft doctor` says more."
CANNOT_RUN = 126
"""The exit code of a command that was not run, as shells have it."""


def main(start, words: list[str]) -> int:  # type: ignore[no-untyped-def]  # noqa: ANN001  only modules know `ModuleType`
    """Run the command, and return its exit status. `start` is the module of `start.py`."""
    if len(words) != 2:
        return refuse(start, b"haft: this line needs a ticket and a command")
    ticket, command = (each.encode("utf-8", "surrogateescape") for each in words)
    variables = b"\0".join([name + b"=" + value for name, value in posix.environ.items()])
    try:
        connection = start.connected(start.state_home(), is_shell=True)
    except OSError as error:
        if error.errno == 1:  # EPERM: the agent's own sandbox forbids sockets.
            return over_pipes(start, ticket, command, variables)
        return refuse(start, NOT_TO_ITS_END + type(error).__name__.encode() + SEE)
    try:
        told = start.message(b"s", b"1", ticket, command, posix.getcwdb(), variables)
        streams = b"".join([number.to_bytes(4, sys.byteorder) for number in open_streams()])
        sent = connection.sendmsg([told], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, streams)])
        if told[sent:]:  # Sending nothing fails where the resident has already answered and closed the connection.
            connection.sendall(told[sent:])
        connection.settimeout(start.SILENCE)

        forward_signals(lambda number: connection.sendall(start.message(b"k", b"%d" % number)))
        code, _directory, text = [*start.answer_of(connection), b"", b""][:3]
        if text:
            start.write(2, text.rstrip(b"\n") + b"\n")
        return int(code)
    except (OSError, ValueError, EOFError) as error:
        why = b"haft's helper does not answer" if isinstance(error, TimeoutError) else type(error).__name__.encode()
        return refuse(start, NOT_TO_ITS_END + why + SEE)


def over_pipes(start, ticket: bytes, command: bytes, variables: bytes) -> int:  # type: ignore[no-untyped-def]  # noqa: ANN001  as above
    """Run the command from inside a sandbox that forbids sockets."""
    try:
        code: int = start.beside("start_pipes").run(start, ticket, command, variables, forward_signals)
        return code
    except (OSError, ValueError, EOFError) as error:
        why = b"the agent's own sandbox forbids to reach haft's helper"
        if isinstance(error, EOFError):
            why = b"haft's helper ended"
        return refuse(start, NOT_TO_ITS_END + why + SEE)


def forward_signals(send) -> None:  # type: ignore[no-untyped-def]  # noqa: ANN001  `Callable` would need an import
    """Pass the number of each signal that this process gets to `send`."""
    for name in FORWARDED:
        _signal.signal(getattr(_signal, name), lambda number, _frame: send(number))


def open_streams() -> tuple[int, ...]:
    """The descriptors of stdin, stdout and stderr. A stream that is closed is replaced by /dev/null."""
    for number in (0, 1, 2):
        try:
            posix.fstat(number)
        except OSError:
            opened = posix.open("/dev/null", posix.O_RDWR)
            if opened != number:
                posix.dup2(opened, number)
    return 0, 1, 2


def refuse(start, text: bytes) -> int:  # type: ignore[no-untyped-def]  # noqa: ANN001  as above
    """Say why the command does not run."""
    start.write(2, text + b"\n")
    return CANNOT_RUN
