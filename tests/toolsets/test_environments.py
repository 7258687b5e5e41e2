"""The environments of templates: real uv, in a real sandbox. One of them asks the real index; the others ask one of
their own, which can be made to wait, so that what happens in the middle happens in the middle."""

import asyncio
import dataclasses
import http.server
import io
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import threading
import zipfile
from types import SimpleNamespace

import pytest

from haft.config.config import load_config
from haft.contracts import StorageFailed, ToolFailed, Unconfined
from haft.files import try_lock
from haft.sandbox.abilities import Abilities
from haft.sandbox.sandbox import Sandbox
from haft.sources.agent_studio.requirements import MOST_BYTES, parse_requirements, read_requirements
from haft.toolsets.download_network import hosts_in
from haft.toolsets.environments import TemplateEnvironments, installer
from haft.toolsets.environments import making as environment_making
from haft.toolsets.environments.places import apart, base_python, key_of


def wheel(name, version="1.0", code="WORD = 'here'\n", more=(), needs=()):
    """A package that needs no building."""
    info = f"{name}-{version}.dist-info"
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as files:
        files.writestr(f"{name}.py", code)
        for path, content in more:
            files.writestr(path, content)
        needed = "".join(f"Requires-Dist: {each}\n" for each in needs)
        files.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{needed}")
        files.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        files.writestr(f"{info}/RECORD", "")
    return f"{name}-{version}-py3-none-any.whl", packed.getvalue()


SPY = """
import json, os, zipfile

def build_wheel(directory, config=None, metadata=None):
    seen = {}
    for path in PLACES:
        try:
            seen[path] = os.listdir(path) if os.path.isdir(path) else open(path).read()
        except OSError as error:
            seen[path] = type(error).__name__
    for path in PLACES:
        try:
            open(os.path.join(os.path.dirname(path), "written-by-spy"), "w").close()
        except OSError:
            pass
    said = {"seen": seen, "env": dict(os.environ)}
    name = "spy-1.0-py3-none-any.whl"
    with zipfile.ZipFile(os.path.join(directory, name), "w") as files:
        files.writestr("spy.py", "SAID = " + repr(json.dumps(said)))
        files.writestr("spy-1.0.dist-info/METADATA", "Metadata-Version: 2.1\\nName: spy\\nVersion: 1.0\\n")
        files.writestr("spy-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
        files.writestr("spy-1.0.dist-info/RECORD", "")
    return name
"""


def source_of_spy(places):
    """A package that is built by its own code, which looks around."""
    return _packed("spy", f"PLACES = {[str(place) for place in places]!r}\n{SPY}")


def _packed(package, backend):
    project = '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n'
    project += f'[project]\nname = "{package}"\nversion = "1.0"\n'
    contents = {
        "PKG-INFO": f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n",
        "pyproject.toml": project,
        "backend.py": backend,
    }
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as files:
        for name, words in contents.items():
            entry = tarfile.TarInfo(f"{package}-1.0/{name}")
            entry.size = len(words.encode())
            files.addfile(entry, io.BytesIO(words.encode()))
    return f"{package}-1.0.tar.gz", packed.getvalue()


CALLER = """
import os, urllib.request, zipfile

def build_wheel(directory, config=None, metadata=None):
    try:
        said = urllib.request.urlopen(ADDRESS, timeout=20).read()
    except OSError as error:
        said = type(getattr(error, "reason", error)).__name__
    name = "caller-1.0-py3-none-any.whl"
    with zipfile.ZipFile(os.path.join(directory, name), "w") as files:
        files.writestr("caller.py", f"SAID = {said!r}")
        files.writestr("caller-1.0.dist-info/METADATA", "Metadata-Version: 2.1\\nName: caller\\nVersion: 1.0\\n")
        files.writestr("caller-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\\nTag: py3-none-any\\n")
        files.writestr("caller-1.0.dist-info/RECORD", "")
    return name
"""


def source_of_caller(address):
    """A package that is built by its own code, which asks a server."""
    return _packed("caller", f"ADDRESS = {address!r}\n{CALLER}")


