"""Test scenarios: calls of tools, written as data, that are run and compared with what they expect."""
