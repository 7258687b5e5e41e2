"""How plugins are written in a configuration: every form, and the errors for all others."""

import os

import pytest

from haft.contracts import NO_GRANTS, BadConfig, Grants
from haft.sources.bash_plugin import read_reference

SOURCE = "/etc/haft.toml"


def read(entry):
    return read_reference(entry, SOURCE, "/base")


FORMS = [
    ("bash:./plugins/mine", {"family": "bash", "path": "/base/plugins/mine", "is_file": False, "name": "mine"}),
    ("bash:tools/my_tool.bash", {"family": "bash", "path": "/base/tools/my_tool.bash", "name": "my_tool"}),
    ("bash:/abs/mine/", {"family": "bash", "path": "/abs/mine", "name": "mine"}),
    ("bash:../mine", {"family": "bash", "path": "/mine"}),
    ("bash:./mine-1.2", {"family": "bash", "path": "/base/mine-1.2", "name": "mine-1.2"}),
    ("bash:~/mine", {"family": "bash", "path": os.path.expanduser("~/mine")}),
    (
        "bash+git:https://example.org/a/my-bash-tool.git#v0.1.0",
        {"family": "bash", "git": "https://example.org/a/my-bash-tool.git", "ref": "v0.1.0", "name": "my-bash-tool"},
    ),
    ("bash+git:/srv/mine", {"family": "bash", "git": "/srv/mine", "ref": None, "path": None, "name": "mine"}),
    ("path:./plugins/py", {"family": "python", "path": "/base/plugins/py", "is_file": False}),
    ("python:./tools.py", {"family": "python", "path": "/base/tools.py", "is_file": True, "name": "tools"}),
    ("my_package.plugins.Mine", {"family": "python", "dotted": "my_package.plugins.Mine", "path": None}),
    ("my_package.plugins:Mine", {"family": "python", "dotted": "my_package.plugins:Mine", "path": None}),
    (
        {"plugin": "path:./plugins/py", "grant": {"write": ["data/**"], "network": True}},
        {"path": "/base/plugins/py", "grant": Grants(network=True, write=("data/**",)), "keeps_process": True},
    ),
    ({"plugin": "bash:./plugins/mine"}, {"family": "bash", "path": "/base/plugins/mine", "grant": NO_GRANTS}),
    (
        {"bash_tool": {"file": "./tools/my_tool.bash"}},
        {"family": "bash", "path": "/base/tools/my_tool.bash", "is_file": True, "name": "my_tool"},
    ),
    (
        {"bash_tool": {"path": "./plugins/mine", "subdirectory": "inner"}},
        {"family": "bash", "path": "/base/plugins/mine", "is_file": False, "subdirectory": "inner"},
    ),
    (
        {"bash_tool": {"git": "https://example.org/mine.git", "ref": "v1", "subdirectory": "a"}},
        {"family": "bash", "git": "https://example.org/mine.git", "ref": "v1", "subdirectory": "a", "path": None},
    ),
]


@pytest.mark.parametrize(("entry", "wanted"), FORMS, ids=[str(entry) for entry, _wanted in FORMS])
def test_a_form_is_read(entry, wanted):
    reference = read(entry)
    assert {name: getattr(reference, name) for name in wanted} == wanted
    assert reference.source == SOURCE


WRONG = [
    ("bsh:./plugins/mine", "no plugin of the form `bsh:./plugins/mine`", "did you mean `bash:`?"),
    ("bash+gti:https://x/y.git", "no plugin of the form", "did you mean `bash+git:`?"),
    ("pyhton:./a.py", "no plugin of the form", "did you mean `python:`?"),
    ("ftp://example.org/x", "no plugin of the form", "plugins begin with bash:, bash+git:, path:, python:"),
    ("./plugins/mine", "does not say what it is", "write `bash:./plugins/mine`"),
    ("/plugins/mine", "does not say what it is", "write `bash:/plugins/mine`"),
    ("bash:", "has no path or address", ""),
    ("bash+git:", "has no path or address", ""),
    ("bash+git:#v1", "has no path or address", ""),
    ("bash:a\0b", "has no path or address", ""),
    ({"bash_tool": {"flie": "a"}}, "`bash_tool` has no key `flie`", "did you mean `file`?"),
    ({"bash_tool": {"zzz": "a"}}, "`bash_tool` has no key `zzz`", "file, path, git, ref, subdirectory"),
    ({"bash_tool": {"file": 1}}, "`bash_tool.file` must be a text, not 1", ""),
    ({"bash_tool": {"file": ""}}, "`bash_tool.file` must be a text", ""),
    ({"bash_tool": {"file": "a\0"}}, "`bash_tool.file` must be a text", ""),
    ({"bash_tool": {}}, "needs one of file, path and git, and has 0", ""),
    ({"bash_tool": {"file": "a", "path": "b"}}, "needs one of file, path and git, and has 2", ""),
    ({"bash_tool": {"path": "a", "ref": "v1"}}, "`bash_tool.ref` goes with `git`", ""),
    ({"bash_tool": "a"}, "a plugin is written as a text such as `bash:./plugins/mine`", ""),
    ({"bash_tools": {"file": "a"}}, "a plugin is written as", ""),
    ({"bash_tool": {"file": "a"}, "name": "b"}, "a plugin is written as", ""),
    (7, "not as 7", ""),
    ({"plugin": 7}, "a plugin is written as", ""),
    ({"plugin": "path:./py", "grants": {}}, "a plugin is written as", ""),
    ({"plugin": "path:./py", "grant": {"wirte": ["."]}}, "there is no grant `wirte`", ""),
    (
        {"plugin": "path:./py", "grant": {"network": ["a b"]}},
        "the `grant` of the plugin `path:./py`: `a b` is no host",
        "",
    ),
    ({"plugin": "path:./py", "grant": ["."]}, "must be a table of network, env, path, read, write", ""),
    ({"plugin": "bash:./mine", "grant": {"network": True}}, "cannot have a `grant`", "on a rule in `permissions`"),
    ({"plugin": "python:./a.py", "grant": {"write": ["."]}}, "cannot have a `grant`", "on a rule in `permissions`"),
    (None, "not as None", ""),
]


@pytest.mark.parametrize(("entry", "message", "hint"), WRONG, ids=[str(wrong[0]) for wrong in WRONG])
def test_what_is_no_form_is_refused_with_the_file_and_the_form_to_write(entry, message, hint):
    with pytest.raises(BadConfig) as error:
        read(entry)
    assert message in error.value.message
    assert error.value.message.startswith(f"{SOURCE}: ")
    assert hint in (error.value.hint or "")
    assert bool(hint) == bool(error.value.hint)