class Index:
    """A package index. Whoever asks for a file of it waits until `gate` is open; `reached` says that someone does."""

    def __init__(self):
        self.files = dict([wheel("tiny"), wheel("other")])
        self.pages = {}
        """Pages of packages whose files are elsewhere."""
        self.asked = []
        self.gate, self.reached = threading.Event(), threading.Event()
        self.gate.set()
        index = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                index.answer(self)

            do_HEAD = do_GET

            def log_message(self, *words): ...

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_port}/simple"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def answer(self, request):
        self.asked.append(request.path)
        *_rest, last = request.path.rstrip("/").split("/")
        body = self.files.get(last)
        if last in self.pages:
            body = self.pages[last].encode()
        elif body is None:
            names = [name for name in self.files if name.split("-")[0] == last]
            body = "".join(f'<a href="/files/{name}">{name}</a>' for name in names).encode() if names else None
        else:
            self.reached.set()
            self.gate.wait(60)
        try:
            request.send_response(200 if body is not None else 404)
            request.send_header("Content-Type", "text/html" if last not in self.files else "application/zip")
            request.send_header("Content-Length", str(len(body or b"")))
            request.end_headers()
            if request.command == "GET":
                request.wfile.write(body or b"")
        except OSError:
            pass  # Whoever asked is gone.

    def count(self):
        """How often a file was asked for."""
        return sum(path.startswith("/files/") for path in self.asked)


@pytest.fixture
def index():
    made = Index()
    yield made
    made.gate.set()
    made.server.shutdown()
    made.server.server_close()


@pytest.fixture
def place(tmp_path, index):
    made = SimpleNamespace(
        top=tmp_path,
        home=tmp_path / "own",
        workspace=tmp_path / "workspace",
        state=tmp_path / "state",
        template=tmp_path / "templates" / "json_reader_abc123",
        ground=tmp_path / "own/.local/share/haft/uv",
        index=index,
    )
    for folder in (made.home, made.workspace, made.template):
        folder.mkdir(parents=True)
    made.env = {"HOME": str(made.home), "PATH": os.environ["PATH"], "UV_DEFAULT_INDEX": index.url, "API_TOKEN": "s3"}
    requires(made, "tiny")
    return made


def requires(place, *lines):
    (place.template / "requirements.txt").write_text("".join(f"{line}\n" for line in lines))


def opened(place, *, mode="auto", workspace=None, **values):
    workspace = str(workspace or place.workspace)
    config = load_config(workspace, {**place.env, "HAFT_SANDBOX_MODE": mode}, trust_home=str(place.state))
    config = dataclasses.replace(config, values={**config.values, **values})
    return TemplateEnvironments(config, str(place.state), place.env, workspace)


def prepared(place, told=lambda _line: None, **more):
    return asyncio.run(opened(place, **more).prepare(str(place.template), told))


