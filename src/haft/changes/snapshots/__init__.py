"""Snapshots: the state of every path in a tree, compared before and after a call, for machines without overlays."""
