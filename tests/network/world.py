"""A world of its own: a network in which addresses that look public are local, with names, certificates and servers.
The program enters it, starts the servers, and then makes the calls of `calls.py` there.

    python world.py PLACE    # reads PLACE/checks.json, writes PLACE/results.json and PLACE/seen.jsonl

Nothing of this needs the internet, and nothing of the machine's own network is changed: the world has namespaces of its
own, as root and, with a user namespace, as an ordinary user.
"""

import base64
import contextlib
import ctypes
import glob
import hashlib
import io
import json
import os
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import tarfile
import threading
import time
import zipfile

from names import NAMES, PROBE
from servers import make_certificates, serve

from haft.helper.local_network import make_all_addresses_local

NEWNS, NEWUSER, NEWNET = 0x20000, 0x10000000, 0x40000000
MS_BIND, MS_REC, MS_PRIVATE = 0x1000, 0x4000, 1 << 18
PR_SET_PDEATHSIG = 1
MISSING = 77
"""The exit code where this machine cannot have a world."""
HERE = os.path.dirname(os.path.abspath(__file__))
CALLS = f"{HERE}/calls.py"
libc = ctypes.CDLL(None, use_errno=True)


def checked(result, what):
    if result < 0:
        raise OSError(ctypes.get_errno(), f"{what}: {os.strerror(ctypes.get_errno())}")


def mount(source, target, flags):
    words = [None if each is None else each.encode() for each in (source, target)]
    checked(libc.mount(*words, None, ctypes.c_ulong(flags), None), f"mount {target}")


def enter(place):
    """Go into a network and a mount namespace of our own."""
    uid, gid = os.getuid(), os.getgid()
    checked(libc.unshare((NEWUSER if uid else 0) | NEWNET | NEWNS), "unshare")
    if uid:
        for name, words in (("setgroups", "deny"), ("uid_map", f"{uid} {uid} 1"), ("gid_map", f"{gid} {gid} 1")):
            with open(f"/proc/self/{name}", "w") as file:
                file.write(words)
    mount(None, "/", MS_REC | MS_PRIVATE)
    make_all_addresses_local()
    with open(f"{place}/hosts", "w") as file:
        file.write("127.0.0.1 localhost\n::1 localhost\n")
        for name, addresses in NAMES.items():
            file.writelines(f"{address} {name}\n" for address in addresses)
        file.writelines(f"20.0.0.2 n{number}.wild.example\n" for number in range(100))
    with open(f"{place}/resolv.conf", "w") as file:
        file.write("nameserver 127.0.0.1\noptions attempts:1 timeout:2\n")
    mount(f"{place}/hosts", "/etc/hosts", MS_BIND)
    if os.path.exists("/etc/resolv.conf"):
        mount(f"{place}/resolv.conf", os.path.realpath("/etc/resolv.conf"), MS_BIND)


