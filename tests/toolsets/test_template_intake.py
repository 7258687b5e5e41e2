"""What a clone brings, or a call leaves, beside a template: none of it is run unless someone looked at it."""

import asyncio
import importlib.util
import os
import py_compile
import sys
from pathlib import Path

import pytest

from haft.config.config import load_config
from haft.contracts import MARK, BadConfig
from haft.service import ToolService
from haft.sources.agent_studio.discover import TemplateDirectory, instances
from haft.sources.agent_studio.tool import spec_of
from haft.toolsets.environments.places import MADE_BY_US, apart, base_python, digest_of, inside

_LOADED = Path(__file__).parents[1] / "sandbox/loaded.py"
_spec = importlib.util.spec_from_file_location("loaded_templates", _LOADED)
loaded = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(loaded)


def stamped(folder: Path, word: str, digest: str) -> Path:
    """An environment as its maker would have stamped it."""
    library = folder / ".venv/lib/python3.11/site-packages"
    library.mkdir(parents=True)
    (folder / ".venv/bin").mkdir()
    (folder / ".venv/bin/python").symlink_to(base_python())
    (folder / ".venv/pyvenv.cfg").write_text("home = /usr/bin\n")
    (folder / ".venv" / MADE_BY_US).write_text(word)
    (folder / ".requirements_hash.txt").write_text(f"{digest}\n{word}\n")
    return library


def test_an_environment_that_a_clone_brings_does_not_count_whatever_its_stamp_says(tmp_path):
    digest, word, home = digest_of(b"pydantic\n"), "0123456789abcdef", str(tmp_path / "home")
    stamped(tmp_path / "template", word, digest)
    place = inside(home, str(tmp_path / "template"))
    assert place.found(digest, base_python()) is None and place.has_other()
    place.note(word, is_whole=True)
    assert place.found(digest, base_python()) is not None and not place.has_other()
    assert apart(home, str(tmp_path / "template")).found(digest, base_python()) is None


@pytest.mark.parametrize("word", ["../../../../etc/passwd", "", "0123456789abcde", "0123456789ABCDEF"])
def test_the_word_of_a_stranger_names_no_file(tmp_path, word):
    digest = digest_of(b"pydantic\n")
    stamped(tmp_path / "template", word, digest)
    place = inside(str(tmp_path / "home"), str(tmp_path / "template"))
    assert place.found(digest, base_python()) is None and place.has_other()


def test_an_environment_that_something_was_put_into_is_made_anew(tmp_path):
    digest, word = digest_of(b"pydantic\n"), "0123456789abcdef"
    library = stamped(tmp_path / "template", word, digest)
    place = inside(str(tmp_path / "home"), str(tmp_path / "template"))
    place.note(word, is_whole=True)
    (library / "evil.pth").write_text("import os")
    assert place.found(digest, base_python()) is None and not place.has_other()


@pytest.fixture
def served(tmp_path, monkeypatch):
    environment = loaded.OwnEnvironment(tmp_path / "environment")
    monkeypatch.setattr("haft.toolsets.templates._OnUse._real", lambda _self: environment)
    return loaded.Loaded(tmp_path, environment)


def test_a_compiled_module_beside_a_template_is_not_run(served):
    async def play():
        folder = served.write("reader", "import util\nreturn util.SAID", util__py="SAID = 'the source'\n")
        other = folder / "other.py"
        other.write_text("SAID = 'what nobody looked at'\n")
        kept = folder / "__pycache__" / f"util.{sys.implementation.cache_tag}.pyc"
        unchecked = py_compile.PycInvalidationMode.UNCHECKED_HASH
        py_compile.compile(str(other), str(kept), invalidation_mode=unchecked)
        other.unlink()
        async with served:
            first = await served.warmed("reader")
            return first.output, (await served.warm_call("reader")).output

    assert asyncio.run(play()) == ("the source", "the source")


def test_a_link_to_a_directory_is_no_part_of_a_template(served):
    folder = served.write("linked", "return 1")
    (folder.parent / "elsewhere").mkdir()
    (folder / "pydantic").symlink_to("../elsewhere")
    (found,) = instances([TemplateDirectory(str(folder), "user")], [])
    assert "link to a directory" in found.problem


def test_a_module_that_is_swapped_on_the_way_is_not_run(served):
    async def play():
        folder = served.write("swapped", "import util\nreturn util.SAID", util__py="SAID = 'before'\n")

        async def swap(_told):
            (folder / "util.py").write_text("SAID = 'after!'\n")

        async with served:
            tool = served.service.catalogue.get("swapped")
            served.environment.current = lambda _folder, real=served.environment.current: None if not done else real("")
            done = []

            async def prepare(folder, told=None, *, may_build):
                await swap(told)
                done.append(True)

            served.environment.prepare = prepare
            assert tool.spec.prepares
            return await served.call("swapped")

    outcome = asyncio.run(play())
    assert outcome.status == "error" and "has changed since the call started" in outcome.error.message


