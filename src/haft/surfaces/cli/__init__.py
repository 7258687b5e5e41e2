"""The command line `haft`. `main` is the entry point, `app` lists every command.

This package decides nothing: it parses the command line, calls the service, and prints. Results go to stdout, messages
to stderr. Each command imports only what it needs, so packages of lower layers are imported inside functions.
"""
