"""Finds the files that a tool's own files load as code: an approval of the tool must cover them too."""

from haft.policy.approval.loaded_code.closure import LoadedFiles, loaded_by

__all__ = ["LoadedFiles", "loaded_by"]
