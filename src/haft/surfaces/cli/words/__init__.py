"""Parsing of the command line: options, parameters, times, threads; and tool definitions in other forms."""
