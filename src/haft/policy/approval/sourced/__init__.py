"""The files that a tool's own files load as code: what an approval has to hold for besides the tool itself."""

from haft.policy.approval.sourced.closure import Loaded, loaded_by

__all__ = ["Loaded", "loaded_by"]
