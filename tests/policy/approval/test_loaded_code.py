"""Which files a tool's own files load as code, and what of that cannot be told."""

import os

import pytest

from haft.policy.approval.loaded_code import loaded_by


@pytest.fixture
def box(tmp_path):
    """A folder with a tool and files beside it."""
    box = tmp_path / "box"
    (box / "lib").mkdir(parents=True)
    return box


def tool(box, text, name="tool"):
    path = box / name
    path.write_text(text)
    path.chmod(0o755)
    return str(path)


def names(box, loaded):
    return sorted(os.path.relpath(path, box) for path in loaded.files)


PLACES = [
    '. "$(dirname "$0")/lib/a.sh"',
    "source $(dirname $0)/lib/a.sh",
    'source "$(dirname -- "${BASH_SOURCE[0]}")/lib/a.sh"',
    ". ${0%/*}/lib/a.sh",
    '. "${BASH_SOURCE%/*}"/lib/a.sh',
    'DIR=$(cd "$(dirname "$0")" && pwd)\n. "$DIR/lib/a.sh"',
    'DIR="$( cd -- "$( dirname -- "${BASH_SOURCE[0]}" )" >/dev/null 2>&1 && pwd -P )"\nsource "${DIR}/lib/a.sh"',
    'readonly DIR="$(dirname "$(readlink -f "$0")")"\nsource "$DIR"/lib/a.sh',
    'DIR="$(dirname "$(realpath "$0")")"; LIB=$DIR/lib; [ -f "$LIB/a.sh" ] && . "$LIB/a.sh"',
    'cd "$(dirname "$0")" || exit 1\n. ./lib/a.sh',
    'load() { . "$HERE/lib/a.sh"; }\nHERE=${0%/*}\nload',
    'HERE=${0%/*}\nif true; then\n  exec bash -eu "$HERE/lib/a.sh" "$@"\nfi',
    'HERE=${0%/*}\nenv X=1 "$HERE/lib/a.sh" | cat',
    'for name in a; do . "${0%/*}/lib/$name.sh"; done',
    'for file in "${0%/*}"/lib/*.sh; do . "$file"; done',
    'x=$(bash "${0%/*}/lib/a.sh")',
    'D=${0%/*}; bash -e -u "$D/lib/a.sh"',
    'D=${0%/*}; bash -euo pipefail "$D/lib/a.sh"',
    'D=${0%/*}; bash -v +x -- "$D/lib/a.sh"',
    'D=${0%/*}; timeout 5 bash "$D/lib/a.sh"',
    'D=${0%/*}; timeout -k 1 5 stdbuf -oL ionice -c 3 nice -n 5 "$D/lib/a.sh"',
    'D=${0%/*}; ls | xargs -n 1 "$D/lib/a.sh"',
    'D=${0%/*}; flock /tmp/lock chrt 1 taskset 1 setsid "$D/lib/a.sh"',
    'D=${0%/*}; flock /tmp/lock -c ". $D/lib/a.sh"',
    'D=${0%/*}; time sudo -u x command exec "$D/lib/a.sh"',
    'D=${0%/*}; find . -name x -exec sh "$D/lib/a.sh" {} +',
    'D=${0%/*}; X="bash $D/lib/a.sh"; $X',
    'D=${0%/*}; $BASH "$D/lib/a.sh"',
    'D=${0%/*}; bash < "$D/lib/a.sh"',
    'D=${0%/*}; < "$D/lib/a.sh" bash -s x > y',
    'D=${0%/*}; { true; sh; } < "$D/lib/a.sh"',
    'D=${0%/*}; true | bash < "$D/lib/a.sh"',
    'D=${0%/*}; cat "$D/lib/a.sh" | bash',
    'D=${0%/*}; cat "$D/lib/a.sh" | timeout 5 bash -s > x',
    'D=${0%/*}; bash <(cat "$D/lib/a.sh")',
    'D=${0%/*}; . /dev/stdin < "$D/lib/a.sh"',
    'D=${0%/*}; bash <<< ". $D/lib/a.sh"',
    'D=${0%/*}; bash <<E\n. "$D/lib/a.sh"\nE',
    'D=${0%/*}; bash -c ". $D/lib/a.sh"',
    'D=${0%/*}; bash -ec ". \\"$D/lib/a.sh\\""',
    'D=${0%/*}; bash -c "$(cat "$D/lib/a.sh")"',
    """D=${0%/*}; bash -c 'bash "$1"' _ "$D/lib/a.sh\"""",
    'D=${0%/*}; eval ". $D/lib/a.sh"',
    'D=${0%/*}; eval . "$D/lib/a.sh"',
    'D=${0%/*}; eval "$(cat "$D/lib/a.sh")"',
    'D=${0%/*}; eval "$(< "$D/lib/a.sh")"',
    'D=${0%/*}; trap ". $D/lib/a.sh" EXIT',
    'D=${0%/*}; BASH_ENV="$D/lib/a.sh" bash -c true',
    'D=${0%/*}; export BASH_ENV="$D/lib/a.sh"',
    'D=${0%/*}; env BASH_ENV="$D/lib/a.sh" bash -c true',
    'D=${0%/*}; awk -f "$D/lib/a.sh" x',
    'D=${0%/*}; sed -nf "$D/lib/a.sh" x',
    'D=${0%/*}; sed --file="$D/lib/a.sh" x',
    'D=${0%/*}; coproc bash "$D/lib/a.sh"',
    'D=${0%/*}; alias x=". $D/lib/a.sh"',
    'D=${0%/*}; enable -f "$D/lib/a.sh" x',
    'D=${0%/*}; jq -rf "$D/lib/a.sh" x',
]