def says(environment, code):
    done = subprocess.run([environment.python, "-I", "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def left(place):
    """What lies in the template's folder, and what of makings lies where they happen."""
    ground = os.listdir(place.ground) if place.ground.exists() else []
    return sorted(os.listdir(place.template)), [name for name in ground if name.startswith("making-")]


NOTHING = ["requirements.txt"], []
WHOLE = [".requirements_hash.txt", ".venv", "requirements.txt"], []


def test_pydantic_from_the_real_index_works_also_where_its_folder_was_moved(place):
    for name in ("UV_DEFAULT_INDEX", "UV_INDEX_URL", "PIP_INDEX_URL", "HTTPS_PROXY", "https_proxy", "SSL_CERT_FILE"):
        place.env.pop(name, None)
        if name in os.environ:
            place.env[name] = os.environ[name]
    requires(place, "pydantic")
    told = []
    made = prepared(place, told.append)
    words = "import pydantic; print(pydantic.BaseModel.__name__)"
    assert says(made, words) == "BaseModel"
    assert all(line.startswith("making the environment of json_reader_abc123: ") for line in told)
    assert any("+ pydantic==" in line for line in told)

    away = place.top / "away"
    place.template.rename(away)
    moved = opened(place).current(str(away))
    assert says(moved, words) == "BaseModel" and moved.mark == made.mark
    away.rename(place.template)
    assert opened(place).current(str(place.template)) == made


def test_a_second_caller_finds_it_and_starts_nothing(place, monkeypatch):
    made = prepared(place)
    assert left(place) == WHOLE
    monkeypatch.setattr(environment_making.Making, "make", None)
    assert prepared(place) == made == opened(place).current(str(place.template))


def test_it_is_compiled_already_and_shares_no_file_with_the_cache(place):
    made = prepared(place)
    site = place.template / ".venv/lib" / f"python3.{sys.version_info[1]}" / "site-packages"
    assert list((site / "__pycache__").glob("tiny.*.pyc"))
    assert (site / "tiny.py").stat().st_nlink == 1
    before = sorted(os.walk(place.template))
    assert says(made, "import tiny; print(tiny.__file__)") == str(site / "tiny.py")
    assert sorted(os.walk(place.template)) == before


def test_changed_requirements_make_it_anew(place):
    first = prepared(place)
    requires(place, "tiny", "other")
    assert opened(place).current(str(place.template)) is None
    second = prepared(place)
    assert second.mark != first.mark and says(second, "import tiny, other; print(tiny.WORD)") == "here"
    assert left(place) == WHOLE


def test_a_stamp_that_is_not_of_this_environment_does_not_count(place):
    first = prepared(place)
    file = place.template / ".requirements_hash.txt"
    digest, word = file.read_text().split()
    for stamp in ("", "\0" * 2000, f"{digest}\n", f"{digest}\nother\n", f"{'0' * 64}\n{word}\n"):
        file.write_text(stamp)
        assert opened(place).current(str(place.template)) is None
    assert prepared(place).mark != first.mark


def test_an_environment_that_leads_to_another_interpreter_does_not_count(place):
    first = prepared(place)
    link = place.template / ".venv/bin/python"
    link.unlink()
    link.symlink_to(place.home / "python")
    assert opened(place).current(str(place.template)) is None
    assert prepared(place).mark != first.mark and os.readlink(link) == base_python()


def test_what_must_be_seen_is_the_environment_and_the_way_to_python(place):
    made = prepared(place)
    assert made.readable[0] == str(place.template / ".venv") and sys.base_prefix in made.readable
    assert os.path.dirname(os.path.realpath(base_python())) in made.readable
    assert not any(os.path.commonpath((path, str(place.home))) == str(place.home) for path in made.readable)


def test_two_callers_at_once_make_one(place):
    told = [], []

    async def both():
        several = opened(place)
        return await asyncio.gather(*(several.prepare(str(place.template), each.append) for each in told))

    first, second = asyncio.run(both())
    assert first == second and place.index.count() >= 1
    assert told[0] == told[1] != []
    assert sum("installed 1 package" in line.lower() for line in told[0]) == 1


def test_two_hosts_at_once_make_one(place):
    told = [], []

    async def both():
        return await asyncio.gather(*(opened(place).prepare(str(place.template), each.append) for each in told))

    first, second = asyncio.run(both())
    assert first == second
    assert sum("+ tiny==1.0" in line for line in (*told[0], *told[1])) == 1
    assert any("waiting for another process" in line for line in (*told[0], *told[1]))


def test_several_templates_at_once_share_the_cache(place):
    folders = [str(place.template), str(place.template.with_name("second_abc123"))]
    shutil.copytree(*folders)

    async def both():
        several = opened(place)
        return await asyncio.gather(*map(several.prepare, folders))

    first, second = asyncio.run(both())
    assert first.mark != second.mark and first.python != second.python
    assert {says(each, "import tiny; print(tiny.WORD)") for each in (first, second)} == {"here"}
    assert left(place) == WHOLE


def test_what_another_process_is_making_is_waited_for(place):
    made = prepared(place)
    stamp = (place.template / ".requirements_hash.txt").read_text()
    (place.template / ".requirements_hash.txt").unlink()
    lock = try_lock(str(place.state / "environments" / f"{key_of(str(place.template))}.lock"))
    asked = place.index.count()

    async def wait():
        told = asyncio.Event()
        waiting = asyncio.ensure_future(opened(place).prepare(str(place.template), lambda _line: told.set()))
        await told.wait()
        (place.template / ".requirements_hash.txt").write_text(stamp)
        lock.release(unlink=True)
        return await waiting

    assert asyncio.run(wait()) == made
    assert place.index.count() == asked


def in_the_middle(place, also):
    """Begin with a closed gate; `also` gets what waits, when the index was reached."""

    async def begin():
        place.index.gate.clear()
        several = opened(place)
        one = asyncio.ensure_future(several.prepare(str(place.template)))
        await asyncio.to_thread(place.index.reached.wait, 60)
        return await also(several, one)

    return asyncio.run(begin())


def test_a_cancelled_making_leaves_nothing(place, mark, left_of):
    place.env["LC_MARK"] = mark

    async def cancel(_several, one):
        one.cancel()
        await asyncio.wait((one,))
        assert one.cancelled()

    in_the_middle(place, cancel)
    assert left(place) == NOTHING and not left_of(mark)
    place.index.gate.set()
    assert says(prepared(place), "import tiny; print(tiny.WORD)") == "here"


def test_one_of_two_callers_can_leave(place):
    async def one_leaves(several, one):
        other = asyncio.ensure_future(several.prepare(str(place.template)))
        await asyncio.sleep(0)
        one.cancel()
        await asyncio.wait((one,))
        assert one.cancelled()
        place.index.gate.set()
        return await other

    assert says(in_the_middle(place, one_leaves), "import tiny; print(tiny.WORD)") == "here"


def test_the_one_who_comes_after_a_cancelled_making_makes_it(place):
    async def cancel_and_come(several, one):
        one.cancel()
        other = asyncio.ensure_future(several.prepare(str(place.template)))
        place.index.gate.set()
        return await other

    assert says(in_the_middle(place, cancel_and_come), "import tiny; print(tiny.WORD)") == "here"


def test_a_template_that_is_removed_meanwhile_stays_removed(place):
    async def remove(_several, one):
        shutil.rmtree(place.template)
        place.index.gate.set()
        await one

    with pytest.raises(StorageFailed):
        in_the_middle(place, remove)
    assert not place.template.exists() and not list((place.state / "environments").iterdir())


KILLED = """
import asyncio, json, sys
from haft.config.config import load_config
from haft.toolsets.environments import TemplateEnvironments
env, workspace, state, template = json.loads(sys.argv[1])
asyncio.run(TemplateEnvironments(load_config(workspace, env), state, env, workspace).prepare(template))
"""


def test_a_killed_making_leaves_nothing_that_counts_and_the_next_one_takes_it_away(place, eventually, mark, left_of):
    place.index.gate.clear()
    told = json.dumps([{**place.env, "LC_MARK": mark}, *map(str, (place.workspace, place.state, place.template))])
    with subprocess.Popen([sys.executable, "-c", KILLED, told], env={**place.env, "LC_MARK": mark}) as process:
        assert place.index.reached.wait(60)
        process.send_signal(signal.SIGKILL)
    assert opened(place).current(str(place.template)) is None
    assert left(place)[1]
    eventually(lambda: not left_of(mark))
    place.index.gate.set()
    assert says(prepared(place), "import tiny; print(tiny.WORD)") == "here"
    assert left(place) == WHOLE


def test_leftovers_beside_it_are_taken_away_and_those_in_use_are_not(place):
    for name in (".venv.new-1", ".venv.old-1"):
        (place.template / name / "lib").mkdir(parents=True)
    (place.template / ".venv.new-2.txt").touch()
    (place.template / ".venv").mkdir()
    used = place.ground / "making-used"
    used.mkdir(parents=True)
    (place.ground / "making-left").mkdir()
    with environment_making.making_folder(str(place.ground)) as held:
        prepared(place)
        assert os.path.isdir(held)
    assert left(place) == WHOLE


def test_a_failed_making_says_why_leaves_nothing_and_is_tried_again(place):
    requires(place, "tiny", "no-such-package-anywhere")
    with pytest.raises(ToolFailed) as caught:
        prepared(place)
    assert "json_reader_abc123" in caught.value.message and "no-such-package-anywhere" in caught.value.message
    assert "the index has no such package" in caught.value.hint
    assert left(place) == NOTHING
    place.index.files.update([wheel("no_such_package_anywhere")])
    requires(place, "tiny")
    assert says(prepared(place), "import tiny; print(tiny.WORD)") == "here"


def test_what_fails_leaves_the_one_that_was_there(place):
    prepared(place)
    before = (place.template / ".requirements_hash.txt").read_text()
    requires(place, "no-such-package-anywhere")
    with pytest.raises(ToolFailed):
        prepared(place)
    assert left(place) == WHOLE and (place.template / ".requirements_hash.txt").read_text() == before
    requires(place, "tiny")
    assert opened(place).current(str(place.template)) is not None


def test_an_index_that_does_not_answer_is_said(place):
    place.env["UV_DEFAULT_INDEX"] = "http://person:secret@127.0.0.1:9/simple"
    place.env["UV_HTTP_RETRIES"] = "0"
    with pytest.raises(ToolFailed) as caught:
        prepared(place)
    assert "does not answer" in caught.value.hint and "secret" not in caught.value.message


def test_the_clock_ends_a_making(place, monkeypatch):
    monkeypatch.setattr(environment_making, "BUILD_SECONDS", 0.5)
    place.index.gate.clear()
    with pytest.raises(ToolFailed, match=r"not done after 0\.5 s"):
        prepared(place)
    assert left(place) == NOTHING


def test_the_same_packages_are_not_asked_for_twice_in_a_short_while(place):
    prepared(place)
    asked = list(place.index.asked)
    place.template = place.template.with_name("another_abc123")
    place.template.mkdir()
    requires(place, "tiny")
    assert says(prepared(place), "import tiny; print(tiny.WORD)") == "here"
    assert place.index.asked == asked


def test_what_pip_is_told_of_indexes_holds_too(place):
    place.env["PIP_INDEX_URL"] = place.env.pop("UV_DEFAULT_INDEX")
    assert says(prepared(place), "import tiny; print(tiny.WORD)") == "here"
    assert "UV_DEFAULT_INDEX" not in installer.installer_environment({**place.env, "UV_INDEX_URL": "x"}, "")


def test_a_folder_that_is_not_ours_has_its_environment_in_the_state_home(place, monkeypatch):
    ours = environment_making.is_ours
    monkeypatch.setattr(environment_making, "is_ours", lambda path: path != str(place.template) and ours(path))
    made = prepared(place)
    assert left(place) == NOTHING
    assert made.python.startswith(apart(str(place.state), str(place.template)).folder)
    assert says(made, "import tiny; print(tiny.WORD)") == "here"
    assert opened(place).current(str(place.template)) == made == prepared(place)


def test_a_folder_is_ours_when_it_belongs_to_us_and_can_be_written(place, monkeypatch):
    assert environment_making.is_ours(str(place.template))
    assert not environment_making.is_ours(str(place.template / "nothing"))
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    assert not environment_making.is_ours(str(place.template))


def test_an_environment_that_someone_made_for_themselves_is_left_alone(place):
    (place.template / ".venv").mkdir()
    (place.template / ".venv/pyvenv.cfg").write_text("theirs")
    made = prepared(place)
    assert (place.template / ".venv/pyvenv.cfg").read_text() == "theirs"
    assert made.python.startswith(str(place.state))


def test_what_is_made_elsewhere_is_copied_into_place(place, monkeypatch):
    def another_filesystem(_source, _target):
        raise OSError(18, "Invalid cross-device link")

    monkeypatch.setattr(environment_making, "put", putting := environment_making.put)
    rename, calls = os.rename, []

    def once(source, target):
        calls.append(source)
        return another_filesystem(source, target) if len(calls) == 1 else rename(source, target)

    def put(*arguments):
        monkeypatch.setattr(os, "rename", once)
        putting(*arguments)

    monkeypatch.setattr(environment_making, "put", put)
    assert says(prepared(place), "import tiny; print(tiny.WORD)") == "here"
    assert len(calls) == 2 and left(place) == WHOLE


def test_a_package_without_wheel_is_built_only_where_that_is_allowed(place):
    place.index.files = dict([source_of_spy([])])
    requires(place, "spy")
    with pytest.raises(ToolFailed) as caught:
        prepared(place)
    assert f"haft templates build {place.template} --allow-builds" in caught.value.hint
    made = prepared(place, **{"templates.allow_builds": True})
    assert says(made, "import spy; print(spy.__name__)") == "spy"
    (ground,) = (place.ground / "built").iterdir()
    assert os.listdir(ground) == ["cache"], "nothing is written where its code could have put links"


@pytest.fixture(params=["hidden anyway", "in plain sight"])
def workspace(request, place):
    """One in a place that every sandbox hides, and one where only root can make it."""
    sight = next((path for path in ("/opt", "/srv", "/var/lib") if os.access(path, os.W_OK)), None)
    if request.param == "hidden anyway" or sight is None:
        yield place.workspace
        return
    with tempfile.TemporaryDirectory(prefix="haft-test-", dir=sight) as made:
        yield pathlib.Path(made)


def test_what_is_built_sees_no_home_no_workspace_no_state_and_no_secret(place, workspace):
    (place.home / "diary").write_text("dear")
    (workspace / "work").write_text("mine")
    (place.state / "audit").mkdir(parents=True)
    (place.state / "audit/head").write_text("chain")
    cache = place.ground / "cache"
    places = [place.home / "diary", workspace / "work", place.state / "audit/head", cache / "CACHEDIR.TAG"]
    place.index.files = dict([source_of_spy(places), wheel("tiny")])
    prepared(place)  # with the cache that all share
    assert (cache / "CACHEDIR.TAG").exists()
    requires(place, "spy")
    made = prepared(place, workspace=workspace, **{"templates.allow_builds": True})
    said = json.loads(says(made, "import spy; print(spy.SAID)"))
    assert said["seen"] == dict.fromkeys(map(str, places), "FileNotFoundError")
    assert "API_TOKEN" not in said["env"] and said["env"]["UV_DEFAULT_INDEX"] == place.index.url
    assert not [*place.top.rglob("written-by-spy"), *workspace.rglob("written-by-spy")]


def test_python_is_found_where_it_lies_in_the_workspace(place):
    checkout = os.path.dirname(sys.prefix)
    assert says(prepared(place, workspace=checkout), "import tiny; print(tiny.WORD)") == "here"
    assert not os.listdir(place.state / "caches")


def test_no_code_of_a_wheel_is_run_while_it_is_installed(place):
    touched = place.ground / "cache" / "touched"
    line = f"import os; open({str(touched)!r}, 'w').close()\n"
    place.index.files = dict([wheel("tiny", more=[("tiny.pth", line)])])
    made = prepared(place)
    assert not touched.exists()
    says(made, "")
    assert touched.exists()


def test_a_package_that_puts_a_link_in_place_of_the_environment_is_refused(place):
    target = place.top / "target/bin"
    target.mkdir(parents=True)
    (target / "python").write_text("mine")
    made = place.top / "venv"
    made.symlink_to(target.parent)
    with pytest.raises(ToolFailed, match="not an environment"):
        environment_making._lead_to("/usr/bin/python3", str(made), "bin", "python")
    assert (target / "python").read_text() == "mine"


def test_a_cache_that_calls_could_reach_is_not_used(place):
    made = prepared(place, workspace=place.home)
    assert says(made, "import tiny; print(tiny.WORD)") == "here"
    assert not place.ground.exists()


def test_without_a_sandbox_it_is_made_all_the_same(place):
    assert says(prepared(place, mode="off"), "import tiny; print(tiny.WORD)") == "here"
    assert left(place) == WHOLE


def test_where_a_sandbox_is_required_and_cannot_be_built_nothing_is_made(place, monkeypatch):
    async def nothing(_self):
        return Abilities(namespaces=False, problem="none here", io=True)

    monkeypatch.setattr(Sandbox, "_probe", nothing)
    with pytest.raises(Unconfined):
        prepared(place, mode="required")
    assert left(place) == NOTHING


def test_without_uv_it_is_said_what_to_install(place, monkeypatch):
    monkeypatch.setitem(sys.modules, "uv", None)
    place.env["PATH"] = str(place.home)
    with pytest.raises(ToolFailed) as caught:
        prepared(place)
    assert "pip install uv" in caught.value.hint and left(place) == NOTHING


def test_uv_on_the_path_does_where_none_is_installed_with_haft(place, monkeypatch):
    programs = place.home / "bin"
    programs.mkdir()
    shutil.copy(installer.find_uv(place.env), programs / "uv")
    monkeypatch.setitem(sys.modules, "uv", None)
    assert installer.find_uv({"PATH": str(programs)}) == str(programs / "uv")


def test_nothing_required_makes_an_empty_environment(place):
    requires(place, "# nothing")
    assert says(prepared(place), "print('runs')") == "runs"
    assert place.index.asked == []


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("-r other.txt", "reads another file"),
        ("-rother.txt", "reads another file"),
        ("--requirement=other.txt", "reads another file"),
        ("-c constraints.txt", "reads another file"),
        ("-e .", "installs a project of this machine"),
        ("-e.", "installs a project of this machine"),
        ("--editable=../x", "installs a project of this machine"),
        ("--no-binary :all:", "is an option"),
        ("--config-settings x", "is an option"),
        ("./local", "is not a package"),
        ("../local", "is not a package"),
        ("/srv/local", "is not a package"),
        ("~/local", "is not a package"),
        ("folder/", "is not a package"),
        ("local.whl", "is not a package"),
        ("local-1.0.tar.gz", "is not a package"),
        ("tiny @ file:///etc/passwd", "not an `https://` address"),
        ("tiny @ ./here", "not an `https://` address"),
        ("tiny @ git+ssh://git@example.org/x", "not an `https://` address"),
        ("tiny @ git+file:///srv/x", "not an `https://` address"),
        ("file:///srv/x.whl", "is not a package"),
        ("tiny @ https://example.org/x.whl", "is an address"),
        ("https://example.org/x.whl", "is an address"),
        ("git+https://example.org/x", "is an address"),
        ("tiny @ https://example.org/${API_TOKEN}", "names a variable"),
        ("tiny --no-binary tiny", "an option among its words"),
        ("tiny==1.0 --config-settings=x", "an option among its words"),
        ("tiny==1.0 \\\n  -r other.txt", "an option among its words"),
        ('tiny ; python_version > "3" -r other.txt', "an option among its words"),
        ('tiny ; python_version > "3" --hash=sha256:aa -r x', "an option among its words"),
        ("tiny --hash=sha256:aa -r x", "an option among its words"),
        ("two words", "cannot be understood"),
        ("tiny\0", "cannot be printed"),
        ("tiny\x1b[2J", "cannot be printed"),
    ],
)
def test_a_line_that_reaches_further_is_refused_with_its_number(line, why):
    with pytest.raises(ToolFailed) as caught:
        parse_requirements(f"# first\n\npydantic\n{line}\n".encode(), allow_builds=False)
    assert "line 4 of requirements.txt" in caught.value.message and why in caught.value.message
    assert caught.value.message.isprintable()


