"""Command lines as tools: a program's subcommands, described once, called with arguments instead of words."""
