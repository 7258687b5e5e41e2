"""`haft run`: a whole program in one confined run. `command` parses the words, `grant` shows what the program may
reach, `review` lets the person apply or drop the changes."""
