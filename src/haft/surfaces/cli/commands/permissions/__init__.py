"""`haft permissions`: the rules as people see, try and change them. Each command is a module of its own."""
