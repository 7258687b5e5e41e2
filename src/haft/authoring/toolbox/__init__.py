"""Toolbox executables that are written: any command line as one for each of its commands, and any tool as one."""
