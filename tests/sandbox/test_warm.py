"""A call that is answered from a fork behaves like one of a fresh process: for each odd template, the same calls are
made of both, and compared."""

import asyncio
import shutil
import sys
import tempfile
from pathlib import Path

import pytest

import sampling

sys.path.insert(0, str(Path(__file__).parent))
from loaded import Loaded, OwnEnvironment, seen

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="nothing is kept loaded elsewhere")

ODD = {
    # What the template is given.
    "arguments": {"run": "return [len(sys.argv), os.path.basename(sys.argv[0]), *sys.argv[1:]]"},
    "arguments_by_name": {"top": "from sys import argv", "run": "return argv[1:]"},
    "arguments_taken_early": {"top": "from sys import argv\nLENGTH = argv[3:]", "run": "return LENGTH"},
    "arguments_of_a_library": {"top": "import keeps_arguments", "run": "return keeps_arguments.argv[1:]"},
    "directory": {"run": "return os.getcwd()"},
    "stdin_is_empty": {"run": "return [sys.stdin.read(), os.read(0, 10), sys.stdin.isatty()]"},
    "environment": {"run": "return sorted(os.environ.items())"},
    "main_module": {
        "run": """
        import __main__
        names = "__name__", "__file__", "__package__", "__spec__", "__cached__", "__doc__"
        same = __main__.ToolParameters is ToolParameters and __main__.__dict__ is globals()
        return [same, type(__loader__).__name__, *(vars(__main__)[name] for name in names)]
        """
    },
    "pickled": {"run": "import pickle\nreturn type(pickle.loads(pickle.dumps(args))) is ToolParameters"},
    "path_of_modules": {"run": "return [sys.path[0], len(sys.path)]"},
    "descriptors": {"run": "return sorted(os.listdir('/proc/self/fd'), key=int)"},
    "session_and_parent": {"run": "return [os.getsid(0) == os.getpid(), os.getppid(), os.getpgrp() == os.getpid()]"},
    "signals": {
        "run": """
        import signal
        mask = sorted(signal.pthread_sigmask(signal.SIG_BLOCK, ()))
        return [mask, *(repr(signal.getsignal(one)) for one in (2, 13, 15, 17, 1) if one != 2)]
        """
    },
    "limits": {
        "run": "import resource\nreturn [resource.getrlimit(one) for one in range(16)], os.umask(0o22), os.nice(0)"
    },
    "status_of_process": {
        "run": """
        wanted = "CapEff", "CapBnd", "NoNewPrivs", "Seccomp:", "SigCgt", "SigBlk", "Threads"
        return [line for line in open("/proc/self/status") if line.startswith(wanted)]
        """
    },
    # Its modules and data.
    "siblings": {
        "top": "import beside\nSTATE = beside.STATE",
        "run": "import later\nSTATE.append(1)\nreturn [STATE, later.who(), beside.__file__]",
        "beside__py": "STATE = []\n",
        "later__py": "def who(): return __name__\n",
    },
    "sibling_that_prints": {"top": "import beside", "run": "return 1", "beside__py": "print('loaded')\n"},
    "sibling_with_the_name_of_a_library": {
        "top": "import colorsys",
        "run": "return colorsys.WHO",
        "colorsys__py": "WHO = 1",
    },
    "package_below_a_folder_of_its_own": {
        "top": "sys.path.append(os.path.join(os.path.dirname(__file__), '.'))\nimport beside",
        "run": "return beside.COUNT",
        "beside__py": "print('loaded')\nCOUNT = 1\n",
    },
    "data_file": {
        "run": "return json.load(open(os.path.join(os.path.dirname(__file__), 'data.json')))",
        "data__json": '{"a": [1]}',
    },
    "own_folder_is_read_only": {"run": "open(os.path.join(os.path.dirname(__file__), 'tool.py'), 'a')"},
    "chdir_when_loaded": {
        "top": "os.chdir(os.path.dirname(__file__))",
        "run": "return [os.getcwd(), open('data.txt').read()]",
        "data__txt": "d",
    },
    "chdir_then_absolute_writes": {
        "top": "HERE = os.getcwd()\nos.chdir('/')",
        "run": "open(HERE + '/made', 'w').write(args.x)\nreturn os.getcwd()",
    },
    "chdir_into_what_a_call_makes": {
        "top": "os.makedirs('deep', exist_ok=True)\nos.chdir('deep')",
        "run": "open('made', 'a').write(args.x)\nreturn [os.getcwd(), sorted(os.listdir())]",
    },
    # What it says.
    "prints_before_the_key": {"run": "print('debug')\nprint('more', file=sys.stderr)\nreturn {'a': [1, 2]}"},
    "says_the_key_twice": {"run": "print('tool_output')\nreturn 'tool_output'"},
    "no_key": {"run": "print('debug')\nreturn {'a': 1}", "key": ""},
    "json_result": {"run": "return json.dumps({'a': [1, None], 'b': 'ü'})"},
    "nothing": {"run": "return ''"},
    "flood": {"run": "return 'y' * 2_000_000"},
    "many_lines": {"run": "for n in range(3000): print(n, file=sys.stderr if n % 2 else sys.stdout)\nreturn 'end'"},
    "bytes_that_are_no_text": {
        "run": "sys.stdout.buffer.write(b'tool_output \\xff\\xfe')\nsys.stdout.flush()\nos._exit(0)"
    },
    "another_stdout": {
        "run": "print('first')\nsys.stdout = open('log', 'w')\nprint('second')\nsys.__stdout__.write('tool_output third')"  # noqa: E501
    },
    "closed_stdout": {"run": "print('tool_output 1')\nsys.stdout.close()\nsys.exit(0)"},
    "no_stdout": {"run": "print('tool_output 1', flush=True)\nsys.stdout = None\nsys.exit(0)"},
    "coding": {"top": "# nothing\nWORD = 'ä€𝄞'", "run": "return WORD + ascii(sys.stdout.encoding)"},
    # How it ends.
    "raises": {"run": "raise ValueError('it broke\\nover two lines')"},
    "raises_with_a_cause": {"run": "try: 1 / 0\nexcept Exception as error: raise KeyError('x') from error"},
    "raises_when_defined": {"top": "UNKNOWN = not_there", "run": "return 1"},
    "raises_a_group": {"run": "raise ExceptionGroup('some', [ValueError(1), TypeError(2)])"},
    "raises_without_end": {"run": "def deep(): deep()\ntry: deep()\nexcept RecursionError as error: return error"},
    "library_is_missing": {"top": "import not_installed_at_all", "run": "return 1"},
    "library_raises": {"top": "import raises", "run": "return 1"},
    "exit_0": {"run": "print('tool_output early')\nsys.exit(0)"},
    "exit_3": {"run": "sys.exit(3)"},
    "exit_none": {"run": "sys.exit()"},
    "exit_true": {"run": "sys.exit(True)"},
    "exit_words": {"run": "sys.exit('no good')"},
    "exit_negative": {"run": "sys.exit(-1)"},
    "exit_large": {"run": "sys.exit(256 + 7)"},
    "exit_huge": {"run": "sys.exit(2 ** 70)"},
    "exit_tuple": {"run": "sys.exit((1, 2))"},
    "exit_when_defined": {"top": "sys.exit(4)", "run": "return 1"},
    "exit_at_once": {"run": "print('tool_output lost')\nos._exit(5)"},
    "aborts": {"run": "os.abort()"},
    "kills_itself": {"run": "os.kill(os.getpid(), 9)"},
    "terminates_itself": {"run": "os.kill(os.getpid(), 15)"},
    "interrupts_itself": {"run": "raise KeyboardInterrupt"},
    "own_excepthook": {"run": "sys.excepthook = lambda *each: print('hook', each[0].__name__)\nraise ValueError(1)"},
    "bad_parameters": {"user": "pass", "run": "UserParameters(1)"},
    # What happens at the end.
    "atexit": {
        "run": "import atexit\natexit.register(lambda: open('bye', 'w').write(args.x))\natexit.register(print, 'bye')\nreturn 1"  # noqa: E501
    },
    "atexit_that_raises": {"run": "import atexit\natexit.register(lambda: 1 / 0)\nreturn 1"},
    "threads_are_joined": {
        "run": """
        import threading, time
        def late():
            time.sleep(0.05)
            open("late", "w").write(args.x)
            print("late")
        threading.Thread(target=late).start()
        return threading.active_count()
        """
    },
    "pools": {
        "run": """
        from concurrent.futures import ThreadPoolExecutor
        pool = ThreadPoolExecutor(2)
        return [one.result() for one in [pool.submit(pow, n, 2) for n in range(5)]]
        """
    },
    "open_file_of_the_module": {"top": "LOG = open('log', 'w')", "run": "LOG.write(args.x)\nreturn 'ok'"},
    "open_file_of_a_library": {
        "top": "import keeps_things",
        "run": "keeps_things.kept = open('log', 'w')\nkeeps_things.kept.write(args.x)\nreturn 'ok'",
    },
    "destructor": {
        "run": """
        global KEPT
        class Kept:
            def __del__(self):
                print("gone")
        KEPT = Kept()
        return 1
        """
    },
    "logging_to_a_file": {
        "top": "import logging",
        "run": "logging.basicConfig(filename='log', format='%(message)s')\nlogging.warning(args.x)\nreturn 1",
    },
    # What one call could leave to the next.
    "state_of_the_module": {"top": "COUNT = []", "run": "COUNT.append(1)\nreturn len(COUNT)"},
    "state_of_a_library": {
        "top": "import keeps_things",
        "run": "keeps_things.some.append(1)\nreturn [keeps_things.some, keeps_things.count()]",
    },
    "state_of_the_environment": {
        "run": "os.environ['MADE'] = os.environ.get('MADE', '') + 'x'\nreturn os.environ['MADE']"
    },
    "scratch_files": {
        "run": """
        found = [sorted(os.listdir(place)) for place in ("/tmp", "/var/tmp", "/dev/shm")]
        os.makedirs("/tmp/a/b", exist_ok=True)
        for place in ("/tmp/one", "/tmp/a/b/two", "/dev/shm/three", "/var/tmp/four"):
            open(place, "w").write("x")
        os.symlink("/tmp/a", "/tmp/link")
        return found
        """
    },
    "times_of_scratch_places": {
        "run": "found = os.stat('/tmp').st_mtime == 1\nos.utime('/tmp', (1, 1))\nos.chmod('/tmp', 0o1777)\nreturn found"
    },
    "scratch_file_of_a_library": {
        "top": "import leaves_a_file",
        "run": "found = open(leaves_a_file.PATH).read()\nopen(leaves_a_file.PATH, 'a').write('x')\nreturn found",
    },
    "segments": {
        "run": """
        import ctypes
        libc = ctypes.CDLL(None)
        found = libc.shmget(4711, 4096, 0) >= 0
        return [found, libc.shmget(4711, 4096, 0o1600) >= 0]
        """
    },
    "message_queues": {
        "run": """
        import ctypes
        libc = ctypes.CDLL(None)
        found = libc.mq_open(b"/left", os.O_RDWR) >= 0
        return [found, libc.mq_open(b"/left", os.O_RDWR | os.O_CREAT, 0o600, None) >= 0]
        """
    },
    "ports": {
        "run": """
        import socket
        server = socket.socket()
        try:
            server.bind(("127.0.0.1", 4711))
        except OSError as error:
            return error.errno
        try:
            server.listen()
            client = socket.create_connection(server.getsockname())
            one, _ = server.accept()
            one.close(), client.close()
        finally:
            server.close()
        return "ok"
        """
    },
    # Processes.
    "child": {
        "run": "import subprocess\nreturn subprocess.run(['echo', args.x], capture_output=True, text=True).stdout"
    },
    "child_left_behind": {
        "run": "import subprocess\nsubprocess.Popen(['sleep', '1000'], start_new_session=True)\nreturn 1"
    },
    "forks": {
        "run": """
        sys.stdout.flush()
        if os.fork() == 0:
            print("child")
            sys.exit(3)
        return os.waitstatus_to_exitcode(os.wait()[1])
        """
    },
    "multiprocessing": {
        "run": "import multiprocessing\nwith multiprocessing.get_context('fork').Pool(2) as pool: return pool.map(abs, [-1, 2])"  # noqa: E501
    },
    "executes": {"run": "os.execv('/bin/sh', ['sh', '-c', 'echo tool_output; ls /proc/self/fd'])"},
    "runs_itself": {
        "run": """
        import subprocess
        if args.x == "inner":
            return "inner"
        words = [sys.executable, __file__, "--user-params", "{}", "--tool-params", '{"x": "inner"}']
        return subprocess.run(words, capture_output=True, text=True).stdout
        """
    },
    # What is written.
    "writes": {
        "run": "os.makedirs('a/b', exist_ok=True)\nopen('a/b/made', 'a').write(args.x)\nreturn open('a/b/made').read()"
    },
    "removes_and_renames": {
        "run": """
        for name in ("one", "two"):
            open(name, "w").write(args.x)
        os.rename("one", "three")
        os.remove("two")
        return sorted(os.listdir())
        """
    },
    "writes_outside": {"run": "return [os.access(one, os.W_OK) for one in ('/', '/usr', '/etc', __file__)]"},
    "protected": {"run": "os.makedirs('.git/hooks', exist_ok=True)\nopen('.git/hooks/pre-commit', 'w').write('x')"},
    "landlock": {"run": "open('/proc/self/comm', 'w').write('x')"},
    "network": {"run": "import socket\nsocket.create_connection(('192.0.2.1', 80), 1)"},
    "ended_by_all": {"run": "import signal\ntry: os.kill(-1, 9)\nexcept OSError: pass\nreturn 'there'"},
}
NEVER_LOADED = {"scratch_file_of_a_library"}
"""Calls have their thread's `/tmp`, and files that a library left in the sandbox's own `/tmp` are not there."""
LEAVE_SOMETHING = {"child_left_behind", "segments", "ports"}
"""After these the loaded program ends with everything in its sandbox, and the next call is started anew."""