@pytest.mark.parametrize("option", ["-i", "--index-url", "--extra-index-url", "-f", "--find-links", "--no-index"])
@pytest.mark.parametrize("between", [" ", "=", "\t"])
def test_no_template_says_where_packages_are_taken_from(option, between):
    with pytest.raises(ToolFailed) as caught:
        parse_requirements(f"pydantic\n{option}{between}https://example.org/simple\n".encode(), allow_builds=True)
    assert "line 2 of requirements.txt" in caught.value.message and "names a package index" in caught.value.message


@pytest.mark.parametrize(
    ("content", "lines"),
    [
        ("pydantic\nrequests>=2.28.0\nnumpy==1.24.0\n", ("pydantic", "requests>=2.28.0", "numpy==1.24.0")),
        ("\ufeffpydantic\r\nsix\r", ("pydantic", "six")),
        ("a[b, c] ~= 1.0, != 1.1 ; python_version < '4' # why\n", ("a[b, c] ~= 1.0, != 1.1 ; python_version < '4'",)),
        ("a (>=1.0)", ("a (>=1.0)",)),
        ("a==1.0 \\\n  # no comment\n", ("a==1.0",)),
        ("--only-binary :none:\n--prefer-binary\na", ("a",)),
        ("# a \\\nb", ("b",)),
    ],
)
def test_a_plain_list_is_taken_without_its_options(content, lines):
    found = parse_requirements(content.encode(), allow_builds=False)
    assert found.lines == lines and not found.has_hashes


