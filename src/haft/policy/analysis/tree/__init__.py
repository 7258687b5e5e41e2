"""Looks at the workspace on disk: where paths lead, which files patterns match, what a directory contains."""
