"""Skills from elsewhere: all of them or none, and nothing but files."""

import fcntl
import gzip
import io
import os
import stat
import tarfile
import zipfile

import pytest

from haft.authoring.skills.installer import install
from haft.authoring.skills.new_skill import place_for
from haft.contracts import BadUsage, HaftError

TEXT = b"---\nname: one\ndescription: Use it.\n---\n"


@pytest.fixture
def here(place):
    return place_for(str(place.workspace), str(place.home), is_global=False)


@pytest.fixture
def source(place, tmp_path):
    folder = place.make("../source/one")
    (folder / "tools").mkdir()
    (folder / "tools/run").write_text("#!/bin/sh\ntouch ran\n")
    (folder / "tools/run").chmod(0o4755)
    (folder / "references").mkdir()
    (folder / "references/setup.md").write_text("x")
    return folder


def refused(source, here, words, *, force=False):
    before = sorted(os.listdir(here))
    with pytest.raises(BadUsage, match=words):
        install(str(source), here, force=force)
    assert sorted(os.listdir(here)) == before, "nothing came, and nothing is left over"


def tar_of(path, *members, packed=True):
    with tarfile.open(path, "w:gz" if packed else "w") as archive:
        for name, content, *more in members:
            info = tarfile.TarInfo(name)
            info.mode = 0o644
            for key, value in (more[0] if more else {}).items():
                setattr(info, key, value)
            info.size = len(content) if info.isreg() else 0
            archive.addfile(info, io.BytesIO(content))
    return path


def zip_of(path, *members):
    with zipfile.ZipFile(path, "w") as archive:
        for name, content, *mode in members:
            info = zipfile.ZipInfo(name)
            info.compress_type = zipfile.ZIP_DEFLATED
            info.external_attr = (mode[0] if mode else 0o100644) << 16
            archive.writestr(info, content)
    return path


def test_a_folder_comes_with_its_run_bits_and_nothing_is_run(place, here, source):
    (one,) = install(str(source), here, force=False)
    assert (one.name, one.executables, one.replaced) == ("one", ("tools/run",), False)
    skill = place.skills().get("one")
    assert skill.folder == one.folder and skill.tool_files() == ["tools/run"]
    assert skill.references() == ["references/setup.md"]
    mode = os.stat(f"{one.folder}/tools/run").st_mode
    assert mode & stat.S_IXUSR and not mode & stat.S_ISUID
    assert not os.stat(f"{one.folder}/references/setup.md").st_mode & stat.S_IXUSR
    assert os.listdir(here) == ["one"]


def test_a_folder_of_folders_brings_all_and_is_called_by_the_front_matter(place, here, source):
    place.make("../source/two-main", "---\nname: two\ndescription: d\n---\n")
    (source.parent / "README.md").write_text("x")
    (source.parent / "docs").mkdir()
    assert [one.name for one in install(str(source.parent), here, force=False)] == ["one", "two"]
    assert sorted(os.listdir(here)) == ["one", "two"]
    assert place.skills().get("two").is_usable


def test_a_bad_one_among_good_ones_keeps_all_out(place, here, source):
    place.make("../source/zwei", "nothing")
    refused(source.parent, here, "the skill in `zwei` cannot be used, nothing is installed: its SKILL.md has no front")


def test_two_of_one_name_keep_each_other_out(place, here, source):
    place.make("../source/other", TEXT)
    refused(source.parent, here, "both called `one`")


def test_nothing_is_replaced_unasked(place, here, source):
    mine = place.make(".agents/skills/one", description="mine")
    (mine / "old.md").write_text("x")
    refused(source, here, "exists already")
    (one,) = install(str(source), here, force=True)
    assert one.replaced and not (mine / "old.md").exists() and (mine / "tools/run").exists()


def test_when_one_cannot_be_moved_into_place_all_are_as_before(place, here, source, monkeypatch):
    mine = place.make(".agents/skills/one", description="mine")
    place.make("../source/two", "---\nname: two\ndescription: d\n---\n")
    rename = os.rename

    def fail_late(old, new, **options):
        if new == f"{here}/two":
            raise OSError(28, "No space left on device")
        rename(old, new, **options)

    monkeypatch.setattr(os, "rename", fail_late)
    with pytest.raises(HaftError, match="nothing was installed"):
        install(str(source.parent), here, force=True)
    assert os.listdir(here) == ["one"] and "mine" in (mine / "SKILL.md").read_text()


