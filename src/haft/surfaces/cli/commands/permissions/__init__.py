"""`haft permissions`: list, test and change the rules. Each command has a module of its own; `change` has two."""