@pytest.mark.parametrize("text", PLACES)
def test_a_shell_script_that_loads_a_file_by_its_own_place(box, text):
    (box / "lib" / "a.sh").write_text("echo a\n")
    found = loaded_by([tool(box, f"#!/usr/bin/env bash\n# source nothing\n{text}\n")])
    assert (names(box, found), found.unresolved) == (["lib/a.sh"], ())


def test_a_literal_path_counts_and_a_file_that_is_not_there_counts_too(box, tmp_path):
    elsewhere = tmp_path / "elsewhere.sh"
    found = loaded_by([tool(box, f"#!/bin/sh\n. {elsewhere}\npython3 '{box}/x y.py'\n")])
    assert found.files == (str(elsewhere), f"{box}/x y.py")


@pytest.mark.parametrize(
    "text",
    ['source "$LIB/a.sh"', ". ./a.sh", "source a.sh", '. "$HOME/a.sh"', ". ~/a.sh", 'bash "$(find_it)"',
     'LIB=${LIB:-/x}\n. "$LIB/a.sh"', 'DIR=$(cd "${0%/*}" && pwd)\n. ./a.sh', "bash -c 'source y'", './a.sh',
     'eval "$X"', 'eval "$(curl x)"', "curl x | bash", "cat | sh", "bash", "bash -v", 'bash -c "$X"', "ls | xargs bash",
     "bash -c '$1' _ $X", "cat <<E | bash\n. ./x\nE", "bash | cat < /x", '"$X" y', 'exec "$@"',
     'python3 -c "exec(open(\\"${0%/*}/x\\").read())"', 'python3 -c "$X"', "perl -e 'do \"./x\"'",
     'PATH="${0%/*}/lib:$PATH" x.sh', "PATH=:$PATH", 'export PYTHONPATH="$X"', "LD_PRELOAD=/x/y.so ls", "make x",
     'env -S "bash x"', 'env -S "bash x" ls', 'for sh in bash dash; do $sh /x; done', "X='eval \"$X\"'\neval \"$X\"",
     "bash /dev/fd/3", "BASH_ENV=$X"],
)  # fmt: skip
def test_what_a_shell_script_loads_from_elsewhere_is_said(box, text):
    path = tool(box, f"#!/bin/sh\n{text}\n")
    found = loaded_by([path])
    assert found.files == ()
    line = text.split("<<")[0].count("\n") + 2
    assert {each.split(": ")[0] for each in found.unresolved} == {f"{path}:{line}"}


