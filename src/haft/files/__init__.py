"""Files, safely: paths that cannot leave their root, writes that are whole or not at all, locks, digests.

`Root` fills the `Workspace` port. Above it are the rooms that keep or change files; below it only the contracts.
"""

from haft.files.beneath import Root
from haft.files.digest import digest_of, digest_of_file
from haft.files.locks import HeldLock, locked, noted, try_take
from haft.files.showing import shown

__all__ = ["HeldLock", "Root", "digest_of", "digest_of_file", "locked", "noted", "shown", "try_take"]
