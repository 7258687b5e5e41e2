"""A kernel without packet rules: granted ports are listened on one by one, and only three ports can wait."""

import json
import socket
import subprocess
import sys
from pathlib import Path

import pytest

import haft

pytestmark = [
    pytest.mark.every_user,
    pytest.mark.skipif(sys.platform != "linux", reason="there are no network namespaces elsewhere"),
]

CLIENT = """
import socket, struct
def look_up(name):
    query = b"\\1\\2\\1\\0\\0\\1\\0\\0\\0\\0\\0\\0" + b"".join(bytes([len(p)]) + p.encode() for p in name.split("."))
    end = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    end.settimeout(20)
    end.sendto(query + b"\\0\\0\\1\\0\\1", ("127.0.0.1", 53))
    answer = end.recv(1000)
    return socket.inet_ntoa(answer[-4:]) if answer[7] else "code %d" % (answer[3] & 15)
def connect(name, port):
    address = look_up(name)
    if address.startswith("code"):
        return print(name, port, address)
    try:
        end = socket.create_connection((address, port), 20)
        print(name, port, end.recv(100)[:20])
    except OSError as error:
        print(name, port, type(error).__name__)
"""


def grant(host, *ports, wild=False):
    return {
        "grant": host, "host": host, "wild": wild, "ports": [[port, port] for port in ports], "literal": False,
        "within": [], "private": False,
    }  # fmt: skip


def run(script, *grants, asks=False):
    source = str(Path(haft.__file__).parents[1])
    program = Path(__file__).with_name("without_packet_rules.py")
    order = json.dumps({"grants": grants, "asks": asks})
    done = subprocess.run(
        [sys.executable, program, source, order, CLIENT + script], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines(), [json.loads(line) for line in done.stderr.splitlines()]


def test_a_granted_port_is_listened_on_and_others_are_refused_by_the_kernel():
    lines, events = run(
        'connect("granted.invalid", 443); connect("granted.invalid", 8443); connect("other.invalid", 443)',
        grant("granted.invalid", 80, 443),
    )
    # The name does not exist, so the granted connection is accepted and then fails.
    assert lines[0] == "granted.invalid 443 ConnectionResetError"
    assert lines[1:] == ["granted.invalid 8443 ConnectionRefusedError", "other.invalid 443 ConnectionRefusedError"]
    told = {(event["event"], event["host"], event["port"]) for event in events if "host" in event}
    assert told == {
        ("failed", "granted.invalid", 443),
        ("refused", "granted.invalid", 8443),
        ("refused", "other.invalid", 443),
    }


def test_names_of_a_wildcard_are_listened_on_until_the_prepared_sockets_are_used_up():
    lines, _events = run(
        'for number in range(130): print(look_up(f"n{number}.wild.invalid"))', grant("wild.invalid", 80, 443, wild=True)
    )
    assert len(set(lines[:100])) == 100
    assert all(line.startswith("198.18.") for line in lines[:100])
    assert lines[-1] == "code 2"


def test_connections_to_other_hosts_wait_on_the_usual_ports_only():
    lines, events = run(
        'connect("ask.invalid", 80); connect("ask.invalid", 22); connect("ask.invalid", 4711)', asks=True
    )
    assert [line.split()[-1] for line in lines[1:]] == ["ConnectionResetError", "ConnectionRefusedError"]
    assert [(event["host"], event["port"]) for event in events if event.get("event") == "held"] == [
        ("ask.invalid", 80),
        ("ask.invalid", 22),
    ]
    assert ("failed", 80) in [(event.get("event"), event.get("port")) for event in events]


def test_a_grant_of_all_ports_says_that_it_needs_packet_rules():
    every = {**grant("all.invalid"), "ports": [[1, 65535]]}
    _lines, events = run("print('not reached')", every)
    assert "packet rules" in events[0]["problem"]


def test_the_test_itself_looks_up_names_that_do_not_exist():
    with pytest.raises(OSError, match=r"."):
        socket.getaddrinfo("granted.invalid", 80)
