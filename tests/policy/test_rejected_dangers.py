"""A rule that rejects a class of danger: every spelling that can be read, and every line that hides what it runs."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from haft.builtin import builtin_tools
from haft.contracts import BadConfig
from haft.policy.analysis import DANGERS, AnalysisContext, analyse
from haft.policy.enablement import Enablement
from haft.policy.policy_engine import PolicyEngine
from haft.policy.query import PolicyQuery
from haft.policy.rules.examples import check_examples
from haft.policy.rules.reading import rules_from
from haft.policy.rules.unmatchable import check_rules

sys.path.insert(0, str(Path(__file__).parent))
from corpora import lines, project

SPECS = {tool.spec.name: tool.spec for tool in builtin_tools()}
NO_TREES = {"tool": "shell", "action": "reject", "dangers": ["recursive-delete"], "message": "Leave deleting to me."}
ALLOWED = {"tool": "shell", "action": "allow"}


def rules(*tables, origin="user"):
    return rules_from(list(tables), origin=origin, source=f"{origin}.toml")


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    place = tmp_path_factory.mktemp("workspace")
    (place / "a.txt").write_text("a\n")
    (place / "d").mkdir()
    return place.resolve()


@pytest.fixture
def decided(place):
    def decided(line, *written, tool="shell", **arguments):
        every = [rule for each in written for rule in each] or rules(NO_TREES)
        engine = PolicyEngine(every, Enablement(), str(place), "/home/ann")
        return engine.explain(PolicyQuery(SPECS[tool], {"command": line, **arguments})).decision

    return decided


# Spellings, put together at random. Each really deletes the directory `d`, and nothing else.

DELETED = st.sampled_from(
    [
        "rm -r d",
        "rm -rf d",
        "rm -fR d",
        "rm --recursive d",
        "rm --recurs -f d",
        "rm -f -r -- d",
        "rm d -r",
        "\\rm -r d",
        "r''m -\"r\" d",
        "/bin/rm -r d",
        "$'rm' -r d",
        "rm -{r,f} d",
        "x=-r; rm $x d",
        "x=rm; $x -r d",
        "find d -delete",
        "find d -depth -exec rm -r {} +",
        "find d -prune -exec rm -r {} \\;",
        "echo d | xargs rm -r",
        "find d -prune | xargs rm -r",
        "find d -prune -print0 | xargs -0 -n1 rm -r",
        "echo d | xargs -I{} rm -r {}",
        'for each in d; do rm -r "$each"; done',
        'f() { rm -r "$1"; }; f d',
        "echo $(rm -r d)",
        "cat < <(rm -r d)",
        "a=($(rm -r d))",
        'echo "${x:-$(rm -r d)}"',
        "if true; then rm -r d; fi",
        "time -p rm -r d",
        "! rm -r d",
        "case d in *) rm -r d;; esac",
        "(( a[$(rm -r d; echo 0)] )) || true",
        "printf -v 'a[$(rm -r d; echo 0)]' x",
        "let 'a[$(rm -r d; echo 0)]=1'",
        "trap 'rm -r d' EXIT",
        "sh <<< 'rm -r d'",
        "bash <<'E'\nrm -r d\nE",
        "echo 'rm -r d' | sh",
        "find d -prune -exec env rm -r {} +",
        "find d -prune -exec sh -c 'rm -r \"$1\"' _ {} \\;",
        "mkdir e; mv d e; find . -name e | xargs rm -r",
        "x='rm -r d'; $x",
        "x='rm -r d'; eval \"$x\"",
        "eval 'rm -r d'",
        "x=d; rm -r $x",
        'set -- rm -r d; "$@"',
        "env -S 'rm -r d'",
        "source /dev/stdin <<< 'rm -r d'",
        "awk 'BEGIN { system(\"rm -r d\") }'",
        "tar --remove-files -cf t.tar d",
        'mapfile -t x <<< d; rm -r "${x[0]}"',
    ]
)
WRAPPERS = st.lists(
    st.sampled_from(
        ["env", "env A=1", "nice -n 1", "timeout 60", "timeout -k 5 60", "nohup", "setsid -w", "stdbuf -oL"]
    ),
    max_size=3,
)


def as_script(command, wrappers, shell):
    quoted = command.replace("'", "'\\''")
    return " ".join([*wrappers, f"{shell} -c '{quoted}'"])


COMMANDS = st.one_of(
    DELETED,
    st.builds(as_script, DELETED, WRAPPERS, st.sampled_from(["bash", "/bin/bash"])),
    WRAPPERS.map(lambda wrappers: " ".join([*wrappers, "rm -r d"])),
)
LINES = st.one_of(
    COMMANDS,
    st.builds("ls\n{}".format, COMMANDS),
    st.builds("true && {{ {}\n}}".format, COMMANDS),
    st.builds("( {}\n) > /dev/null".format, COMMANDS),
    st.builds("while true; do {}\nbreak; done".format, COMMANDS),
    st.builds('x="$({}\n)"'.format, COMMANDS),
)


@settings(max_examples=150)
@given(line=LINES)
def test_no_spelling_of_a_recursive_delete_gets_past_a_rule_that_rejects_the_class(place, line):
    named = {**ALLOWED, "dangers": ["recursive-delete", "fetch-and-run", "not-understood"]}
    for allowing in ((), rules(named, origin="workspace"), rules(named, origin="caller")):
        engine = PolicyEngine([*allowing, *rules(NO_TREES)], Enablement(), str(place), "/home/ann")
        decision = engine.explain(PolicyQuery(SPECS["shell"], {"command": line})).decision
        assert (decision.action, decision.message) == ("reject", "Leave deleting to me."), (line, decision)


@settings(max_examples=25)
@given(line=LINES)
def test_every_such_spelling_is_one(tmp_path_factory, line):
    """The control: bash deletes the directory."""
    place = tmp_path_factory.mktemp("deleted")
    (place / "d" / "deep").mkdir(parents=True)
    (place / "d" / "deep" / "file").write_text("x\n")
    env = {"PATH": os.environ["PATH"]}
    said = subprocess.run(["bash", "-c", line], cwd=place, env=env, stdin=subprocess.DEVNULL, capture_output=True)
    assert not (place / "d").exists(), (line, said)


HIDING = [
    "$x",
    '"$x" -r d',
    "$(cat a.txt)",
    "r$x -r d",
    'eval "$x"',
    "eval ls",
    'bash -c "$x"',
    "cat a.txt | sh",
    "bash <(cat a.txt)",
    ". <(cat a.txt)",
    'rm "$x" d',
    "rm $(cat a.txt)",
    "find . $x",
    "rsync -a $x a b",
    "cat a.txt | xargs env",
    "xargs -I{} {} d < a.txt",
    "ls | xargs rm",
    "parallel < a.txt",
    "watch 'rm -r d'",
    "su -c 'rm -r d'",
    "ssh host 'rm -r d'",
    "flock a.txt -c 'rm -r d'",
    "git -c core.pager='rm -r d' log",
    "git -c alias.x='!rm -r d' x",
    "script -qc 'rm -r d' out",
    "compgen -C 'rm -r d'",
    "PS4='$(rm -r d)' bash -xc ls",
    "PS4='$(rm -r d)'; set -x; ls",
    "alias l='rm -r'",
    "hash -p /bin/rm l; l -r d",
    "[ -v 'a[$(rm -r d)]' ]",
    "(( x ))",
    "echo ${x@P}",
    'python -c "$x"',
    "python -c 'import os; os.system(\"rm -r d\")'",
    "python <<'E'\nimport shutil; shutil.rmtree('d')\nE",
    "sed '1e rm -r d' a.txt",
    "docker exec c rm -rf /d",
    "sudo -iu root rm -r d",
    "coproc rm d",
    "echo 'unfinished",
    "LC_ALL=zh_CN.GBK echo x",
    "echo \u202eabc",
]


READ = [
    # Scripts in words that put their commands together.
    "bash -c '$x'",
    "bash -c 'rm $x'",
    "bash -c '\"$1\"' _ f",
    "bash -c 'rm \"$@\"' _ -r x",
    "bash -c '$0 -r x' rm",
    "bash -ec '$x'",
    "bash -o pipefail -c '$x'",
    "sudo sh -c '$x'",
    "timeout 5 bash -c '$x'",
    "env bash -c 'rm $x'",
    "find x -exec sh -c 'rm \"$@\"' _ -r {} +",
    "echo f | bash -c 'read l; $l'",
    "xargs sh -c 'rm \"$@\"' _ < f",
    "cat f | bash -c sh",
    "cat f | bash -c 'bash'",
    "bash -c 'sh' < f",
    "bash -c -- 'rm $x'",
    "bash +x -c '$x'",
    "bash -xc 'rm \"$1\"' _ -r",
    "bash --norc -c '$x'",
    "bash --rcfile f -c '$x'",
    "bash -c 'f() { \"$@\"; }; f rm -r x'",
    "zsh -c '$x'",
    "busybox sh -c '$x'",
    "busybox sh -c 'rm $x'",
    "nohup bash -c '$x' &",
    "find . -exec bash -c '$0' {} \\;",
    "xargs -I{} sh -c '{}' < f",
    "xargs -I{} bash -c 'rm {}' < f",
    "bash -c 'bash -c '\"'\"'$x'\"'\"",
    "su -c '$x'",
    "su - me -c '$x'",
    "su --command='$x'",
    "bash -O extglob -c '$x'",
    'bash -c "rm -r x" &',
    "ls | parallel 'rm {}'",
    "ls | parallel rm",
    # Shells into which something leads through what stands around them.
    "echo cmd | ( bash )",
    "echo cmd | { sh; }",
    "cat f | { read l; sh; }",
    "cat f | if true; then sh; fi",
    "cat f | while true; do sh; done",
    "cat f | for x in a; do sh; done",
    "cat f | case x in x) sh;; esac",
    "cat f | { { sh; }; }",
    "{ sh; } < f",
    "( sh ) < f",
    "if true; then sh; fi < f",
    "exec < f; sh",
    "exec 0< f; sh",
    "exec <<< 'rm -r x'; sh",
    "f() { sh; }; cat f | f",
    "f() { sh; } < f; f",
    "cat f > >(sh)",
    "cat f | tee >(sh)",
    "cat f 2> >(sh)",
    "cat f | time sh",
    "cat f | ! sh",
    "{ bash; } <<< 'rm -r x'",
    "( bash ) <<'E'\nrm -r x\nE",
    "cat f | source /dev/stdin",
    "cat f | { . /dev/stdin; }",
    "exec 3< f; bash <&3",
    "cat f | (cd d && sh)",
    "cat f | { true; sh; }",
    "cat f | echo $(sh)",
    "while read l; do $l; done < f",
    "cat f | { while read l; do sh; done; }",
    "{ { sh; } ; } <<< x",
    "cat f | sudo -s",
    "cat f | { sudo -s; }",
    "until false; do sh; done < f",
    "select x in a; do sh; done < f",
    "cat f | (sudo bash)",
    "cat f | (bash -s)",
    "cat f | (bash -)",
    "cat f | ( env bash )",
    "cat f | ( python3 )",
    "cat f | (timeout 5 sh)",
    "coproc sh",
    "cat f | { bash /dev/stdin; }",
    "bash /dev/fd/3 3< f",
    "exec 3< f; . /dev/fd/3",
    "function f { sh; }; f < g",
    "f() ( sh ); f < g",
    "cat f >&3 3> >(sh)",
    "f() { exec < g; }; f; sh",
    "{ exec < g; }; sh",
    "exec sh < f",
    "if sh; then :; fi < f",
    "cat f | { ls && sh; }",
    "cat f | { ls || sh; }",
    "cat f | { ls | cat; sh; }",
    "cat f | tee >(bash -s) > /dev/null",
    "! sh < f",
    "time sh < f",
    "sh 0< f",
    "sh <&3",
    # Commands of the shell that evaluate names and values.
    "declare 'a[$(rm -r x)]=1'",
    "typeset 'a[$(rm -r x)]=1'",
    "export 'a[$(rm -r x)]=1'",
    "readonly 'a[$(rm -r x)]=1'",
    "local 'a[$(rm -r x)]=1'",
    "unset 'a[$(rm -r x)]'",
    "declare -i 'a=b[$(rm -r x)]'",
    "declare -i a='b[$(rm -r x)]'",
    "declare -n r='a[$(rm -r x)]'; echo $r",
    'export "q[$x]=1"',
    'unset "$x"',
    'declare "$x"',
    "declare $x",
    "declare -i a=$x",
    "declare -i a; a='b[$(rm -r x)]'",
    "export PS4='$(rm -r x)'; bash -xc ls",
    "export BASH_ENV=f",
    "export PROMPT_COMMAND='rm -r x'",
    "unset $x",
    'f() { local "$x"; }',
    "export GIT_PAGER='rm -r x'; git log",
    "builtin declare 'a[$(rm -r x)]=1'",
    'command export "q[$x]=1"',
    'builtin unset "a[$x]"',
    "\\declare 'a[$(rm -r x)]=1'",
    "read 'a[$(rm -r x)]' <<< 1",
    'read "a[$x]" <<< 1',
    'read "$x" <<< 1',
    'printf -v "$x" 1',
    'printf -v "a[$x]" 1',
    'test -v "$x"',
    '[ -v "$x" ]',
    "[[ -v $x ]]",
    "[[ $x -eq 1 ]]",
    "[[ a -eq $x ]]",
    "i='b[$(rm -r x)]'; unset 'a[i]'",
    "x='a[$(rm -r x)]'; echo $((x))",
    "mapfile -C 'rm -r x' -c 1 a < f",
    'mapfile -t "$x" < f',
    "declare -ai a=b[$x]",
    "declare -in a=$x",
    "local -n r=$1; echo $r",
    "typeset -i a='b[`rm -r x`]'",
    "a[$x]=1",
    "a[$(rm -r x)]=1",
    "a=([$x]=1)",
    "echo ${a[$x]}",
    "echo ${!x}",
    'wait -p "$x"',
    'getopts a "$x"',
    'export PAGER="$x"; git log',
    "echo ${x:$y}",
    'declare "a=$x" "$y"',
    'readonly "$x"',
    "exec {x}< f",
    "declare -a 'a=($(rm -r x))'",
    "declare -A 'a=([x]=$(rm -r x))'",
    "declare a='($(rm -r x))'",
    "readonly -a 'a=($(rm -r x))'",
    "local -a 'a=($(rm -r x))'",
    "export -a 'a=($(rm -r x))'",
    "declare -a a; declare 'a=($(rm -r x))'",
    'declare -a "a=($x)"',
    # Options, shortened and run together.
    "env -iS 'rm -r x'",
    "env -vS 'rm -r x'",
    'env -S "A=b rm" -r x',
    "env -S'rm -r x'",
    "env --split='rm -r x'",
    "env -i -S 'A=b rm -r x'",
    'env -S "A=b $x" -r x',
    "su --command='rm -r x'",
    "su --comm='rm -r x'",
    "su -c'rm -r x'",
    "script --command='rm -r x' out",
    "tar --remove -cf t.tar d",
    "tar --remove-file -cf t.tar d",
    "tar xf a --recursive-unlink",
    "tar xf a --recursive-u",
    "zip -m t.zip d",
    "zip -rm t.zip d",
    "zip --move t.zip d",
    "git clean --forc",
    "git clean --force",
    "git -c clean.requireForce=false clean",
    "git clean -d -f",
    "env -S 'FOO=1 -i rm -r x'",
    "env -i0S 'rm -r x'",
    "env -u A -S 'rm -r x'",
    "env -uS rm -r x",
    "env A=b -S 'rm -r x'",
    "env -C d -S 'rm -r x'",
    "env --split-string 'rm -r x'",
    "git -C d clean -fd",
    "git clean --fo -d",
    "git -C d worktree remove x",
    "rm --r x",
    "rm --rec x",
    "rsync --delete-after a b",
    "rsync --remove-source-files a b",
    "rsync --remove-so a b",
    "7z a -sdel t d",
    "find . -delete",
    "tar --rem -cf t d",
    "gtar --remove-files -cf t d",
    "git clean -fdx",
    # Commands that a program is handed in a word or a variable.
    "git rebase -x 'rm -r x' main",
    "git rebase --exec 'rm -r x' main",
    "git rebase --exec='rm -r x' main",
    "git rebase -x'rm -r x' main",
    "git submodule foreach 'rm -r x'",
    "git filter-branch --tree-filter 'rm -r x' HEAD",
    "git bisect run sh -c 'rm -r x'",
    "git grep -O'rm -r x' a",
    "git difftool -x 'rm -r x'",
    "tar -I 'rm -r x' -cf t.tar d",
    "tar --to-command='rm -r x' -xf t.tar",
    "tar --use-compress-program='rm -r x' -cf t.tar d",
    "tar cf t.tar d --checkpoint=1 --checkpoint-action=exec='rm -r x'",
    "rsync -e 'rm -r x' a b:",
    "rsync --rsh='rm -r x' a b:",
    "ssh -o ProxyCommand='rm -r x' h",
    "ssh -oProxyCommand='rm -r x' h",
    "at now <<< 'rm -r x'",
    "echo 'rm -r x' | at now",
    "npx -c 'rm -r x'",
    "npm exec -c 'rm -r x'",
    "nix-shell --run 'rm -r x'",
    "make --eval='$(shell rm -r x)'",
    "make SHELL='rm -r x'",
    "expect -c 'spawn rm -r x'",
    "socat - EXEC:'rm -r x'",
    "GIT_PAGER='rm -r x' git log",
    "PAGER='rm -r x' man ls",
    "EDITOR='rm -r x' git commit",
    "GIT_SSH_COMMAND='rm -r x' git fetch",
    "GIT_EXTERNAL_DIFF='rm -r x' git diff",
    "env GIT_PAGER='rm -r x' git log",
    "git bisect run rm -r x",
    "git -c core.editor='rm -r x' commit -m y",
    "sudo git rebase -x 'rm -r x' main",
    "GIT_EDITOR='rm -r' git rebase -i",
    "git -c core.sshCommand='rm -r x' fetch",
    "git -c core.pager='rm -r x' commit -m y",
    "git config core.pager 'rm -r x'",
    "git config alias.x '!rm -r x'",
    "export GIT_PAGER='rm -r x'",
    "GIT_PAGER='rm -r x'; git log",
    "env PAGER='rm -r x' git log",
    "crontab <<< '* * * * * rm -r x'",
    "git commit -m y; git rebase --exec 'rm -fr x'",
    "tar -xf t --to-command 'rm -R x'",
    "LESSOPEN='|rm -r x' less f",
    "find . -exec git rebase -x 'rm -r x' {} +",
    "docker run x sh -c 'rm -r x'",
    "uv run bash -c 'rm -r x'",
    "poetry run sh -c '$x'",
    "systemd-run sh -c '$x'",
    "vim -c '!rm -r x'",
    'GIT_EDITOR="$x" git commit',
    "entr rm -r x",
    'npm exec -c "$x"',
    'npx -c "$x"',
    # Deletes of whole directories by other names.
    "git worktree remove x",
    "git worktree remove --force x",
    "git submodule deinit x",
    "pnpm dlx rimraf x",
    "yarn dlx rimraf x",
    "npm exec rimraf x",
    "npm exec -- rimraf x",
    "bun x rimraf x",
    "find . -name '*.o' | xargs unlink",
    'find . | while read l; do rm "$l"; done',
    'find . | while read -r l; do rm -- "$l"; done',
    "python3 -c 'from shutil import rmtree; rmtree(\"x\")'",
    "perl -e 'use File::Path; rmtree(\"x\")'",
    "node -e 'fs.rmdirSync(\"x\",{recursive:true})'",
    "node -e 'fs.promises.rm(\"x\",{recursive:true})'",
    "ruby -e 'FileUtils.remove_dir(\"x\")'",
    "ruby -e 'FileUtils.remove_entry(\"x\")'",
    'for l in $(find .); do rm "$l"; done',
    'for l in $(find . -type f); do unlink "$l"; done',
    "find . -print0 | while IFS= read -r -d '' l; do rm -- \"$l\"; done",
    'while read l; do rm -- "$l"; done < f',
    'while read l; do rm -- "$l"; done < <(find .)',
    "find . -exec unlink {} \\;",
    "fd . -x rm",
    "find . | parallel unlink",
    "npx rimraf x",
    "npx -y rimraf x",
    "bunx rimraf x",
    "pnpm exec rimraf x",
    "git rm -r x",
    "python3 -c 'import shutil as s; s.rmtree(\"x\")'",
    'mapfile -t a < <(find .); rm -- "${a[@]}"',
]


@pytest.mark.parametrize("line", READ)
def test_what_runs_inside_something_else_or_by_another_name_is_rejected_under_any_rule_that_allows(decided, line):
    assert decided(line).action == "reject"
    assert decided(line, rules({**ALLOWED, "dangers": ["fetch-and-run"]}, NO_TREES)).action == "reject"


@pytest.mark.parametrize("line", [*HIDING, "ls; " + "# padding\n" * 4_000])
def test_a_line_that_hides_what_it_runs_is_rejected_without_a_prompt(decided, line):
    assert decided(line).action == "reject"
    assert decided(line, rules({"tool": "shell", "action": "ask", "matches": {"command": "x"}})).action != "reject"


def test_variables_of_a_call_that_the_shell_takes_for_commands_are_rejected(decided):
    assert decided("ls", env={"BASH_ENV": "./x"}).action == "reject"
    assert decided("ls", env={"LC_ALL": "zh_CN.GBK"}).action == "reject"
    assert decided("ls", env={"FOO": "x"}).action == "ask"


UNKNOWN = [
    "make",
    "make $x",
    "./x.sh",
    './x.sh "$x"',
    "npm test",
    'npm run "$x"',
    "cargo build --release",
    "pytest -q",
    "bash x.sh",
    "bash x.sh $x",
    "source .venv/bin/activate && pytest",
    "npm install rimraf",
    "git commit -m 'rm -r d'",
    "docker run --rm -it x",
    "rm a.txt",
    'rm -- "$x"',
    'rm "./$x"',
    "rm *.pyc",
    "rmdir d",
    "mv a b",
    "kill $(pgrep x)",
    "python -c 'print(1)' > out",
    "cat > out <<'E'\nrm -r d\nE",
    "export X=$(date); make",
    'for each in *.c; do cc "$each"; done',
    "make ${x/a/b}",
    "bash -c 'make && ./x.sh'",
    "sh <<< make",
    "x=1 make",
    "sudo make install",
    "echo 'rm -r d' > out",
    "find . -exec touch {} +",
    "git commit -m 'rm -r x'",
    "git commit -am 'rm -r x'",
    "git commit --message='remove rm -r x'",
    "git tag -a v1 -m 'rm -r x'",
    "git notes add -m 'rm -r x'",
    "echo 'rm -rf x' | tee out",
    "grep 'rm -r' ../f",
    "bash -c 'make \"$1\"' _ x",
    "cat f | make",
    "cat f | ( make )",
    "cat f | { ./x.sh; }",
    "exec < f; make",
    "cat f | tee >(make)",
    "export PATH=$PATH:/x",
    'export PATH="$HOME/bin:$PATH"',
    'export "PATH=$PATH:/x"',
    "export A=b",
    "declare -x A=b",
    "unset A",
    'local x="$1"',
    "readonly x=1",
    "declare -a a",
    "declare -A a",
    "declare -i n=3",
    'export A="$B"; make',
    "echo x > out; ( make )",
    "git stash pop",
    "git clean -n",
    "git worktree add x",
    "git submodule update",
    "tar -xf a --recursion",
    "tar cf a.tar d",
    "zip -r t.zip d",
    "pnpm install rimraf",
    "pnpm dlx cowsay x",
    'find . | while read l; do cc "$l"; done',
    "mkdir -p x && cd x",
    'python3 -c \'import shutil; shutil.copytree("a","b")\'',
    "gh pr create --title 'x' --body 'run rm file -r'",
    "gh pr create --body 'rm -r x'",
    "{ make; } < f",
    "( npm test ) < f",
    "cat f | python x.py",
    "python x.py < f",
    "{ python x.py; } < f",
    "for f in a b; do bash x.sh; done < f",
    "tee out <<< 'rm -r x'",
    "git commit -F - <<< 'rm -r x'",
    "timeout 5 git commit -m 'rm -r x'",
    "sudo git commit -m 'rm -r x'",
    "git -C d commit -m 'rm -r x'",
    "EDITOR=true git commit",
    "GIT_EDITOR=: git rebase --continue",
    "PAGER=cat git log",
    "export EDITOR=vim",
    "export NODE_ENV=production; npm test",
    "export PATH=/x:$PATH PYTHONPATH=.",
    "export -n A",
    "local a b c",
    "declare -r X=1",
    "f() { make; }; f",
    'f() { local x=$1; make "$x"; }',
    'while read l; do make "$l"; done < f',
    "while read l; do bash x.sh; done < f",
    'cat f | while read l; do ./x.sh "$l"; done',
    "cat f | (python3 -m json.tool)",
    "cat f | { jq . > out; }",
    "for i in 1 2; do make; done",
    "exec make",
    "exec > log; make",
    'f() { rm -- "$1"; }',
    'for f in *.o; do rm "$f"; done',
    "bash -c 'cd d && make'",
    "bash -lc 'npm test'",
    "env FOO=bar make",
    "env -u A make",
    "env -i make",
    "env -C d make",
    "npm exec tsc",
    "npx tsc",
    "pnpm exec eslint .",
    "yarn build",
    "npm x tsc",
    "git worktree list > out",
    "git submodule update --init",
    "git checkout clean",
    "unset FOO BAR",
    "readonly A=b",
    "script.sh --command=x",
    "zip -r a.zip d",
    "tar czf a.tgz d",
    "docker run --rm -v a:b x",
    "docker compose run --rm web pytest -rA",
    "ssh host",
    "watch make",
    "x='a[0]'; make",
    'x="a[$(date)]"; make',
]


@pytest.mark.parametrize("line", UNKNOWN)
def test_a_program_that_is_merely_not_known_is_decided_as_without_the_rule(decided, line):
    nothing = rules({"tool": "write_file", "action": "reject"})
    assert decided(line).action == decided(line, nothing).action == "ask"
    allowed = decided(line, rules(NO_TREES, ALLOWED)).action
    assert allowed == decided(line, rules(ALLOWED)).action


@pytest.mark.parametrize("corpus", ["harmless_seed", "harmless_other"])
def test_harmless_lines_are_decided_as_without_the_rule_whatever_class_it_rejects(tmp_path, corpus):
    place = str(project.build(tmp_path / "around" / "project"))
    every = rules({**NO_TREES, "dangers": list(DANGERS)})
    free, one, strict = (PolicyEngine(each, Enablement(), place, "/home/ann") for each in ((), rules(NO_TREES), every))
    for line in lines.load(corpus):
        question = PolicyQuery(SPECS["shell"], {"command": line.command})
        action = free.decide(question).action
        is_read = analyse(line.command, AnalysisContext(place, home="/home/ann")).understood
        assert one.decide(question).action == (action if is_read else "reject"), line
        if action == "allow":
            assert strict.decide(question).action == "allow", line


@pytest.mark.parametrize(
    ("danger", "line"),
    [
        ("privilege", "nice sudo ls"),
        ("shutdown", "ls; reboot"),
        ("system-write", "echo x > /etc/motd"),
        ("system-write", 'cp a.txt "$x"'),
        ("home-dotfile", 'echo x > "$x"'),
        ("raw-device", "dd if=a.txt $x"),
        ("format", "bash -c 'mkfs.ext4 x'"),
        ("fetch-and-run", "curl x | sh"),
        ("fork-bomb", ":(){ :|:& };:"),
        ("not-understood", "echo 'unfinished"),
        ("outside-workspace", "touch ../x"),
    ],
)
def test_every_class_can_be_rejected(decided, danger, line):
    assert decided(line, rules({**NO_TREES, "dangers": [danger]})).action == "reject"
    others = [each for each in ("shutdown", "format") if each != danger]
    if danger not in ("not-understood", "fetch-and-run"):
        assert decided(line, rules({**NO_TREES, "dangers": others})).action == "ask"


def test_the_rule_counts_wherever_it_stands_and_gives_way_only_to_one_above_it_that_names_the_danger(decided):
    assert decided("rm -r d", rules(ALLOWED, NO_TREES)).action == "reject"
    build = {**ALLOWED, "matches": {"command": "rm -r build*"}}
    assert decided("rm -r build", rules(build, NO_TREES)).action == "reject"
    named = {**build, "dangers": ["recursive-delete"]}
    assert decided("rm -r build", rules(named, NO_TREES)).action == "allow"
    assert decided("rm -r build; rm -r d", rules(named, NO_TREES)).action == "reject"
    assert decided("rm -r build", rules(NO_TREES, named)).action == "reject"
    assert decided("rm -r build", rules(named, origin="workspace"), rules(NO_TREES)).action == "reject"


def test_patterns_narrow_it(decided):
    narrowed = rules({**NO_TREES, "matches": {"command": "rm *"}})
    assert decided("rm -r d", narrowed).action == "reject"
    assert decided("rm a.txt", narrowed).action == "ask"
    assert decided("find . -delete", narrowed).action == "ask"
    assert decided("echo 'rm -r d", narrowed).action == "reject"


def test_it_says_nothing_of_tools_without_commands(place):
    engine = PolicyEngine(rules({**NO_TREES, "tool": "*"}), Enablement(), str(place), "/home/ann")
    assert engine.decide(PolicyQuery(SPECS["read_file"], {"path": "a.txt"})).action == "allow"


def test_what_is_rejected_is_explained(decided):
    assert decided("rm -r d").reason.endswith("it deletes whole directories (recursive-delete)")
    assert "haft cannot tell whether it deletes whole directories" in decided("$x").reason
    assert decided("rm -r d", rules({"tool": "shell", "action": "reject", "dangers": ["recursive-delete"]})).rule == (
        "reject shell where danger is recursive-delete"
    )


def test_examples_of_such_a_rule_are_checked(place):
    def check(**examples):
        check_examples(rules({**NO_TREES, **examples}), lambda line: analyse(line, AnalysisContext(str(place))))

    check(match=["find . | xargs rm -r", "eval x"], not_match=["rm a.txt", "make", "ls"])
    with pytest.raises(BadConfig, match="does not match"):
        check(match=["rm a.txt"])
    with pytest.raises(BadConfig, match="matches"):
        check(not_match=["$x"])


def test_it_is_no_rule_that_can_never_match_nor_one_that_takes_everything():
    check_rules(rules(NO_TREES, ALLOWED))
    check_rules(rules(ALLOWED, NO_TREES))


@pytest.mark.parametrize("more", [{"action": "ask"}, {"exactly": {"command": "rm -r d"}}])
def test_where_dangers_mean_nothing_they_are_an_error(more):
    with pytest.raises(BadConfig, match="dangers"):
        rules({**NO_TREES, **more})
