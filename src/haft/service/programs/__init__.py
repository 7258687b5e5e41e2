"""Whole programs, such as agents, each in one confined run: `haft run`. `program` says what runs, `program_tool` runs
it, and `facades.programs` starts it through the pipeline like every other call."""