def test_digests_are_kept_and_then_every_package_needs_one():
    digest = "--hash=sha256:" + "0" * 64
    found = parse_requirements(f"a==1.0 \\\n    {digest} \\\n    {digest}\nb {digest}\n".encode(), allow_builds=False)
    assert found.has_hashes and len(found.lines) == 2 and found.lines[0].count(digest) == 2
    assert parse_requirements(b"--require-hashes\na", allow_builds=False).has_hashes


@pytest.mark.parametrize(
    "line", ["tiny @ https://example.org/x.whl", "git+https://example.org/x@v1", "a @ git+https://b"]
)
def test_addresses_are_taken_where_building_is_allowed(line):
    assert parse_requirements(line.encode(), allow_builds=True).lines == (line,)


@pytest.fixture
def elsewhere():
    """A host that only serves files."""
    made = Index()
    yield made
    made.server.shutdown()
    made.server.server_close()


def served_by(index, host, *files):
    """Put packages on an index that names another host for their files."""
    host.files.update(files)
    address = host.url.removesuffix("/simple")
    for name, _content in files:
        index.pages[name.split("-")[0]] = f'<a href="{address}/files/{name}">{name}</a>'


def test_an_environment_is_made_with_nothing_but_its_index_within_reach(place, elsewhere):
    place.index.files = dict([source_of_caller(elsewhere.url)])
    requires(place, "caller")
    made = prepared(place, **{"templates.allow_builds": True})
    assert says(made, "import caller; print(caller.SAID)") == "ConnectionRefusedError"
    assert elsewhere.asked == []


