"""Looks at the workspace on disk: finds out where paths lead, which files match a pattern, and what a directory
contains."""