def test_histories_and_litter_stay_behind(here, source):
    for path in (".git/hooks/post-checkout", "node_modules/x/index.js", ".DS_Store", "tools/__pycache__/x.pyc"):
        (source / path).parent.mkdir(parents=True, exist_ok=True)
        (source / path).write_text("x")
    (one,) = install(str(source), here, force=False)
    assert sorted(os.listdir(one.folder)) == ["SKILL.md", "references", "tools"]
    assert os.listdir(f"{one.folder}/tools") == ["run"]


def test_a_link_inside_comes_as_a_file_and_one_that_leaves_keeps_it_out(here, source, tmp_path):
    (source / "again.md").symlink_to("references/setup.md")
    (one,) = install(str(source), here, force=False)
    assert os.path.isfile(f"{one.folder}/again.md") and not os.path.islink(f"{one.folder}/again.md")
    (tmp_path / "secret").write_text("x")
    for target in (tmp_path / "secret", "../../secret", "/etc/passwd", "references", "nowhere"):
        (source / "again.md").unlink()
        (source / "again.md").symlink_to(target)
        refused(source, here, "`again.md` is not a regular file of the skill", force=True)


def test_a_pipe_is_refused_and_not_waited_for(here, source):
    os.mkfifo(source / "pipe")
    refused(source, here, "`pipe` is not a regular file of the skill")


def test_too_many_and_too_large_are_refused(here, source, monkeypatch):
    with open(source / "large", "wb") as file:
        file.truncate(50_000_001)
    refused(source, here, "more than 50_000_000 bytes")
    (source / "large").unlink()
    monkeypatch.setattr("haft.authoring.skills.archives.MOST_FILES", 20)
    for number in range(20):
        (source / f"{number}.md").write_text("x")
    refused(source, here, "more than 20 files and directories")


def test_a_skill_that_holds_the_place_does_not_swallow_itself(place, here):
    (place.workspace / "SKILL.md").write_text("---\nname: whole\ndescription: d\n---\n")
    (one,) = install(str(place.workspace), here, force=False)
    assert sorted(os.listdir(one.folder)) == [".agents", "SKILL.md"]


@pytest.mark.parametrize("prefix", ["", "one/", "skills-main/one/", "./", "./one/"])
@pytest.mark.parametrize("form", ["zip", "tar.gz", "tar"])
def test_archives_are_unpacked_whatever_is_around_the_skill(place, here, tmp_path, prefix, form):
    path, members = tmp_path / f"x.{form}", [(f"{prefix}SKILL.md", TEXT)]
    if form == "zip":
        zip_of(path, *members, (f"{prefix}tools/run", b"x", 0o100755), ("__MACOSX/x", b"x"))
    else:
        tar_of(path, (".", b"", {"type": tarfile.DIRTYPE}), *members, (f"{prefix}tools/run", b"x", {"mode": 0o755}),
               packed=form == "tar.gz")  # fmt: skip
    (one,) = install(str(path), here, force=False)
    assert (one.name, one.executables) == ("one", ("tools/run",))
    assert place.skills().get("one").is_usable


def test_an_archive_of_several_brings_them_all(here, tmp_path):
    two = TEXT.replace(b"one", b"two")
    path = zip_of(tmp_path / "x.zip", ("a/SKILL.md", TEXT), ("b/SKILL.md", two), ("README.md", b"x"))
    assert [one.name for one in install(str(path), here, force=False)] == ["one", "two"]


