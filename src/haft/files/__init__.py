"""Files, safely: paths that cannot leave their root, writes that are whole or not at all, locks, digests.

`Root` fills the `Workspace` port. Above it are the packages that keep or change files; below it only the contracts.
"""

from typing import TYPE_CHECKING

from haft.lazy import face

if TYPE_CHECKING:
    from haft.files.activated import activated_in, deciding_files, programs_of, state_of
    from haft.files.beneath import Root
    from haft.files.caches import CACHES
    from haft.files.digest import digest_of, digest_of_file
    from haft.files.gitconfig import Malformed, Setting, first_line, known_to_git, parsed, plain_bytes, settings
    from haft.files.gitplaces import of_everyone, places_of
    from haft.files.installed import installed_by_name
    from haft.files.links import leads_inside, lies_inside, steps_of
    from haft.files.locks import HeldLock, holder_of, locked, noted, try_take
    from haft.files.machine_secrets import SECRETS, secrets_of_root
    from haft.files.packages import NEVER, SHARED, holds_a_home, interpreter_of, package_of
    from haft.files.protected import AREA, ENDINGS, NAMES, REASONS, elsewhere, folded
    from haft.files.showing import shown
    from haft.files.syncing import sync_filesystem
    from haft.files.tool_source import texts_of
    from haft.files.trees import measured, remove
    from haft.files.watching import Watches
    from haft.files.withheld import grant_words, missed_by, note, variables_of, withheld_from

__getattr__ = face(
    __name__,
    {
        "activated": "activated_in deciding_files programs_of state_of",
        "beneath": "Root",
        "caches": "CACHES",
        "digest": "digest_of digest_of_file",
        "gitconfig": "Malformed Setting first_line known_to_git parsed plain_bytes settings",
        "gitplaces": "of_everyone places_of",
        "installed": "installed_by_name",
        "links": "leads_inside lies_inside steps_of",
        "locks": "HeldLock holder_of locked noted try_take",
        "machine_secrets": "SECRETS secrets_of_root",
        "packages": "NEVER SHARED holds_a_home interpreter_of package_of",
        "protected": "AREA ENDINGS NAMES REASONS elsewhere folded",
        "showing": "shown",
        "syncing": "sync_filesystem",
        "tool_source": "texts_of",
        "trees": "measured remove",
        "watching": "Watches",
        "withheld": "grant_words missed_by note variables_of withheld_from",
    },
)
