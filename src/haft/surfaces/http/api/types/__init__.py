"""What goes in and out of the API: a pydantic model for the parameters of each operation, and the shapes of the
answers, which are those of the command line's `--json`."""
