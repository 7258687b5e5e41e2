"""The facts about a machine, a person and a workspace: which paths are hidden, and which are shown nevertheless."""

import os
import shutil
import subprocess
import sys

import pytest

from haft.sandbox import site as site_module
from haft.sandbox.site import home_of, survey
from haft.sandbox.toolchains import _targets_of_links, outermost, toolchains

pytestmark = [
    pytest.mark.every_user,
    pytest.mark.skipif(sys.platform != "linux", reason="sandbox need Linux"),
]


@pytest.fixture
def home(tmp_path):
    path = tmp_path / "person"
    path.mkdir()
    return path


@pytest.fixture
def workspace(tmp_path):
    path = tmp_path / "workspace"
    path.mkdir()
    return path


@pytest.fixture
def look(home, workspace, tmp_path):
    def look(at=workspace, path="/usr/bin", **env):
        return survey(str(at), str(tmp_path / "state"), {"HOME": str(home), "PATH": path, **env})

    return look


def shown(home, *entries):
    """What is shown of a home, with these directories on PATH; as paths in it."""
    for entry in entries:
        (home / entry).mkdir(parents=True, exist_ok=True)
    found = toolchains(os.pathsep.join(str(home / entry) for entry in entries), [str(home)], [str(home)])
    return sorted(os.path.relpath(path, home) for path in found)


# Toolchains.


@pytest.mark.parametrize(
    ("entry", "taken"),
    [
        (".cargo/bin", [".cargo/bin", ".rustup"]),
        (".local/bin", [".local/bin", ".local/lib"]),
        (".nvm/versions/node/v1/bin", [".nvm"]),
        (".pyenv/shims", [".pyenv"]),
        (".local/share/uv/tools/x/bin", [".local/share/uv/tools"]),
        (".local/share/mise/shims", [".local/share/mise"]),
        ("go/bin", ["go/bin"]),
        ("miniconda3/bin", ["miniconda3"]),
        ("miniconda3/envs/x/bin", ["miniconda3"]),
        ("bin", ["bin"]),
        ("projects/x/node_modules/.bin", ["projects/x/node_modules/.bin"]),
        (".config/x/bin", [".config/x/bin"]),
        (".ssh/bin", [".ssh/bin"]),
    ],
)
def test_of_a_toolchain_so_much_is_shown(entry, taken, home):
    assert shown(home, entry) == taken


def test_a_prefix_is_shown_as_a_whole_where_it_looks_like_one(home):
    (home / "opt/tool/lib").mkdir(parents=True)
    (home / "opt/tool/secrets").mkdir()
    assert shown(home, "opt/tool/bin") == ["opt/tool/bin", "opt/tool/lib"]
    (home / "venv").mkdir()
    (home / "venv/pyvenv.cfg").touch()
    assert shown(home, "venv/bin") == ["venv/bin", "venv/pyvenv.cfg"]


@pytest.mark.parametrize("name", ["lib", "lib64", "libexec", "pyvenv.cfg"])
@pytest.mark.parametrize("place", ["", ".local", ".config", ".cache", ".cargo", ".ssh", ".gnupg"])
def test_a_home_and_where_secrets_lie_are_never_a_prefix(place, name, home):
    (home / place / name).mkdir(parents=True)
    entry = os.path.join(place, "sbin")
    assert shown(home, entry) == [entry]


def test_where_links_lead_is_shown_too(home):
    for place in (".local/share/pipx/venvs/x/bin", "deep/own/bin", ".local/bin"):
        (home / place).mkdir(parents=True)
    (home / "deep/own/lib").mkdir()
    (home / "deep/own/pyvenv.cfg").touch()
    for program in (".local/share/pipx/venvs/x/bin/x", "deep/own/bin/own"):
        (home / program).touch()
    (home / ".local/bin/x").symlink_to(home / ".local/share/pipx/venvs/x/bin/x")
    (home / ".local/bin/own").symlink_to("../../deep/own/bin/own")
    (home / ".local/bin/sh").symlink_to("/bin/sh")
    (home / ".local/bin/broken").symlink_to("nowhere")
    own = ["deep/own/bin", "deep/own/lib", "deep/own/pyvenv.cfg"]
    assert shown(home, ".local/bin") == [".local/bin", ".local/lib", ".local/share/pipx", *own]


