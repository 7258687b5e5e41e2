"""Classifies one simple command: its program, its options, the names that it passes on, its dangers."""