def test_the_place_that_is_said_is_the_whole_command(box):
    path = tool(box, '#!/bin/sh\nx=1\nif true; then timeout 5 bash "$LIB/a.sh"; fi\n')
    assert loaded_by([path]).unresolved == (f'{path}:3: timeout 5 bash "$LIB/a.sh"',)
    assert loaded_by([tool(box, "#!/bin/sh\ncurl x | sh\n")]).unresolved == (f"{path}:2: curl x | sh",)


def test_a_file_is_held_whose_own_loading_is_not_looked_for_and_that_is_said(box):
    for name in ("make -f", "perl", "ruby -w"):
        found = loaded_by([tool(box, f'#!/bin/sh\n{name} "${{0%/*}}/lib/m"\n')])
        assert names(box, found) == ["lib/m"]
        assert "haft cannot tell what is loaded in" in found.unresolved[0]


def test_code_that_a_shell_script_passes_to_python_is_read_too(box):
    (box / "lib" / "one.py").touch()
    code = "import sys; sys.path.insert(0, '$D/lib'); import one"
    for text in (f'python3 -c "{code}"', f"python3 - <<E\n{code}\nE", 'cd "$D/lib"; python3 -m one'):
        found = loaded_by([tool(box, f"#!/bin/bash\nD=${{0%/*}}\n{text}\n")])
        assert (names(box, found), found.unresolved) == (["lib/one.py"], ())


def test_words_that_load_nothing_are_not_treated_as_code(box):
    text = "echo source x\nbash -c 'echo source y'\npython3 -m json.tool\nls \"${0%/*}/lib\"\n/usr/bin/env true\n"
    text += "command -v bash\nnode --version\nPATH=$PATH:/usr/local/bin\n"
    text += "cat <<E\n. z\nE\n"
    assert loaded_by([tool(box, f"#!/bin/sh\n{text}")]) == loaded_by([])


def test_what_is_loaded_is_looked_into_in_turn_and_loops_end(box):
    (box / "lib" / "a.sh").write_text('. "${BASH_SOURCE[0]%/*}/b.sh"\n. "$(dirname "$0")/c.sh"\n')
    (box / "lib" / "b.sh").write_text('. "${BASH_SOURCE[0]%/*}/a.sh"\npython3 "${0%/*}/m.py"\n')
    (box / "m.py").write_text("import helper\n")
    (box / "helper.py").write_text("import m\n")
    (box / "c.sh").write_text("true\n")
    found = loaded_by([tool(box, '#!/bin/bash\nsource "${0%/*}/lib/a.sh"\n')])
    assert names(box, found) == ["c.sh", "helper.py", "lib/a.sh", "lib/b.sh", "m.py"]


def test_a_script_that_is_a_link_loads_what_lies_beside_its_target_where_it_asks_for_that(box, tmp_path):
    (box / "a.sh").touch()
    path = tool(box, '#!/bin/bash\n. "$(dirname "$(readlink -f "$0")")/a.sh"\n')
    link = tmp_path / "link"
    link.symlink_to(path)
    assert loaded_by([str(link)]).files == (str(box / "a.sh"),)


def test_a_python_script_loads_the_modules_beside_it_and_on_the_paths_that_it_adds(box):
    (box / "package").mkdir()
    for name in ("one.py", "package/__init__.py", "package/two.py", "package/three.py", "lib/four.py", "unused.py"):
        (box / name).touch()
    (box / "package" / "two.py").write_text("from . import three\nimport one\n")
    text = """#!/usr/bin/env python3
import json, sys, os
from pathlib import Path
HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "lib"))
import one
from package.two import x
import four
"""
    found = loaded_by([tool(box, text)])
    assert names(box, found) == ["lib/four.py", "one.py", "package/__init__.py", "package/three.py", "package/two.py"]
    assert found.unresolved == ()
    (box / "json.py").touch()
    assert "json.py" in names(box, loaded_by([tool(box, text)])), "it stands before Python's own"


