"""Snapshots: everything in a tree, looked at before and after, where no overlay can be had."""
