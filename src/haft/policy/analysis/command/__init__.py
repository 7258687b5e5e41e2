"""Classifies one simple command by its program, its options, and the file names that it passes to other programs; and
finds its dangers."""