@pytest.mark.parametrize(
    "name", ["../out", "one/../../out", "/tmp/out", "one\\..\\out", "one/a\nb", "one//b", "one/\x1b[31m", "x" * 1001]
)
def test_names_that_could_leave_are_refused(place, here, tmp_path, name):
    for path in (
        zip_of(tmp_path / "x.zip", ("one/SKILL.md", TEXT), (name, b"x")),
        tar_of(tmp_path / "x.tar.gz", ("one/SKILL.md", TEXT), (name, b"x")),
    ):
        refused(path, here, "which could leave its folder")
    assert not (tmp_path / "out").exists() and not (place.workspace / ".agents/out").exists()


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE])
def test_links_and_devices_in_archives_are_refused(here, tmp_path, kind):
    member = ("one/link", b"", {"type": kind, "linkname": "SKILL.md"})
    refused(tar_of(tmp_path / "x.tar.gz", ("one/SKILL.md", TEXT), member), here, "neither a regular file nor")
    linked = zip_of(tmp_path / "x.zip", ("one/SKILL.md", TEXT), ("one/link", b"/etc/passwd", stat.S_IFLNK | 0o777))
    refused(linked, here, "neither a regular file nor")


def test_a_link_before_a_file_beneath_it_leads_nowhere(here, tmp_path):
    link = ("one/d", b"", {"type": tarfile.SYMTYPE, "linkname": str(tmp_path)})
    refused(tar_of(tmp_path / "x.tar", link, ("one/d/out", b"x"), packed=False), here, "neither a regular file nor")
    assert not (tmp_path / "out").exists()


def test_one_name_twice_is_refused(here, tmp_path):
    refused(tar_of(tmp_path / "x.tar", ("SKILL.md", TEXT), ("SKILL.md", TEXT), packed=False), here, "in it twice")
    refused(tar_of(tmp_path / "x.tar", ("SKILL.md", TEXT), ("SKILL.md/x", TEXT), packed=False), here, "both a file and")


def test_bombs_do_not_go_off(here, tmp_path):
    zeros = bytes(60_000_000)
    refused(zip_of(tmp_path / "x.zip", ("SKILL.md", TEXT), ("zeros", zeros)), here, "more than 50_000_000 bytes")
    refused(tar_of(tmp_path / "x.tar.gz", ("SKILL.md", TEXT), ("zeros", zeros)), here, "more than 50_000_000 bytes")
    header = tarfile.TarInfo("x")
    header.type, header.size = tarfile.XHDTYPE, 8_000_000_000
    (tmp_path / "pax.tar.gz").write_bytes(gzip.compress(header.tobuf() + zeros + zeros[:20_000_000]))
    refused(tmp_path / "pax.tar.gz", here, "more than 50_000_000 bytes|cannot be unpacked")


def test_a_table_of_contents_without_end_is_not_read(here, tmp_path):
    path = zip_of(tmp_path / "x.zip", *((f"one/{'n' * 200}{number}", b"") for number in range(5_000)))
    refused(path, here, "more than 1_000 files")


@pytest.mark.parametrize(
    "content", [b"", b"PK", b"PK\x03\x04" + bytes(100), b"\x1f\x8bgarbage", b"plain text", b"\0" * 600]
)
def test_what_is_no_archive_is_refused(here, tmp_path, content):
    (tmp_path / "x").write_bytes(content)
    refused(tmp_path / "x", here, "neither a folder nor an archive|damaged|cannot be unpacked")


def test_an_archive_cut_short_or_without_a_skill_is_refused(here, tmp_path):
    whole = tar_of(tmp_path / "x.tar.gz", ("one/SKILL.md", TEXT), ("one/more", os.urandom(50_000))).read_bytes()
    (tmp_path / "cut.tar.gz").write_bytes(whole[:20_000])
    refused(tmp_path / "cut.tar.gz", here, "cannot be unpacked")
    refused(zip_of(tmp_path / "x.zip", ("a/b/c/SKILL.md", TEXT)), here, "there is no SKILL.md in it")


def test_what_is_not_there_or_a_pipe_is_refused(here, tmp_path):
    refused(tmp_path / "nothing", here, "does not exist")
    os.mkfifo(tmp_path / "pipe")
    refused(tmp_path / "pipe", here, "not a regular file")


def test_directories_on_the_way_count_and_end_somewhere(here, source, tmp_path):
    many = [(f"one/{number}/a/b/c/file", b"") for number in range(300)]
    refused(tar_of(tmp_path / "x.tar", ("one/SKILL.md", TEXT), *many, packed=False), here, "more than 1_000 files and")
    deep = "/".join(["d"] * 100)
    refused(zip_of(tmp_path / "x.zip", ("one/SKILL.md", TEXT), (f"one/{deep}/file", b"")), here, "is nested too deep")
    (source / deep).mkdir(parents=True)
    refused(source, here, "is nested too deep")


