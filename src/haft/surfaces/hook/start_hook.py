"""What `start.py` does: the program that agents start before and after each of their own tools.

It passes the bytes that the agent wrote to the resident, over the socket in the state home, and prints the answer. It
starts the resident if there is none. If anything fails, it denies the call. `python -I -S start.py shell TICKET
COMMAND` is the rewritten form of an agent's shell command: see `start_shell.py`.

Nothing here is imported from haft, nor from most of the standard library: each import of `json` or `socket` alone would
double the time that the agent waits. What is rarely needed is in `start_cold.py`. `service/hook_messages.py` describes
the messages.
"""

import _signal  # type: ignore[import-not-found]  # typeshed does not describe this builtin module
import _socket
import posix
import sys

SECONDS = {
    "claude-code": 295,
    "codex": 295,
    "gemini": 295,
    "opencode": 295,
    "cursor": 295,
    "vscode": 295,
    "antigravity": 295,
}
"""For each agent, after how many seconds the call is denied. `connect` gives the agent a limit that is five
seconds longer: an agent whose hook does not end in time would let the call pass."""
SILENCE = 30
"""After how many seconds without a sign of life of the resident the call is denied."""
AFTER = (b'"PostToolUse"', b'"PostToolUseFailure"', b'"AfterTool"', b'"tool.execute.after"', b'"afterFileEdit"')
BEFORE = (b'"PreToolUse"', b'"BeforeTool"', b'"tool.execute.before"', b'"PermissionRequest"', b'"before')
PREFIXES = (
    b"CLAUDE", b"CODEX", b"GEMINI", b"OPENCODE", b"CURSOR", b"VSCODE", b"TERM", b"HAFT_HOME", b"PATH", b"VIRTUAL_ENV",
    b"CONDA_PREFIX", b"LANG", b"LC_", b"TZ", b"HOME", b"XDG_CONFIG_HOME",
)  # fmt: skip
"""The variables of the agent that the resident gets begin with these names."""
DENIED = b"haft denied this call, because its hook could not decide: "
SEE = b". `haft doctor` says more.\n"


def state_home() -> bytes:
    """The path of the state home, as `storage/home.py` finds it."""
    env = posix.environ
    given = env.get(b"HAFT_HOME")
    if given and given[:1] == b"/":
        return given
    home = env.get(b"HOME")
    if not home:
        import pwd

        home = pwd.getpwuid(posix.getuid()).pw_dir.encode()
    if given:
        return home + given[1:] if given[:2] == b"~/" else posix.getcwdb() + b"/" + given
    if sys.platform == "darwin":
        return home + b"/Library/Application Support/haft"
    state = env.get(b"XDG_STATE_HOME", b"")
    return (state if state[:1] == b"/" else home + b"/.local/state") + b"/haft"


def netstring(data: bytes) -> bytes:
    """The bytes with their length before them."""
    return b"%d:%s," % (len(data), data)


def message(kind: bytes, *fields: bytes) -> bytes:
    """A message to the resident."""
    return kind + netstring(b"".join([netstring(field) for field in fields]))


def beside(name: str):  # type: ignore[no-untyped-def]  # noqa: ANN201  only modules know `ModuleType`
    """A module in the directory of this file."""
    return sys.modules["__main__"].load(name)


def connected(home: bytes, *, is_shell: bool) -> _socket.socket:
    """A connection to the resident. Starts the resident if nobody listens. `is_shell`: see `start_cold.py`."""
    connection = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    connection.settimeout(SILENCE)
    try:
        connection.connect(address(home))
    except OSError as error:
        if error.errno == 1:  # EPERM: a sandbox forbids sockets. Nobody could start the resident from inside.
            raise
        beside("start_cold").start_resident(home, SILENCE, is_shell=is_shell)
        connection.connect(address(home))
    return connection


def address(home: bytes) -> bytes:
    """The address of the socket. The path of a socket is at most 107 bytes long, so a longer one is named by the
    descriptor of its directory."""
    path = home + b"/hook/socket"
    if len(path) < 100:
        return path
    return b"/proc/self/fd/%d/socket" % posix.open(home + b"/hook", posix.O_RDONLY)


def answer_of(connection: _socket.socket) -> list[bytes]:
    """The fields of the answer."""
    data = b""
    while True:
        data = data.lstrip(b".")
        if data:
            if data[:1] != b"a":
                raise ValueError("no answer")
            length, colon, rest = data[1:].partition(b":")
            if colon and len(rest) > int(length):
                return fields_of(rest[: int(length)])
        more = connection.recv(1 << 18)
        if not more:
            raise EOFError
        data += more


def fields_of(body: bytes) -> list[bytes]:
    """The fields in the body of a message."""
    fields: list[bytes] = []
    while body:
        length, _, rest = body.partition(b":")
        fields.append(rest[: int(length)])
        body = rest[int(length) + 1 :]
    return fields


def write(descriptor: int, data: bytes) -> None:
    """Write everything."""
    while data:
        data = data[posix.write(descriptor, data) :]


def deny(why: bytes, given: bytes = b"") -> None:
    """Deny the call, in the form that every agent takes: exit code 2, and the reason on stderr. After the call there is
    nothing to deny."""
    is_after = any(mark in given for mark in AFTER) and not any(mark in given for mark in BEFORE)
    text = b"haft could not record the end of this call: " if is_after else DENIED
    try:
        write(2, text + why + SEE)
    finally:
        posix._exit(0 if is_after else 2)


def main() -> None:
    """Answer an agent, or run the command of a rewritten line."""
    if sys.argv[1:2] == ["shell"]:
        posix._exit(beside("start_shell").main(sys.modules[__name__], sys.argv[2:]))
    given, code = b"", 2
    try:
        agent = sys.argv[1]
        seconds = SECONDS[agent]

        def late(_number: int, _frame: object) -> None:
            deny(b"it did not decide within %d seconds" % seconds, given)

        _signal.signal(_signal.SIGALRM, late)
        _signal.alarm(seconds)
        while True:
            data = posix.read(0, 1 << 18)
            if not data:
                break
            given += data
        variables = b"\0".join([k + b"=" + v for k, v in posix.environ.items() if k.startswith(PREFIXES)])
        connection = connected(state_home(), is_shell=b'"command"' in given)
        connection.sendall(message(b"h", b"1", agent.encode(), posix.getcwdb(), given, variables))
        told, out, err = answer_of(connection)[:3]
        code = int(told)
        write(1, out)
        write(2, err)
    except BaseException as error:
        name = type(error).__name__.encode()
        deny(
            {b"KeyError": b"it knows no such agent", b"TimeoutError": b"its helper does not answer"}.get(name, name),
            given,
        )
    posix._exit(code)