def test_a_link_to_a_single_program_shows_that_and_nothing_beside_it(home):
    (home / ".local/bin").mkdir(parents=True)
    for place in ("app/run.sh", ".aws/helper", "top.sh"):
        (home / place).parent.mkdir(exist_ok=True)
        (home / place).touch()
        (home / ".local/bin" / os.path.basename(place)).symlink_to(home / place)
    assert shown(home, ".local/bin") == [".aws/helper", ".local/bin", ".local/lib", "app/run.sh", "top.sh"]


def test_every_directory_of_homes_is_a_home(monkeypatch, tmp_path):
    monkeypatch.setattr("haft.sandbox.toolchains.HOMES", str(tmp_path))
    for place in ("nina/bin", "nina/lib", "nina/.local/bin", "nina/.local/lib", "nina/.ssh"):
        (tmp_path / place).mkdir(parents=True)
    path = f"{tmp_path}/nina/bin:{tmp_path}/nina/.local/bin"
    found = toolchains(path, [str(tmp_path)], [])
    assert sorted(os.path.relpath(one, tmp_path) for one in found) == ["nina/.local/bin", "nina/.local/lib", "nina/bin"]


@pytest.mark.parametrize("place", ["", ".local", ".config", ".cache", ".cargo", ".ssh", ".gnupg"])
def test_a_link_into_a_home_or_to_where_secrets_lie_does_not_show_it(place, home):
    (home / place).mkdir(exist_ok=True)
    (home / ".local/bin").mkdir(parents=True)
    (home / place / "secret").touch()
    (home / ".local/bin/x").symlink_to(home / place)
    assert shown(home, ".local/bin") == [".local/bin", ".local/lib"]
    assert shown(home, place) == []


def test_what_is_not_hidden_or_not_there_or_relative_is_not_shown(home, tmp_path):
    (tmp_path / "elsewhere/bin").mkdir(parents=True)
    path = os.pathsep.join([str(tmp_path / "elsewhere/bin"), str(home / "gone"), "bin", "", "/usr/bin"])
    assert toolchains(path, [str(home)], [str(home)]) == []


