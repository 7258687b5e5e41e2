"""Diffs for the page: `patch` reads a patch, `syntax` colours its code, `words` marks its changed words, and `shown`
puts that together as blocks of lines."""

from haft.surfaces.http.console.diffs.shown import ShownDiff, ShownFile, counts_of, shown_diff

__all__ = ["ShownDiff", "ShownFile", "counts_of", "shown_diff"]