def test_an_index_may_serve_its_files_from_another_host(place, elsewhere):
    served_by(place.index, elsewhere, wheel("far", code="WORD = 'far'\n"))
    requires(place, "far")
    assert says(prepared(place), "import far; print(far.WORD)") == "far"
    assert elsewhere.count() >= 1


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_a_package_on_a_host_that_no_index_named_is_refused_with_the_host(place, scheme):
    place.index.files.update([wheel("near", needs=["far"])])
    place.index.pages["far"] = f'<a href="{scheme}://third.example:8080/far-1.0-py3-none-any.whl">far</a>'
    place.env["UV_HTTP_RETRIES"] = "0"
    requires(place, "near")
    with pytest.raises(ToolFailed) as caught:
        prepared(place)
    assert "the sandbox refused a connection to `third.example:8080`" in caught.value.message
    assert 'add "third.example:8080" to the list `network`' in caught.value.hint
    assert left(place) == NOTHING


def test_a_host_in_the_setting_is_reached_by_environments_too(place, elsewhere):
    served_by(place.index, elsewhere, wheel("far"))
    place.index.files.update([wheel("near", needs=["far"])])
    place.env["UV_HTTP_RETRIES"] = "0"
    requires(place, "near")
    with pytest.raises(ToolFailed):
        prepared(place)
    assert elsewhere.asked == []
    host = f"127.0.0.1:{elsewhere.server.server_port}"
    assert says(prepared(place, **{"sandbox.network": [host]}), "import far; print(far.WORD)") == "here"