LIBRARIES = {
    "keeps_arguments": "from sys import argv\n",
    "keeps_things": "some = []\nkept = None\nimport functools\n@functools.cache\ndef made(): return []\n"
    "def count():\n    made().append(1)\n    return len(made())\n",
    "raises": "raise ValueError('when imported')\n",
    "leaves_a_file": "import os\nPATH = '/tmp/left-by-import'\nwith open(PATH, 'w') as file: file.write('as it was')\n",
}


class Both:
    """Two services with the same templates, of which one keeps nothing loaded."""

    def __init__(self, base: Path, patch) -> None:
        environment = OwnEnvironment(base / "environment")
        for name, source in LIBRARIES.items():
            environment.library(name, source)
        patch.setattr("haft.toolsets.templates._OnUse._real", lambda _self: environment)
        self.cold = Loaded(base / "cold", environment, **{"templates.cold": list(ODD)})
        self.warm = Loaded(base / "warm", environment)
        for each in (self.cold, self.warm):
            for name, words in ODD.items():
                each.write(name, **words)
        self._runner = asyncio.Runner()
        self._runner.run(self._enter())

    async def _enter(self) -> None:
        for each in (self.cold, self.warm):
            await each.__aenter__()

    def run(self, work):
        return self._runner.run(work)

    def close(self) -> None:
        for each in (self.cold, self.warm):
            self._runner.run(each.__aexit__(None, None, None))
        self._runner.close()


@pytest.fixture(scope="module")
def both():
    with pytest.MonkeyPatch.context() as patch:
        base = Path(tempfile.mkdtemp(dir="/var/tmp"))  # Not in /tmp: there no thread keeps one.
        found = Both(base, patch)
        try:
            yield found
        finally:
            found.close()
            shutil.rmtree(base, ignore_errors=True)


@pytest.mark.parametrize("name", sampling.some([*ODD], 60, "odd templates"))
def test_a_fork_answers_as_a_fresh_process_does(both, name):
    async def compare():
        for number, x in enumerate(("first", "second", "third")):
            wanted = seen(await both.cold.call(name, x), both.cold)
            found = seen(await both.warm.call(name, x), both.warm)
            assert found == wanted, f"call {number}"
            if number == 0:
                await both.warm.settled(name)
        taken = both.warm.warm_pool.taken[-3:]
        assert taken[:2] == [False, name not in NEVER_LOADED], both.warm.warm_pool.unfit
        assert taken[2] == (name not in NEVER_LOADED and name not in LEAVE_SOMETHING)

    both.run(compare())
