"""Diffs: a change set as people and `git apply` read it."""
