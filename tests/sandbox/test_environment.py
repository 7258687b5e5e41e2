"""The environment of a tool is built from a short list, never inherited."""

import pytest

from haft.contracts import Confinement
from haft.sandbox.environment import NEUTRAL, OWN_PROXY, QUIET, built_environment

CLOSED = Confinement("workspace", network=False)

pytestmark = pytest.mark.every_user


def test_a_tool_gets_the_few_variables_that_programs_need_and_nothing_else():
    host = {"PATH": "/usr/bin", "HOME": "/home/x", "LC_ALL": "C", "AWS_SECRET_ACCESS_KEY": "s", "BASH_ENV": "/x"}
    assert built_environment(host, "/w", CLOSED) == {
        "PATH": "/usr/bin",
        "HOME": "/home/x",
        "LC_ALL": "C",
        "HAFT_INSIDE": "1",
        **QUIET,
    }


@pytest.mark.parametrize(
    ("path", "kept"),
    [
        ("/usr/bin:.:/bin", "/usr/bin:/bin"),
        ("/usr/bin::/bin", "/usr/bin:/bin"),
        ("/usr/bin:bin:./x:../y", "/usr/bin"),
        ("/w/bin:/usr/bin", "/usr/bin"),
        ("/w:/usr/bin", "/usr/bin"),
        ("/usr/../w/bin:/usr/bin", "/usr/bin"),
        ("/wider/bin:/usr/bin", "/wider/bin:/usr/bin"),
    ],
)
def test_path_has_no_relative_entry_and_none_inside_the_workspace(path, kept):
    assert built_environment({"PATH": path}, "/w", CLOSED)["PATH"] == kept


def test_a_path_of_which_nothing_can_be_kept_is_replaced_by_the_systems():
    assert "/usr/bin" in built_environment({"PATH": ".:/w"}, "/w", CLOSED)["PATH"].split(":")
    assert "/usr/bin" in built_environment({}, "/w", CLOSED)["PATH"].split(":")


def test_an_entry_where_anyone_may_put_programs_is_left_out(tmp_path):
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o777)
    (tmp_path / "own").mkdir(mode=0o755)
    path = f"{tmp_path}/open:{tmp_path}/own:/usr/bin"
    assert built_environment({"PATH": path}, "/w", CLOSED)["PATH"] == f"{tmp_path}/own:/usr/bin"


def test_certificates_proxies_and_indexes_come_with_the_network_and_only_with_it():
    host = {"PATH": "/usr/bin", "https_proxy": "http://p", "SSL_CERT_FILE": "/c", "PIP_INDEX_URL": "http://i", "X": "x"}
    assert built_environment(host, "/w", CLOSED) == {"PATH": "/usr/bin", "HAFT_INSIDE": "1", **QUIET}
    given = built_environment(host, "/w", Confinement("workspace", network=True))
    assert given == {"HAFT_INSIDE": "1", **QUIET} | {name: value for name, value in host.items() if name != "X"}


def test_with_hosts_a_call_gets_certificates_and_indexes_and_never_a_proxy_of_the_host():
    proxies = {"ALL_PROXY", "FTP_PROXY", "HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY"}
    proxies |= {name.lower() for name in proxies}
    host = {"PATH": "/usr/bin", "SSL_CERT_FILE": "/c", "PIP_INDEX_URL": "http://i", "GOPROXY": "http://g", "X": "x"}
    host |= dict.fromkeys(proxies, "http://proxy.example")
    confinement = Confinement("workspace", network=("a.example",), env=(*sorted(proxies), "X"))
    assert built_environment(host, "/w", confinement) == {
        "PATH": "/usr/bin",
        "SSL_CERT_FILE": "/c",
        "PIP_INDEX_URL": "http://i",
        "GOPROXY": "http://g",
        "X": "x",
        "HTTPS_PROXY": "http://198.18.0.1:3128",
        "https_proxy": "http://198.18.0.1:3128",
        "NO_PROXY": "localhost,127.0.0.1,::1",
        "no_proxy": "localhost,127.0.0.1,::1",
        "HAFT_INSIDE": "1",
        **QUIET,
    }


def test_a_call_with_hosts_gets_no_proxy_if_the_host_has_none():
    confinement = Confinement("workspace", network=("a.example",))
    assert not [name for name in built_environment({"PATH": "/usr/bin"}, "/w", confinement) if "proxy" in name.lower()]


def test_the_proxy_of_a_call_with_hosts_is_where_the_helper_listens():
    from haft.helper.egress.call import PROXY_PORT
    from haft.helper.local_network import OWN_ADDRESS

    assert OWN_PROXY["HTTPS_PROXY"] == f"http://{OWN_ADDRESS}:{PROXY_PORT}"


def test_what_was_granted_by_name_is_passed_on_and_directories_come_last_on_path():
    host = {"PATH": "/usr/bin", "CI": "1", "OTHER": "2"}
    confinement = Confinement("workspace", network=False, env=("CI", "NOT_SET"), path=("/opt/x/bin",))
    assert built_environment(host, "/w", confinement) == {
        "PATH": "/usr/bin:/opt/x/bin",
        "CI": "1",
        "HAFT_INSIDE": "1",
        **QUIET,
    }


def test_what_nobody_looked_at_has_a_fixed_path_and_quiet_tools():
    given = built_environment(
        {"PATH": "/opt/x/bin:/usr/bin"}, "/w", Confinement("read-only", network=False, neutral=True)
    )
    assert "/opt/x/bin" not in given["PATH"]
    assert NEUTRAL.items() <= given.items()


def test_a_call_with_a_private_tmp_is_told_to_use_it():
    host = {"PATH": "/usr/bin", "TMPDIR": "/somewhere/else"}
    assert built_environment(host, "/w", CLOSED)["TMPDIR"] == "/somewhere/else"
    assert (
        built_environment(host, "/w", Confinement("workspace", network=False, layers=("namespaces",)))["TMPDIR"]
        == "/tmp"
    )


@pytest.mark.parametrize("value", ["zh_CN.GBK", "ja_JP.SJIS", "zh_TW.Big5", "de_DE@euro", "en_US", "/tmp/x.UTF-8"])
def test_a_locale_of_another_encoding_than_utf8_reaches_no_call(value):
    names = ("LC_ALL", "LC_CTYPE", "LC_COLLATE", "LANG")
    host = {"PATH": "/usr/bin", "LANGUAGE": "zh_CN", **dict.fromkeys(names, value)}
    for confinement in (CLOSED, Confinement("workspace", env=names), Confinement("read-only", neutral=True)):
        given = built_environment(host, "/w", confinement)
        assert {given[name] for name in names} == {"C.UTF-8"}
        assert given["LANGUAGE"] == "zh_CN"


@pytest.mark.parametrize("value", ["C", "POSIX", "C.UTF-8", "C.utf8", "zh_CN.UTF-8", "sr_RS.UTF-8@latin", ""])
def test_the_locale_of_a_host_that_speaks_utf8_is_passed_on(value):
    assert built_environment({"PATH": "/usr/bin", "LC_ALL": value}, "/w", CLOSED)["LC_ALL"] == value


def test_git_looks_for_its_repository_above_a_workspace_that_is_a_mount_of_its_own():
    assert built_environment({}, "/w", CLOSED)["GIT_DISCOVERY_ACROSS_FILESYSTEM"] == "1"
