"""Finds the files that a tool's own files load as code: an approval of the tool must cover them too."""

from haft.policy.approval.loaded_code.closure import LoadedFiles, loaded_by
from haft.policy.approval.loaded_code.command_line import files_run_by

__all__ = ["LoadedFiles", "files_run_by", "loaded_by"]
