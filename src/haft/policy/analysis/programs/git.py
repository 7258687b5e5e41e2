"""The subcommands of git that only read. The settings of a repository may make git run other programs; this table
cannot prevent that, but the sandbox confines these programs.

If a command has subcommands (`git stash list`), only listed options may stand before the subcommand, and no `--`: `git
stash -- list` would stash a file with the name `list`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from haft.policy.analysis.program import Operands, Program
from haft.policy.analysis.programs.gitchecks import (
    always_refuse,
    finds_files_from_here,
    known_files,
    only_lists,
    reads_settings,
    searches_inside,
    shows_reflog,
    shows_remote,
    shows_symbolic,
    words_stay_inside,
)
from haft.policy.analysis.programs.gitoptions import COMMIT_OPTIONS, DIFF_OPTIONS, HARMFUL_OPTIONS, LOG_OPTIONS
from haft.policy.analysis.programs.shared_checks import Check, all_of, only_among, word_set

_RUNS_SETTINGS: Final = "may run programs that its options name"


def _words(
    options: str,
    *,
    check: Check = words_stay_inside,
    number_option: bool = False,
    options_first: bool = False,
    harmful: Mapping[str, str] | None = None,
    operands: Operands = "words",
) -> Program:
    listed = [each.partition("=")[0].removesuffix("[") for each in options.split()]
    others = {name: why for name, why in {**HARMFUL_OPTIONS, **(harmful or {})}.items() if name not in listed}
    return Program(
        options=options,
        operands=operands,
        harmful=others,
        check=all_of(finds_files_from_here, check),
        number_option=number_option,
        options_first=options_first,
    )


_LISTING: Final = """
    --contains[=word] --no-contains[=word] --merged[=word] --no-merged[=word] --points-at[=word] --sort=word
    --format=word --color[=word] --no-color --column[=word] --no-column -i --ignore-case