def test_a_table_of_contents_that_points_to_another_is_refused(here, tmp_path):
    path = zip_of(tmp_path / "x.zip", ("one/SKILL.md", TEXT))
    content = path.read_bytes()
    end = content.rfind(b"PK\x05\x06")
    for comment in (b"", b"x" * 65_535):
        last = content[end:-2] + len(comment).to_bytes(2, "little") + comment
        path.write_bytes(content[:end] + b"PK\x06\x07" + bytes(16) + last)
        refused(path, here, "more than 1_000 files")


@pytest.mark.parametrize("method", [zipfile.ZIP_LZMA, zipfile.ZIP_BZIP2])
def test_methods_that_can_ask_for_any_memory_are_not_unpacked(here, tmp_path, method):
    with zipfile.ZipFile(tmp_path / "x.zip", "w", method) as archive:
        archive.writestr("one/SKILL.md", TEXT)
    refused(tmp_path / "x.zip", here, "compressed with a method that is not supported")


@pytest.mark.parametrize("kind", [tarfile.GNUTYPE_LONGNAME, tarfile.XHDTYPE])
def test_headers_of_headers_without_end_are_refused(here, tmp_path, kind):
    header = tarfile.TarInfo("x")
    header.type = kind
    (tmp_path / "x.tar.gz").write_bytes(gzip.compress(header.tobuf() * 2_000))
    refused(tmp_path / "x.tar.gz", here, "cannot be unpacked|there is no SKILL.md")


def test_a_linked_folder_among_the_skills_comes_only_from_within(place, here, source, tmp_path):
    secret = place.make("../elsewhere/secret-skill")
    (source.parent / "inno").symlink_to(secret)
    refused(source.parent, here, "`inno` is a link out of")
    (source.parent / "inno").unlink()
    place.make("../source/.kept/two")
    (source.parent / "two").symlink_to(".kept/two")
    assert [one.name for one in install(str(source.parent), here, force=False)] == ["one", "two"]


def test_what_an_interrupted_install_had_moved_away_comes_back(place, here, source, tmp_path):
    staging = place.make(".agents/skills/.haft-install-x/old/mine").parent.parent
    place.make(".agents/skills/.haft-install-x/old/there", description="older")
    kept = place.make(".agents/skills/there", description="newer")
    install(str(source), here, force=False)
    assert sorted(os.listdir(here)) == ["mine", "one", "there"] and not staging.exists()
    assert "newer" in (kept / "SKILL.md").read_text()


def test_nothing_is_moved_from_where_a_link_in_its_place_leads_nor_from_one_at_work(place, here, source, tmp_path):
    place.make("../victim/mine")
    (place.workspace / ".agents/skills/.haft-install-x").mkdir()
    (place.workspace / ".agents/skills/.haft-install-x/old").symlink_to(tmp_path / "victim")
    (place.workspace / ".agents/skills/.haft-install-y").symlink_to(tmp_path / "victim")
    busy = place.make(".agents/skills/.haft-install-z/old/busy").parent.parent
    descriptor = os.open(busy, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        install(str(source), here, force=False)
    finally:
        os.close(descriptor)
    assert os.listdir(tmp_path / "victim") == ["mine"] and busy.exists()
    assert not os.path.lexists(f"{here}/busy") and not os.path.lexists(f"{here}/mine")


def test_what_was_gathered_and_cannot_be_removed_is_said(here, source, monkeypatch, caplog):
    monkeypatch.setattr("shutil.rmtree", lambda path, ignore_errors: None)
    install(str(source), here, force=False)
    assert "could not be removed" in caplog.text


def test_what_is_installed_can_be_used_whatever_the_umask(here, source):
    old = os.umask(0o777)
    try:
        (one,) = install(str(source), here, force=False)
    finally:
        os.umask(old)
    modes = [stat.S_IMODE(os.stat(f"{one.folder}/{path}").st_mode) for path in ("", "tools", "tools/run", "SKILL.md")]
    assert modes == [0o700, 0o700, 0o700, 0o600]