@pytest.mark.parametrize("place", ["person/venvs/x", "workspace/.venv", "workspace/deep/env"])
def test_an_environment_on_path_shows_the_interpreter_that_uv_installed_for_it(place, look, home, tmp_path):
    python = home / "pythons/cpython-3.12/bin/python3.12"
    for path in (python, home / "pythons/cpython-3.12/lib/python3.12/os.py", home / "pythons/other/secret"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    (tmp_path / place / "bin").mkdir(parents=True)
    (tmp_path / place / "pyvenv.cfg").touch()
    (tmp_path / place / "bin/python").symlink_to(python)
    site = look(path=f"{tmp_path / place}/bin:/usr/bin", UV_PYTHON_INSTALL_DIR=str(home / "pythons"))
    for shown in (site.show, site.view):
        found = [target for _source, target in shown if target.startswith(str(home / "pythons"))]
        assert str(home / "pythons/cpython-3.12") in found and not any("other" in each for each in found)


def test_only_the_outermost_are_kept():
    assert outermost(["/a/b/c", "/a/b", "/a/bc", "/d", "/a/b"]) == ["/d", "/a/b", "/a/bc"]


# The place as a whole.


def test_scratch_places_and_homes_are_hidden(look, home):
    found = look()
    for path in ("/tmp", "/var/tmp", "/run", "/dev/shm", "/home", "/root"):
        if os.path.isdir(path):
            assert os.path.realpath(path) in found.hidden
    modes = dict(found.hide)
    assert modes[str(home)] == 0o700
    assert modes["/tmp"] == 0o1777


def test_the_workspace_and_python_are_seen(look, workspace):
    found = look()
    targets = [target for _source, target in found.show]
    if str(workspace).startswith(found.hidden):
        assert str(workspace) in targets
    for needed in (sys.prefix, sys.base_prefix):
        if any(needed.startswith(place + "/") for place in found.hidden):
            assert any(needed == target or needed.startswith(target + "/") for target in targets)


def test_a_workspace_that_is_a_home_is_not_hidden(look, home):
    found = look(at=home)
    assert found.workspace == str(home)
    assert str(home) not in found.hidden
    assert found.caches == ()
    assert found.files == {}


def test_a_workspace_behind_a_link_is_where_the_link_leads(look, tmp_path, workspace):
    (tmp_path / "link").symlink_to(workspace)
    assert look(at=tmp_path / "link").workspace == str(workspace)


def test_a_home_behind_a_link_is_hidden_where_it_is(tmp_path, home, workspace):
    (tmp_path / "link").symlink_to(home)
    found = survey(str(workspace), str(tmp_path / "state"), {"HOME": str(tmp_path / "link"), "PATH": "/usr/bin"})
    assert str(home) in found.hidden


def test_caches_are_made_for_each_workspace(look, workspace, tmp_path, home):
    other = tmp_path / "other"
    other.mkdir()
    first, second = look(), look(at=other)
    assert [target for _source, target in first.caches] == [
        str(home / place) for place in (".cache", ".npm", ".cargo/registry", "go/pkg")
    ]
    assert not {source for source, _target in first.caches} & {source for source, _target in second.caches}
    for source, _target in (*first.caches, *second.caches):
        assert os.stat(source).st_mode & 0o777 == 0o700
        assert source.startswith(str(tmp_path / "state"))
    assert not (home / ".cache").exists()


def test_a_cache_that_python_runs_from_is_left_alone(look, home, monkeypatch):
    (home / ".cache/venv").mkdir(parents=True)
    monkeypatch.setattr(sys, "prefix", str(home / ".cache/venv"))
    assert str(home / ".cache") not in [target for _source, target in look().caches]


def test_of_gits_configuration_only_who_commits_is_known(look, home):
    (home / ".gitconfig").write_text(
        "[user]\n\tname = Ann\n\temail = ann@example.org\n\tsigningkey = secret\n[credential]\n\thelper = store\n"
        '[url "x"]\n\tname = not this\n[core]\n\thooksPath = /evil\n[init] defaultBranch = main\n[User]\n\tName = Bea\n'
    )
    (words,) = look().files.values()
    assert "name = Bea" in words and "ann@example.org" in words and "main" in words
    for absent in ("secret", "store", "evil", "not this"):
        assert absent not in words


def test_who_commits_may_stand_in_the_other_place(look, home, tmp_path):
    (home / ".config/git").mkdir(parents=True)
    (home / ".config/git/config").write_text("[user]\n\tname = Ann\n")
    assert "Ann" in next(iter(look().files.values()))
    (tmp_path / "git").mkdir()
    (tmp_path / "git/config").write_text("[user]\n\tname = Bea\n")
    assert "Bea" in next(iter(look(XDG_CONFIG_HOME=str(tmp_path)).files.values()))


def test_without_a_configuration_there_is_no_file(look):
    assert look().files == {}


def test_a_home_is_found_without_a_variable(monkeypatch):
    assert os.path.isabs(home_of({}))
    assert home_of({"HOME": "relative"}) == home_of({})
    assert home_of({"HOME": "/x/../y/"}) == "/y"

    def unknown(_uid):
        raise KeyError

    monkeypatch.setattr(site_module.pwd, "getpwuid", unknown)
    assert home_of({}) == "/"


def test_a_home_that_is_the_root_hides_nothing_more(workspace, tmp_path):
    found = survey(str(workspace), str(tmp_path / "state"), {"HOME": "/", "PATH": "/usr/bin"})
    assert "/" not in found.hidden


def test_what_is_said_to_the_helper_is_plain(look, tmp_path):
    words = look().to_json(scratch_bytes=5, required=True, layers=None)
    assert (words["scratch_bytes"], words["required"], words["layers"]) == (5, True, None)
    assert words["private"] == [str(tmp_path / "state")]


def test_layers_that_lie_outside_of_the_state_home_are_private_too(look, tmp_path):
    inside, beside = tmp_path / "state" / "live", tmp_path / ".haft-area" / "live"
    assert look().to_json(scratch_bytes=5, required=True, layers=str(inside))["private"] == [str(tmp_path / "state")]
    words = look().to_json(scratch_bytes=5, required=True, layers=str(beside))
    assert words["private"] == [str(tmp_path / "state"), str(beside.parent)]


# Worktrees.


@pytest.fixture
def worktree(tmp_path, home):
    """A real repository in the home, and a worktree of it elsewhere."""
    main, tree = home / "main", tmp_path / "tree"
    env = {"PATH": os.environ["PATH"], "HOME": str(home), "GIT_CONFIG_GLOBAL": "/dev/null"}

    def git(*words, at):
        subprocess.run(["git", "-c", "user.name=n", "-c", "user.email=e", *words], cwd=at, env=env, check=True)

    main.mkdir()
    git("init", "-q", at=main)
    git("commit", "-q", "--allow-empty", "-m", "first", at=main)
    git("worktree", "add", "-q", str(tree), at=main)
    return main, tree


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not on this machine")
def test_a_worktree_shows_the_repository_that_it_belongs_to(worktree, look):
    main, tree = worktree
    found = look(tree)
    assert found.repository == str(main / ".git")
    assert (str(main / ".git"), str(main / ".git")) in found.show


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not on this machine")
def test_a_workspace_alone_cannot_name_a_repository(worktree, look, workspace, home):
    _main, tree = worktree
    (workspace / ".git").write_text((tree / ".git").read_text())
    assert look(workspace).repository is None
    (workspace / ".git").write_text(f"gitdir: {home}\n")
    assert look(workspace).repository is None


def test_sources_that_an_environment_on_path_names_are_shown_and_no_more_than_they(tmp_path):
    home = tmp_path / "home"
    prefix, sources = home / "project/.venv", home / "other/src"
    library = prefix / "lib/python3.11/site-packages"
    for place in (library, prefix / "bin", sources, home / "secret"):
        place.mkdir(parents=True)
    (prefix / "pyvenv.cfg").touch()
    (library / "named.pth").write_text(f"{sources}\n{home}\n{tmp_path}\n/\nimport os\nrelative\n{home}/gone\n")
    found = toolchains(str(prefix / "bin"), [str(home)], [str(home)])
    assert str(sources) in found and not {str(home), str(tmp_path), "/"} & set(found)
    (prefix / "pyvenv.cfg").unlink()
    assert str(sources) not in toolchains(str(prefix / "bin"), [str(home)], [str(home)])


def test_links_of_programs_lead_where_the_system_says(tmp_path):
    programs, far = tmp_path / "programs", tmp_path / "far"
    for place in (programs, far / "deep"):
        place.mkdir(parents=True)
    (far / "deep" / "tool").write_text("")
    (tmp_path / "by").symlink_to(far)
    links = {
        "absolute": far / "deep" / "tool",
        "relative": "../far/deep/tool",
        "by a directory": "../by/deep/tool",
        "back and forth": "../far/deep/../../by/deep/tool",
        "in steps": "absolute",
        "to a directory": "../far/deep/",
        "to dots": "../far/deep/..",
        "beside": "plain",
        "in a circle": "in a circle",
        "nowhere": "../gone/tool",
    }
    (programs / "plain").write_text("")
    for name, target in links.items():
        (programs / name).symlink_to(target)
    found = set(_targets_of_links(str(programs)))
    real = (os.path.realpath(programs / name) for name in links if name != "in a circle")
    assert found == {path for path in real if os.path.dirname(path) != str(programs)}
