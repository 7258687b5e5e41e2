"""What is printed: facts, talk, progress, and a running call as it is seen."""
