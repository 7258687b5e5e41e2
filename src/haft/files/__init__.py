"""Safe access to files: paths that cannot leave their root, atomic writes, locks, digests.

`Root` implements the `Workspace` port. Packages that store or change files use this package, which imports only
`contracts`.
"""

from typing import TYPE_CHECKING

from haft.lazy import face

if TYPE_CHECKING:
    from haft.files.activated_environment import activated_in, deciding_files, programs_of, state_of
    from haft.files.caches import CACHES
    from haft.files.digest import digest_of, digest_of_file
    from haft.files.editable_installs import editable_sources
    from haft.files.failures import translate_errors
    from haft.files.front_matter import split_front_matter
    from haft.files.git_paths import git_paths_of, shared_git_settings
    from haft.files.gitconfig import Malformed, Setting, first_line, parsed, plain_bytes, settings, shareable_gitconfig
    from haft.files.links import leads_inside, lies_inside, steps_of
    from haft.files.locks import HeldLock, holder_of, locked, noted, try_lock
    from haft.files.machine_secrets import SECRETS, secrets_of_root
    from haft.files.openers import owner_only
    from haft.files.packages import NEVER, SHARED, holds_a_home, interpreter_of, package_of
    from haft.files.printable import shown
    from haft.files.protected import AREA, ENDINGS, NAMES, REASONS, elsewhere, folded
    from haft.files.repositories import is_repository_top
    from haft.files.root import Root
    from haft.files.sync import sync_filesystem
    from haft.files.tool_source import texts_of
    from haft.files.trees import measured, remove
    from haft.files.watches import Tripwire, Watches, most_watches
    from haft.files.withheld_variables import grant_words, missed_by, note, variables_of, withheld_from
else:
    __getattr__ = face(
        __name__,
        {
            "activated_environment": "activated_in deciding_files programs_of state_of",
            "root": "Root",
            "caches": "CACHES",
            "digest": "digest_of digest_of_file",
            "failures": "translate_errors",
            "front_matter": "split_front_matter",
            "gitconfig": "Malformed Setting first_line shareable_gitconfig parsed plain_bytes settings",
            "git_paths": "git_paths_of shared_git_settings",
            "editable_installs": "editable_sources",
            "links": "leads_inside lies_inside steps_of",
            "locks": "HeldLock holder_of locked noted try_lock",
            "machine_secrets": "SECRETS secrets_of_root",
            "openers": "owner_only",
            "packages": "NEVER SHARED holds_a_home interpreter_of package_of",
            "protected": "AREA ENDINGS NAMES REASONS elsewhere folded",
            "printable": "shown",
            "repositories": "is_repository_top",
            "sync": "sync_filesystem",
            "tool_source": "texts_of",
            "trees": "measured remove",
            "watches": "Tripwire Watches most_watches",
            "withheld_variables": "grant_words missed_by note variables_of withheld_from",
        },
    )