def furnish(place):
    """Make what the servers serve: a repository, a Python package and an npm package."""
    www = f"{place}/www"
    os.makedirs(f"{www}/simple/tiny")
    os.makedirs(f"{www}/npm/files")
    make_certificates(place, [*NAMES, "*.wild.example", "localhost"])
    subprocess.run(
        "git init -q r && cd r && git -c user.name=p -c user.email=p@p commit -q --allow-empty -m first && cd .. && "
        "git clone -q --bare r repo.git && cd repo.git && git update-server-info",
        shell=True, check=True, cwd=www, capture_output=True, env={**os.environ, "HOME": place},
    )  # fmt: skip
    if shutil.which("gcc"):
        static = f"{place}/static"
        subprocess.run(["gcc", "-O1", "-static", "-o", static, f"{HERE}/static.c"], check=False, capture_output=True)
    programs = f"{os.path.dirname(sys.executable)}:{os.environ.get('PATH', '')}"
    if os.environ.get("HAFT_MORE") and (go := shutil.which("go", path=programs)):  # To compile it takes a minute.
        env = {**os.environ, "CGO_ENABLED": "0", "GOCACHE": f"{place}/go-cache", "GOFLAGS": "-mod=mod"}
        words = [go, "build", "-o", f"{place}/static-go", f"{HERE}/static.go"]
        subprocess.run(words, check=False, capture_output=True, env=env)
    with zipfile.ZipFile(f"{www}/simple/tiny/tiny-1.0-py3-none-any.whl", "w") as wheel:
        wheel.writestr("tiny.py", "print('tiny works')\n")
        wheel.writestr("tiny-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: tiny\nVersion: 1.0\n")
        wheel.writestr("tiny-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr("tiny-1.0.dist-info/RECORD", "tiny.py,,\n")
    with tarfile.open(f"{www}/npm/files/tiny-1.0.0.tgz", "w:gz") as archive:
        for name, text in (
            ("package.json", '{"name": "tiny", "version": "1.0.0"}'),
            ("index.js", "module.exports = 'tiny works'"),
        ):
            entry = tarfile.TarInfo(f"package/{name}")
            entry.size = len(text)
            archive.addfile(entry, io.BytesIO(text.encode()))
    with open(f"{www}/npm/files/tiny-1.0.0.tgz", "rb") as file:
        digest = base64.b64encode(hashlib.sha512(file.read()).digest()).decode()
    dist = {"tarball": "https://good.example/npm/files/tiny-1.0.0.tgz", "integrity": f"sha512-{digest}"}
    about = {"name": "tiny", "version": "1.0.0", "dist": dist}
    with open(f"{www}/npm/tiny", "w") as file:
        json.dump({"name": "tiny", "dist-tags": {"latest": "1.0.0"}, "versions": {"1.0.0": about}}, file)


def start_servers(place):
    """Start the servers in a process of their own, which ends with this one."""
    reading, writing = os.pipe()
    pid = os.fork()
    if not pid:
        libc.prctl(PR_SET_PDEATHSIG, ctypes.c_ulong(signal.SIGKILL), 0, 0, 0)
        try:
            serve(place, lambda: os.write(writing, b"up"))
        except BaseException as error:  # It must say why before it ends.
            print(f"the servers ended: {error!r}", file=sys.stderr, flush=True)
        finally:
            os._exit(1)
    os.close(writing)
    if not os.read(reading, 2):
        sys.exit("the servers did not start")


def start_postgres(place):
    """Start a database in the background; `PLACE/postgres` says when it can be reached, or that it cannot."""
    found = sorted(glob.glob("/usr/lib/postgresql/*/bin"))
    options = {}
    if found and os.geteuid() == 0:
        with contextlib.suppress(KeyError):
            account = pwd.getpwnam("postgres")
            options = {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": []}
    if not found or (os.geteuid() == 0 and not options):
        return write(f"{place}/postgres", "missing")
    data = f"{place}/database"
    os.mkdir(data, 0o700)
    if options:
        os.chown(data, options["user"], options["group"])
    options |= {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "cwd": "/"}

    def start():
        try:
            make = ["-D", data, "-A", "trust", "-U", "tester", "--no-sync", "--no-instructions"]
            subprocess.run([f"{found[-1]}/initdb", *make], check=True, **options)
            with open(f"{data}/pg_hba.conf", "a") as file:
                file.write("host all all all trust\n")
            where = ["-D", data, "-h", "10.9.9.9", "-k", "", "-c", "fsync=off", "-c", "shared_buffers=1MB"]
            children.append(subprocess.Popen([f"{found[-1]}/postgres", *where], **options))
            while True:
                with contextlib.suppress(OSError), socket.create_connection(("10.9.9.9", 5432), 1):
                    return write(f"{place}/postgres", "up")
                time.sleep(0.05)
        except (OSError, subprocess.SubprocessError) as error:
            write(f"{place}/postgres", f"missing: {error}")

    threading.Thread(target=start, daemon=True).start()
    return None


def write(path, text):
    with open(f"{path}.new", "w") as file:
        file.write(text)
    os.rename(f"{path}.new", path)


children: list[subprocess.Popen] = []


def main(place):
    furnish(place)
    try:
        enter(place)
    except OSError as error:
        print(f"this machine lets nobody make a network of their own: {error}")
        return MISSING
    start_servers(place)
    start_postgres(place)
    try:
        asks_own_server = bool(socket.getaddrinfo(PROBE, 80))
    except OSError:
        asks_own_server = False
    write(f"{place}/facts.json", json.dumps({"ownNames": asks_own_server}))
    env = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
    proxy = {"https_proxy": "http://20.0.0.5:3128", "NO_PROXY": "direct.example"}
    codes = [subprocess.run([sys.executable, CALLS, place, "main"], check=False, env=env).returncode]
    codes.append(subprocess.run([sys.executable, CALLS, place, "proxied"], check=False, env=env | proxy).returncode)
    with open(f"{place}/seen.jsonl", "a") as file:  # From here on, servers see what calls do with the whole network.
        file.write('{"controls": true}\n')
    codes.append(subprocess.run([sys.executable, CALLS, place, "controls"], check=False, env=env).returncode)
    for child in children:
        child.send_signal(signal.SIGINT)
        child.wait()
    shutil.rmtree(f"{place}/database", ignore_errors=True)
    return max(codes)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
