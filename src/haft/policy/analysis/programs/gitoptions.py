"""Options that several commands of git share: options that select commits, and options that say how changes are shown.

If git accepts the value of an option only after `=`, the option is written here with an optional value
(`--format[=word]`). If it were written as `--format=word`, haft would read the word after `--format` as the value, but
git would read that word as an option (`git log --format --output=x`).
"""

from __future__ import annotations

from typing import Final

DIFF_OPTIONS: Final = """
    -p -u --patch -s --no-patch -U[=word] --unified[=word] --raw --patch-with-raw --indent-heuristic
    --no-indent-heuristic --minimal --patience --histogram --anchored[=word] --diff-algorithm[=word] --stat[=word]
    --stat-width[=word] --stat-name-width[=word] --stat-count[=word] --stat-graph-width[=word] --compact-summary
    --numstat --shortstat -X[=word] --dirstat[=word] --dirstat-by-file[=word] --cumulative --summary
    --patch-with-stat -z --name-only --name-status --submodule[=word] --color[=word] --no-color --color-moved[=word]
    --no-color-moved --color-moved-ws[=word] --no-color-moved-ws --word-diff[=word] --word-diff-regex[=word]
    --color-words[=word] --no-renames --rename-empty --no-rename-empty --check --ws-error-highlight[=word]
    --full-index --binary --abbrev[=word] --no-abbrev -B[=word] --break-rewrites[=word] -M[=word]
    --find-renames[=word] -C[=word] --find-copies[=word] --find-copies-harder -D --irreversible-delete -l[=word]
    --diff-filter[=word] -S=word -G=word --find-object[=word] --pickaxe-all --pickaxe-regex --skip-to[=word]
    --rotate-to[=word] -R --relative[=word] --no-relative -a --text --ignore-cr-at-eol --ignore-space-at-eol
    -b --ignore-space-change -w --ignore-all-space --ignore-blank-lines -I[=word] --ignore-matching-lines[=word]
    --inter-hunk-context[=word] -W --function-context --exit-code --quiet --no-ext-diff --no-textconv
    --ignore-submodules[=word] --src-prefix[=word] --dst-prefix[=word] --no-prefix --default-prefix
    --line-prefix[=word] --ita-invisible-in-index --ita-visible-in-index --output-indicator-new[=word]
    --output-indicator-old[=word] --output-indicator-context[=word]
"""

COMMIT_OPTIONS: Final = """
    -n=word --max-count[=word] --skip[=word] --since=word --after=word --until=word --before=word
    --since-as-filter[=word] --author=word --committer=word --grep=word --grep-reflog[=word] --all-match --invert-grep
    -i --regexp-ignore-case --basic-regexp -E --extended-regexp -F --fixed-strings -P --perl-regexp
    --remove-empty --merges --no-merges --min-parents[=word] --max-parents[=word] --no-min-parents --no-max-parents
    --first-parent --exclude-first-parent-only --not --all --branches[=word] --tags[=word] --remotes[=word]
    --glob[=word] --exclude[=word] --exclude-hidden[=word] --reflog --single-worktree
    --ignore-missing --stdin --cherry-mark --cherry-pick --left-only --right-only --cherry -g --walk-reflogs --merge
    --boundary --simplify-by-decoration --show-pulls --full-history --dense --sparse --simplify-merges
    --ancestry-path[=word] --date-order --author-date-order --topo-order --reverse --no-walk[=word] --do-walk
"""

LOG_OPTIONS: Final = (
    DIFF_OPTIONS
    + COMMIT_OPTIONS
    + """
    --follow --no-follow --decorate[=word] --no-decorate --decorate-refs[=word] --decorate-refs-exclude[=word]
    --clear-decorations --source --mailmap --no-mailmap --use-mailmap --no-use-mailmap --full-diff --log-size -L=word
    --pretty[=word] --format[=word] --abbrev-commit --no-abbrev-commit --oneline --encoding[=word]
    --expand-tabs[=word] --no-expand-tabs --notes[=word] --no-notes --show-notes[=word] --no-standard-notes
    --standard-notes --show-notes-by-default --relative-date --date[=word] --parents --children --left-right --graph
    --no-graph --show-linear-break[=word] -c --cc -r -t --diff-merges[=word] --no-diff-merges
    --combined-all-paths -q --root --no-pager
"""
)

HARMFUL_OPTIONS: Final = {
    "--output": "writes a file",
    "--ext-diff": "runs the programs that the repository names",
    "--textconv": "runs the programs that the repository names",
    "--show-signature": "runs the program that checks signatures",
    "--no-index": "reads files outside of the repository",
    "-O": "reads another file",
    "--remerge-diff": "repeats merges and writes objects",
    "-m": "shows merges as the repository configures, which may write objects",
    "--alternate-refs": "runs the programs that the repository names",
}
