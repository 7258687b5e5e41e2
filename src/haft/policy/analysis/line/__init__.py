"""Splits a line into parts: each simple command, redirection and unknown syntax is a part."""