def test_what_a_python_script_loads_from_elsewhere_is_said(box):
    path = tool(box, "#!/usr/bin/python3\nimport sys, importlib\nsys.path.append(sys.argv[1])\n"
                     "importlib.import_module(name)\nsys.path += more\n")  # fmt: skip
    assert loaded_by([path]).unresolved == (
        f"{path}:3: sys.path.append(sys.argv[1])",
        f"{path}:4: importlib.import_module(name)",
        f"{path}:5: sys.path += more",
    )
    path = tool(box, "#!/usr/bin/python3\nimport (\n")
    assert loaded_by([path]).unresolved == (f"{path}:2: it cannot be parsed",)


@pytest.mark.parametrize("interpreter", ["node", "bun", "-S deno run"])
def test_a_javascript_file_loads_what_it_names_relative_to_itself(box, interpreter):
    for name in ("one.js", "lib/two.mjs", "lib/index.js", "three.json", "four.ts", "five.js"):
        (box / name).touch()
    (box / "one.js").write_text("export * from './lib/two.mjs'\n")
    text = f"""#!/usr/bin/env {interpreter}
import fs from "fs"
import {{ x }} from './one'   // import './unused'
import "./three.json"
const lib = require("./lib")
const four = await import(`./four`)
const five = require(path.join(__dirname, "five"))
"""
    found = loaded_by([tool(box, text)])
    assert names(box, found) == ["five.js", "four.ts", "lib/index.js", "lib/two.mjs", "one.js", "three.json"]
    assert found.unresolved == ()


def test_what_a_javascript_file_loads_from_elsewhere_is_said(box):
    (box / "node_modules" / "left-pad").mkdir(parents=True)
    path = tool(box, "#!/usr/bin/env node\nconst a = require(process.argv[2])\nrequire('left-pad')\nrequire('fs')\n")
    assert loaded_by([path]).unresolved == (
        f"{path}:2: require(process.argv[2])",
        f"{path}:3: the package {box}/node_modules/left-pad",
    )


def test_scripts_of_other_languages_are_said_and_programs_are_not_looked_into(box):
    path = tool(box, "#!/usr/bin/perl\nrequire './x.pl';\n")
    (said,) = loaded_by([path]).unresolved
    assert said == f"{path}:1: haft cannot tell what is loaded in a script of /usr/bin/perl"
    (box / "binary").write_bytes(b"\x7fELF\0\0source x\n")
    assert loaded_by([str(box / "binary")]) == loaded_by([])


def test_there_is_an_end_to_it(box):
    for n in range(400):
        (box / f"{n}.sh").touch()
    found = loaded_by([tool(box, '#!/bin/bash\nfor f in "${0%/*}"/*.sh; do . "$f"; done\n')])
    assert len(found.files) == 300 and "more than 300 files" in found.unresolved[-1]
    os.truncate(box / "0.sh", 2_000_000)
    os.mkfifo(box / "fifo.sh")
    deep = tool(box, "#!/bin/bash\n" + '. "$(' * 3000 + "\n" + f". {box}/fifo.sh\n", "deep")
    (said,) = loaded_by([tool(box, "#!/bin/bash\n" + "bash\n" * 20_000, "long")]).unresolved[-1:]
    assert "it takes too long" in said
    loaded_by([deep, tool(box, f"#!/bin/bash\n. {box}/fifo.sh\n", "other")])


def test_a_change_of_the_text_is_seen(box):
    path = tool(box, "#!/bin/bash\n. ${0%/*}/a.sh\n")
    assert names(box, loaded_by([path])) == ["a.sh"]
    tool(box, "#!/bin/bash\n. ${0%/*}/b.sh\n")
    assert names(box, loaded_by([path])) == ["b.sh"]
