"""Printing: results, messages, progress, and the display of a running call."""
