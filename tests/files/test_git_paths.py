"""The files that git's configuration names are found, in whichever file it says so; compared with real git."""

import os
import random
import subprocess

import pytest

from haft.files.git_paths import _read, git_paths_of, shared_git_settings

COMMANDS = {
    "filter.f.clean": "sh ./scripts/x.sh %f",
    "filter.f.smudge": "scripts/x.sh",
    "filter.f.process": "python3 scripts/x.sh --serve",
    "core.sshCommand": "scripts/x.sh -v",
    "core.fsmonitor": "scripts/x.sh",
    "core.editor": "env A=1 'scripts/x.sh' -w",
    "core.pager": "less | scripts/x.sh",
    "core.askPass": "./scripts/x.sh",
    "core.gitProxy": '"scripts/x.sh" for example.org',
    "core.alternateRefsCommand": "./scripts/x.sh",
    "diff.external": "scripts/x.sh",
    "diff.d.command": "$(git rev-parse --show-toplevel)/scripts/x.sh",
    "diff.d.textconv": "sh -c './scripts/x.sh $1' -",
    "merge.m.driver": "scripts/x.sh %O %A %B",
    "mergetool.t.cmd": "scripts/x.sh $BASE",
    "mergetool.t.path": "scripts/x.sh",
    "difftool.t.cmd": "${PWD}/scripts/x.sh",
    "gpg.program": "scripts/x.sh",
    "gpg.ssh.program": "./scripts/../scripts/x.sh",
    "gpg.ssh.defaultKeyCommand": "scripts/x.sh",
    "credential.helper": "!scripts/x.sh",
    "credential.https://example.org.helper": "!f() { ./scripts/x.sh; }; f",
    "alias.do": "!scripts/x.sh",
    "alias.other": "-c core.pager=scripts/x.sh log",
    "sequence.editor": "scripts/x.sh",
    "pager.log": "scripts/x.sh",
    "uploadpack.packObjectsHook": "scripts/x.sh",
    "receive.unheardOf": "scripts/x.sh",
    "remote.r.uploadpack": "scripts/x.sh",
    "remote.r.receivepack": "scripts/x.sh",
    "remote.r.url": "ext::scripts/x.sh %S",
    "sendemail.smtpServer": "scripts/x.sh",
    "browser.b.cmd": "scripts/x.sh",
    "man.m.cmd": "scripts/x.sh",
    "trailer.t.command": "scripts/x.sh",
    "trailer.t.cmd": "scripts/x.sh",
    "interactive.diffFilter": "scripts/x.sh --color",
    "url.ext::scripts/x.sh %S.insteadOf": "foo:",
    "pager.show": "cd scripts && ./x.sh",
    "submodule.s.update": "!scripts/x.sh",
    "hook.h.command": "scripts/x.sh",
    "lfs.customtransfer.l.path": "scripts/x.sh",
    "tar.t.command": "scripts/x.sh",
    "future.unheardOf": "nice scripts/x.sh",
}
HARMLESS = {
    "branch.main.merge": "refs/heads/main",
    "remote.origin.fetch": "+refs/heads/*:refs/remotes/origin/*",
    "remote.origin.url": "./vendor/lib.git",
    "submodule.lib.path": "vendor/lib",
    "user.name": "A B",
    "commit.template": ".github/message",
    "core.excludesFile": ".ignored",
    "alias.lg": "log --oneline main",
    "core.editor": "vim",
    "diff.tool": "vimdiff",
}


@pytest.fixture(autouse=True)
def nobody(monkeypatch, tmp_path):
    """A person without configuration."""
    for name in [name for name in os.environ if name.startswith("GIT_CONFIG")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    monkeypatch.setenv("HOME", str(tmp_path / "person"))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    (tmp_path / "person").mkdir()


@pytest.fixture
def workspace(tmp_path):
    place = tmp_path / "workspace"
    (place / ".git").mkdir(parents=True)
    return place


def config(path, key, value):
    path.parent.mkdir(parents=True, exist_ok=True)
    subprocess.run(["git", "config", "--file", path, key, value], check=True)


@pytest.mark.parametrize("key", COMMANDS)
def test_a_file_that_a_setting_names_as_a_command_is_found(key, workspace):
    config(workspace / ".git/config", key, COMMANDS[key])
    assert git_paths_of(str(workspace)).run["scripts/x.sh"].lower() == key.lower()


@pytest.mark.parametrize("key", HARMLESS)
def test_a_setting_that_runs_nothing_names_nothing(key, workspace):
    config(workspace / ".git/config", key, HARMLESS[key])
    found = git_paths_of(str(workspace))
    assert (found.run, found.obeyed) == ({}, [])


def test_a_file_that_is_handed_to_an_interpreter_needs_no_slash(workspace):
    config(workspace / ".git/config", "filter.f.clean", "sh clean.sh")
    assert list(git_paths_of(str(workspace)).run) == ["clean.sh"]


def test_names_that_are_no_text_are_found(workspace):
    (workspace / ".git/config").write_bytes(b"[diff]\n\texternal = ./\xff.sh\n")
    assert list(git_paths_of(str(workspace)).run) == ["\udcff.sh"]


@pytest.mark.parametrize("file", ["person/.gitconfig", "person/.config/git/config", "elsewhere"])
def test_what_a_person_has_configured_counts_in_every_repository(file, workspace, tmp_path, monkeypatch):
    if file == "elsewhere":
        monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / file))
    config(tmp_path / file, "core.hooksPath", ".githooks")
    config(tmp_path / file, "core.pager", f"{workspace}/bin/pager")
    config(tmp_path / file, "init.templateDir", f"{workspace}/template")
    config(tmp_path / file, "include.path", f"{tmp_path}/work.config")
    config(tmp_path / "work.config", "diff.external", "tools/diff")
    (workspace / "apps/one/.git").mkdir(parents=True)
    (workspace / "apps/one/.git/HEAD").touch()
    assert sorted(git_paths_of(str(workspace)).obeyed) == [".githooks", "template"]
    assert sorted(git_paths_of(str(workspace)).run) == ["bin/pager", "tools/diff"]
    assert sorted(git_paths_of(str(workspace), "apps/one").obeyed) == ["apps/one/.githooks", "template"]
    assert sorted(git_paths_of(str(workspace), "apps/one").run) == ["apps/one/tools/diff", "bin/pager"]