def test_an_address_in_the_requirements_is_reached_only_by_its_name():
    lines = ("a @ https://one.example/a.whl", "git+https://two.example:8443/x@v1", "three>=1", "https://10.0.0.7/a.whl")
    assert list(hosts_in(lines)) == ["one.example:443", "two.example:8443"]
    assert list(hosts_in(["https://localhost/a.whl", "https://169.254.169.254/a.whl", "https://[::1]/a.whl"])) == []


def test_a_machine_that_cannot_decide_by_host_makes_environments_as_the_mode_allows(place, monkeypatch):
    async def missing(_sandbox):
        return "there are no network namespaces"

    monkeypatch.setattr(Sandbox, "no_network_by_host", missing)
    assert says(prepared(place), "import tiny; print(tiny.WORD)") == "here"
    assert says(prepared(place, mode="off"), "import tiny; print(tiny.WORD)") == "here"


def test_the_proxy_of_the_host_is_used_for_uv_but_uv_does_not_know_it(place):
    told = {"HTTPS_PROXY": "http://proxy.example:3128", "no_proxy": "x", "SSL_CERT_FILE": "/certs", "UV_INDEX": "y"}
    passed = installer.installer_environment(told, "")
    assert passed["SSL_CERT_FILE"] == "/certs" and passed["UV_INDEX"] == "y"
    assert not {"HTTPS_PROXY", "no_proxy"} & set(passed)
    assert told.items() <= installer.installer_environment(told, "", passes_proxies=True).items()


