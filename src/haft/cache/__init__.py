"""Keeps the answers of calls that only read, to give them again as long as nothing that they depend on has changed.

`stamps` says whether files are unchanged, `watched_trees` does so without reading a large tree again, and `answers`
keeps the answers on disk. Which calls may be answered, and when, is decided by the stage `recall` of the pipeline.
"""

from typing import TYPE_CHECKING

from haft.lazy import face

if TYPE_CHECKING:
    from haft.cache.answers import KeptAnswer, KeptAnswers
    from haft.cache.stamps import Files, Stamp, Unstampable, kernel_time
    from haft.cache.watched_trees import WatchedTrees
else:
    __getattr__ = face(
        __name__,
        {
            "answers": "KeptAnswer KeptAnswers",
            "stamps": "Files Stamp Unstampable kernel_time",
            "watched_trees": "WatchedTrees",
        },
    )