def test_an_empty_git_does_not_hide_the_repository_above_it(workspace):
    (workspace / ".git/HEAD").touch()
    config(workspace / ".git/config", "diff.external", "./apps/one/x.sh")
    (workspace / "apps/one/.git").mkdir(parents=True)
    assert git_paths_of(str(workspace / "apps/one")).run == {"x.sh": "diff.external"}


def test_a_linked_configuration_of_a_person_counts(workspace, tmp_path):
    config(tmp_path / "dotfiles/git", "core.hooksPath", "hooks")
    (tmp_path / "person/.gitconfig").symlink_to("../dotfiles/git")
    assert git_paths_of(str(workspace)).obeyed == ["hooks"]


def test_what_the_machine_and_the_environment_say_counts(workspace, tmp_path, monkeypatch):
    config(tmp_path / "system", "core.hooksPath", "system-hooks")
    monkeypatch.delenv("GIT_CONFIG_NOSYSTEM")
    monkeypatch.setenv("GIT_CONFIG_SYSTEM", str(tmp_path / "system"))
    monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
    monkeypatch.setenv("GIT_CONFIG_KEY_0", "core.fsmonitor")
    monkeypatch.setenv("GIT_CONFIG_VALUE_0", "./watch")
    monkeypatch.setenv("GIT_CONFIG_PARAMETERS", "'diff.external=./differ'")
    found = git_paths_of(str(workspace))
    assert (found.obeyed, sorted(found.run)) == (["system-hooks"], ["differ", "watch"])


def test_a_submodule_is_read_where_its_git_directory_is(workspace):
    config(workspace / ".git/modules/lib/config", "filter.f.clean", "./clean")
    (workspace / "lib").mkdir()
    (workspace / "lib/.git").write_text("gitdir: ../.git/modules/lib\n")
    assert list(git_paths_of(str(workspace), "lib").run) == ["lib/clean"]


def test_files_that_include_each_other_come_to_an_end(workspace):
    config(workspace / ".git/config", "include.path", "../a")
    config(workspace / "a", "include.path", "b")
    config(workspace / "b", "include.path", "a")
    config(workspace / "b", "diff.external", "./differ")
    found = git_paths_of(str(workspace))
    assert (sorted(found.obeyed), list(found.run)) == (["a", "b"], ["differ"])


def test_what_a_call_could_bring_into_configuration_hides_nothing(workspace):
    padding = '[branch "a"]\n' + "\tdescription = x\n" * 15_000
    (workspace / ".git/config").write_text(padding + "[diff]\n\texternal = ./differ\n")
    assert list(git_paths_of(str(workspace)).run) == ["differ"]


@pytest.mark.parametrize("words", [b"\0", b"\xff\xfe" * 9, b"[" * 5000, b'[a "', b"[a]\nx = " + b"./a " * 9000])
def test_hostile_configuration_is_survived(words, workspace):
    (workspace / ".git/config").write_bytes(words)
    assert git_paths_of(str(workspace)).obeyed == []


def test_a_pipe_in_place_of_configuration_is_not_waited_for(workspace):
    os.mkfifo(workspace / ".git/config")
    assert git_paths_of(str(workspace)).obeyed == []


def test_chance_finds_no_included_setting_that_git_reads_and_we_do_not(tmp_path):
    chance = random.Random(7)
    names = [f"{directory}c{number}" for directory in ("", "d/", "d/e/") for number in range(3)]
    for round_ in range(25):
        top = tmp_path / str(round_)
        (top / "d/e").mkdir(parents=True)
        for number, name in enumerate(names):
            lines = [f"[core]\n\tx{number} = y{chance.random()}\n"]
            for other in chance.sample(names[number + 1 :], k=min(2, len(names) - number - 1)):
                to = chance.choice([os.path.relpath(top / other, (top / name).parent), str(top / other)])
                lines.insert(chance.randrange(2), f'[include]\n\tpath = "{to}"\n')
            (top / name).write_text("".join(lines))
        words = ["git", "config", "--file", top / names[0], "--includes", "--list", "-z"]
        done = subprocess.run(words, capture_output=True, text=True, check=True)
        by_git = {tuple(line.split("\n", 1)) for line in done.stdout.split("\0")[:-1]}
        assert by_git == {(each.key, each.value) for _path, each in _read([str(top / names[0])])}


def test_no_configuration_at_all_is_nothing(tmp_path):
    assert shared_git_settings({"HOME": str(tmp_path), "GIT_CONFIG_NOSYSTEM": "1"}) == []