def test_a_digest_that_does_not_fit_is_refused(place):
    requires(place, "tiny==1.0 --hash=sha256:" + "0" * 64)
    with pytest.raises(ToolFailed, match=r"[Hh]ash"):
        prepared(place)


@pytest.mark.parametrize("kind", ["missing", "link", "directory", "pipe", "huge", "bytes"])
def test_requirements_that_are_no_short_text_file_are_refused(place, kind):
    file = place.template / "requirements.txt"
    file.unlink()
    if kind == "link":
        (place.home / "secret").write_text("tiny")
        file.symlink_to(place.home / "secret")
    elif kind == "directory":
        file.mkdir()
    elif kind == "pipe":
        os.mkfifo(file)
    elif kind == "huge":
        file.write_bytes(b"#" * (MOST_BYTES + 1))
    elif kind == "bytes":
        file.write_bytes(b"\xff\xfe")
    assert opened(place).current(str(place.template)) is None
    with pytest.raises(ToolFailed) as caught:
        parse_requirements(read_requirements(str(place.template)), allow_builds=True)
    assert "requirements.txt" in caught.value.message
    with pytest.raises(ToolFailed):
        prepared(place)


def test_looking_for_one_imports_nothing_heavy():
    heavy = "{'asyncio', 'pydantic', 'haft.sandbox', 'uv'}"
    code = f"import sys, haft.toolsets.environments; print({heavy} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