"""
_LISTS: Final = ("-l", "--list", "--contains", "--no-contains", "--merged", "--no-merged", "--points-at")
_HISTORY: Final = _words(LOG_OPTIONS, number_option=True)
_TREES: Final = _words(
    DIFF_OPTIONS + "-r -t --root -c --cc -m --cached --no-commit-id --stdin -q --pretty[=word] --format[=word]"
)

_SUBCOMMANDS: Final[dict[str, Program]] = {
    "status": _words(
        """-v --verbose -s --short -b --branch --show-stash --ahead-behind --no-ahead-behind --porcelain[=word] --long
        -z --null -u[=word] --untracked-files[=word] --ignored[=word] --ignore-submodules[=word] --column[=word]
        --no-column --no-renames --renames -M[=word] --find-renames[=word]"""
    ),
    "log": _HISTORY,
    "show": _HISTORY,
    "whatchanged": _HISTORY,
    "reflog": _words(LOG_OPTIONS, number_option=True, check=all_of(shows_reflog, words_stay_inside)),
    "diff": _words(
        DIFF_OPTIONS + "--cached --staged --merge-base -0 -1 -2 -3 --base --ours --theirs -c --cc -q",
        check=known_files(1),
        operands="paths",
    ),
    "diff-tree": _TREES,
    "diff-index": _TREES,
    "diff-files": _TREES,
    "range-diff": _words(
        DIFF_OPTIONS + "--creation-factor=word --no-dual-color --left-only --right-only --no-notes --notes[=word]"
    ),
    "rev-list": _words(
        COMMIT_OPTIONS
        + """--count --objects --objects-edge --disk-usage[=word] --left-right --use-bitmap-index --header --timestamp
        --quiet --parents --children --pretty[=word] --format[=word] --oneline --abbrev[=word] --no-abbrev
        --abbrev-commit --no-commit-header --commit-header --graph --date[=word] --bisect --bisect-vars --bisect-all
        --filter[=word] --no-object-names --object-names --in-commit-order --unpacked --missing[=word]""",
        number_option=True,
    ),
    "shortlog": _words(
        COMMIT_OPTIONS.replace("-n=word", "")
        + "-n --numbered -s --summary -e --email -w[=word] -c --group=word --format[=word] --date[=word]",
    ),
    "cherry": _words("-v --verbose --abbrev[=word]"),
    "blame": _words(
        """--incremental -b --root --show-stats --progress --no-progress --score-debug -f --show-name -n --show-number
        -p --porcelain --line-porcelain -c -t -l -s -e --show-email -w --ignore-rev=word --ignore-revs-file=path
        --color-lines --color-by-age --minimal -C[=word] -M[=word] -L=word --abbrev[=word] --date[=word]
        --since[=word] --reverse --first-parent""",
        check=known_files(0),
        operands="paths",
    ),
    "annotate": _words(
        "-b --root -f --show-name -l -t -w -M[=word] -C[=word] -L=word", check=known_files(0), operands="paths"
    ),
    "branch": _words(
        _LISTING + "-v --verbose -q --quiet -r --remotes -a --all -l --list --show-current --abbrev[=word] --no-abbrev",
        check=all_of(only_lists("branch", *_LISTS), words_stay_inside),
    ),
    "tag": _words(
        _LISTING + "-l --list -n[=word] --omit-empty",
        check=all_of(only_lists("tag", *_LISTS), words_stay_inside),
    ),
    "remote": Program(
        options="-v --verbose",
        single_dash=True,
        subcommands={
            "get-url": _words("--push --all"),
            "show": _words("-n", check=all_of(shows_remote, words_stay_inside)),
        },
        check=finds_files_from_here,
    ),
    "stash": Program(
        single_dash=True,
        subcommands={
            "list": _HISTORY,
            "show": _words(DIFF_OPTIONS + "--include-untracked --only-untracked --no-include-untracked"),
        },
        check=always_refuse("`git stash` removes changes from the workspace"),
    ),
    "worktree": Program(
        single_dash=True,
        subcommands={"list": _words("--porcelain -z -v --verbose --expire=word")},
        check=always_refuse("haft knows only `git worktree list` to be read-only"),
    ),
    "notes": Program(
        single_dash=True, subcommands={"list": _words(""), "show": _words("")}, check=finds_files_from_here
    ),
    "submodule": Program(
        options="-q --quiet",
        single_dash=True,
        subcommands={"status": _words("--cached --recursive")},
        check=finds_files_from_here,
    ),
    "bisect": Program(
        single_dash=True, subcommands={"log": _words("")}, check=always_refuse("`git bisect` checks out commits")
    ),
    "rev-parse": _words(
        """--short[=word] --abbrev-ref[=word] --verify -q --quiet --symbolic --symbolic-full-name --show-toplevel
        --git-dir --absolute-git-dir --git-common-dir --git-path[=word] --is-inside-work-tree --is-inside-git-dir
        --is-bare-repository --is-shallow-repository --show-cdup --show-prefix --show-superproject-working-tree
        --show-object-format[=word] --show-ref-format --all --branches[=word] --tags[=word] --remotes[=word]
        --glob[=word] --exclude[=word] --disambiguate[=word] --since[=word] --until[=word] --after[=word]
        --before[=word] --local-env-vars --path-format[=word] --default[=word] --revs-only --no-revs --flags
        --no-flags --not --sq --shared-index-path"""
    ),
    "ls-files": _words(
        """-z -t -v -f -c --cached -d --deleted -m --modified -o --others -i --ignored -s --stage -k --killed
        --directory --no-empty-directory --empty-directory -u --unmerged --resolve-undo -x=word --exclude=word
        -X=path --exclude-from=path --exclude-standard --full-name --recurse-submodules --error-unmatch
        --with-tree=word --abbrev[=word] --debug --deduplicate --sparse --format=word"""
    ),
    "ls-tree": _words(
        """-d -r -t -l --long -z --name-only --name-status --object-only --full-name --full-tree --abbrev[=word]
        --format=word"""
    ),
    "cat-file": _words(
        """-p -t -s -e --batch[=word] --batch-check[=word] --batch-all-objects --buffer --unordered --follow-symlinks
        --allow-unknown-type -z""",
        harmful={"--filters": "runs the programs that the repository names"},
    ),
    "describe": _words(
        """--tags --all --long --always --abbrev[=word] --match[=word] --exclude[=word]
        --candidates[=word] --exact-match --first-parent --contains --debug""",
        harmful=dict.fromkeys(("--dirty", "--broken"), "rewrites the index"),
    ),
    "name-rev": _words("--tags --name-only --refs[=word] --exclude[=word] --all --undefined --no-undefined --always"),
    "merge-base": _words("-a --all --octopus --independent --is-ancestor --fork-point"),
    "for-each-ref": _words(
        _LISTING + "-s --shell -p --perl --python --tcl --count[=word] --omit-empty --exclude=word --include-root-refs"
    ),
    "show-ref": _words(
        """--head --heads --branches --tags -d --dereference -s --hash[=word] --verify -q --quiet --abbrev[=word]
        --exists"""
    ),
    "show-branch": _words(
        """-a --all -r --remotes --current --topo-order --date-order --sparse --more[=word] --list --merge-base
        --no-name --sha1-name"""
    ),
    "symbolic-ref": _words("-q --quiet --short --no-recurse", check=all_of(shows_symbolic, words_stay_inside)),
    "grep": _words(
        """--cached --untracked --exclude-standard --no-exclude-standard --recurse-submodules -v --invert-match
        -i --ignore-case -w --word-regexp -a --text -I --no-textconv -r --recursive --no-recursive --max-depth=word
        -E --extended-regexp -G --basic-regexp -F --fixed-strings -P --perl-regexp -n --line-number --column -h -H
        --full-name -l --files-with-matches --name-only -L --files-without-match -z --null -o --only-matching
        -c --count --color[=word] --no-color --break --heading -C=word --context=word -B=word --before-context=word
        -A=word --after-context=word --threads=word -p --show-function -W --function-context -f=path -e=word --and --or
        --not -q --quiet --all-match -m=word --max-count=word""",
        check=searches_inside,
        number_option=True,
        harmful={
            "-O": "runs a pager",
            "--open-files-in-pager": "runs a pager",
            "--ext-grep": "runs another program",
        },
    ),
    "config": _words(
        """--get --get-all --get-regexp --get-urlmatch -l --list --global --system --local --worktree -f=path
        --file=path --blob=word --type=word --bool --int --bool-or-int --bool-or-str --path --expiry-date -z --null
        --name-only --show-origin --show-scope --show-names --no-includes --default=word --all --regexp
        --value=word --fixed-value""",
        check=reads_settings,
        options_first=True,
        harmful={
            "-e": "opens an editor",
            "--edit": "opens an editor",
            "--includes": "reads the files that the settings name",
            **dict.fromkeys(
                ("--unset", "--unset-all", "--add", "--replace-all", "--rename-section", "--remove-section"),
                "writes settings",
            ),
        },
    ),
    "count-objects": _words("-v --verbose -H --human-readable"),
    "check-ignore": _words("-q --quiet -v --verbose --stdin -z -n --non-matching --no-index"),
    "check-attr": _words("-a --all --cached --stdin -z"),
    "hash-object": Program(
        options="-t=word --stdin --no-filters", harmful={"-w": "writes an object"}, check=finds_files_from_here
    ),
    "var": _words(
        "",
        check=only_among(word_set("GIT_EDITOR GIT_PAGER GIT_DEFAULT_BRANCH"), "may ask the network who you are"),
        harmful={"-l": "may ask the network who you are"},
    ),
    "fsck": _words(
        """--full --strict --no-dangling --dangling --unreachable --root --tags --cache --no-reflogs -v --verbose
        --connectivity-only --progress --no-progress --name-objects""",
        harmful={"--lost-found": "writes files"},
    ),
    "version": _words("--build-options"),
}

GIT: Final[dict[str, Program]] = {
    "git": Program(
        options="--no-pager -P --no-optional-locks --literal-pathspecs --no-replace-objects -C=path -v --version",
        operands="words",
        starts_others=True,
        harmful={
            **dict.fromkeys(("-c", "--config-env", "--exec-path"), _RUNS_SETTINGS),
            **dict.fromkeys(("--git-dir", "--work-tree"), "may use the settings of another repository"),
            **dict.fromkeys(("-p", "--paginate"), "runs a pager"),
            **dict.fromkeys(("-h", "--help"), "runs a program to show the manual"),
        },
        subcommands=_SUBCOMMANDS,
    ),
}
