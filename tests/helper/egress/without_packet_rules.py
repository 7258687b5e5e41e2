"""Runs a script in a network namespace whose kernel has no packet rules, beside a real egress process.

    python without_packet_rules.py SOURCE ORDER SCRIPT

`ORDER` is the host's message about the call, as JSON. The script's output goes to stdout, the events of the process
to stderr, one JSON object a line. A held connection is answered with a grant if its port is 80, else refused.
"""

import json
import os
import socket
import subprocess
import sys

source, order, script = sys.argv[1], json.loads(sys.argv[2]), sys.argv[3]
sys.path.insert(0, source)

from haft.helper import kernel, local_network  # noqa: E402

BOOT = "import sys; sys.path.append(sys.argv[1]); from haft.helper.egress import main; main(int(sys.argv[2]))"


def call(channel: socket.socket) -> None:
    """In the child: what the init of a call does."""
    if os.geteuid():
        user = os.getuid(), os.getgid()
        kernel.unshare(kernel.CLONE_NEWUSER, "users")
        kernel.map_user_to_itself(*user)
    kernel.unshare(kernel.CLONE_NEWNET, "network")
    local_network.sockets_for_any_port = list
    ends = local_network.prepare(with_hosts=True)
    roles = [role for role, _end in ends]
    assert "any-name" not in roles
    socket.send_fds(channel, [json.dumps(roles).encode()], [end.fileno() for _role, end in ends])
    answer = json.loads(channel.recv(10000))
    print(json.dumps(answer), file=sys.stderr, flush=True)
    subprocess.run([sys.executable, "-c", script], check=False, stderr=subprocess.STDOUT)
    sys.stdout.flush()


def main() -> None:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    words = [sys.executable, "-I", "-S", "-c", BOOT, source, str(theirs.fileno())]
    process = subprocess.Popen(words, pass_fds=[theirs.fileno()], env={}, cwd="/")
    theirs.close()
    ours.send(json.dumps({"proxies": {}}).encode())
    ours.recv(1000)
    channel, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    socket.send_fds(ours, [json.dumps({**order, "call": 1}).encode()], [other.fileno()])
    other.close()
    if not (child := os.fork()):
        try:
            ours.close()
            call(channel)
        finally:
            sys.stdout.flush()
            os._exit(0)
    channel.close()
    while True:
        event = json.loads(ours.recv(1 << 17))
        print(json.dumps(event), file=sys.stderr, flush=True)
        if event["event"] == "held":
            grant = {
                "grant": "asked", "host": event["host"], "wild": False, "ports": [[80, 80]], "literal": False,
                "within": [], "private": False,
            }  # fmt: skip
            answer = {"call": 1, "host": event["host"], "port": event["port"]}
            ours.send(json.dumps({**answer, "answer": grant if event["port"] == 80 else None}).encode())
        if event["event"] == "over":
            break
    os.waitpid(child, 0)
    ours.close()
    process.wait()


main()