def test_other_user_parameters_are_another_definition(tmp_path):
    (found,) = instances([TemplateDirectory(str(loaded.written(tmp_path / "x", "return 1")), "user")], [])
    known = {"description": "", "inputSchema": {}, "digest": "d", "userParameters": [], "isStrict": False}
    digests = {spec_of(known, one).digest for one in (found, _with(found, "one"), _with(found, "two"))}
    assert len(digests) == 3 and not any("one" in digest for digest in digests)


def _with(instance, key):
    from dataclasses import replace

    return replace(instance, user={"key": key})


def test_a_mistake_in_one_tool_does_not_print_the_parameters_of_others(tmp_path, monkeypatch):
    file = tmp_path / "haft/haft.toml"
    file.parent.mkdir()
    one = '[[templates.instances]]\nname = "a"\ntemplate = "x"\n{}\n'
    env = {"XDG_CONFIG_HOME": str(tmp_path)}
    for wrong in ('user_parms = {key = "hush-hush"}', "user_params = {day = 2026-01-01}", "user_params = 1"):
        file.write_text(one.format('user_params = {key = "hush-hush"}') + one.format(wrong))
        with pytest.raises(BadConfig) as caught:
            load_config(None, env)
        assert "hush" not in caught.value.message and "templates.instances" in caught.value.message


def test_the_environment_of_a_template_is_closed_to_calls_by_every_way_to_it(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    workspace = tmp_path / "workspace"
    loaded.written(workspace / "real/reader", "return 1")
    loaded.written(workspace / "drafts/other", "return 1")
    (workspace / "templates").symlink_to("real")
    settings = {"templates.paths": [str(workspace / "templates")]}

    async def play():
        service = ToolService.open(workspace, home=str(tmp_path / "home"), settings=settings)
        async with service:
            await service.load(str(workspace / "drafts/other"))
            return service.discovery.closed_to_calls()

    closed = asyncio.run(play())
    assert {"templates/reader/.venv", "real/reader/.venv", "drafts/other/.venv"} <= set(closed)
    assert all(not os.path.isabs(path) for path in closed)


def test_what_a_template_says_of_its_user_parameters_is_cleaned_line_by_line(served):
    async def play():
        served.write(
            "telling",
            "sys.stderr.write('the key is ' + config.key[:5]); sys.stderr.flush(); import time; time.sleep(0.05)\n"
            "sys.stderr.write(config.key[5:] + '\\n[input_value=123456, input_type=int]\\n'); raise SystemExit(1)",
            user="key: str",
        )
        served._settings["templates.instances"] = [
            {"name": "telling", "template": str(served.folder("telling")), "user_params": {"key": "sk-123456789"}}
        ]
        async with served:
            return await served.call("telling")

    outcome = asyncio.run(play())
    assert outcome.stderr == f"the key is {MARK}\n[input_value=…, input_type=int]\n"
    assert "sk-1" not in outcome.error.message and "123456" not in outcome.error.message


def test_a_failed_template_hands_no_key_to_whoever_called(served, tmp_path):
    key, code = "sk-1234567890-abcdef", "a-declared-secret-code"
    served.environment.show_real_libraries()

    async def play():
        served.write(
            "telling",
            "print(config.api_key[:9], end='', flush=True); print(config.api_key[9:], flush=True)\n"
            "print(config.code.get_secret_value(), config.station, flush=True); sys.exit(3)",
            user="api_key: str\n    code: SecretStr\n    station: str",
            top="from pydantic import SecretStr",
        )
        user = {"api_key": key, "code": code, "station": "Amsterdam"}
        served._settings["templates.instances"] = [
            {"name": "telling", "template": str(served.folder("telling")), "user_params": user}
        ]
        async with served:
            return await served.call("telling")

    outcome = asyncio.run(play())
    assert outcome.exit_code == 3 and outcome.error.code == "tool-failed"
    assert outcome.output == f"{MARK}\n{MARK} Amsterdam", "neither by its name nor by its type is it shown"
    held = b"".join(path.read_bytes() for path in Path(served.home).rglob("*") if path.is_file())
    assert key.encode() not in held and code.encode() not in held


def test_what_was_granted_to_a_call_is_open_to_nobody_between_calls(served, tmp_path):
    granted = tmp_path / "granted"
    granted.mkdir()

    async def play():
        served.write("granted", f"open({str(granted / 'made')!r}, 'a').write('x'); return 1")
        async with served:
            for _ in range(2):
                outcome = await served.call("granted", grants={"write": [str(granted)]})
                assert outcome.status == "done", outcome
            return served.warm_pool.taken, served.warm_pool._loading, served.warm_pool.count

    assert asyncio.run(play()) == ([], {}, 0)
    assert (granted / "made").read_text() == "xx"
