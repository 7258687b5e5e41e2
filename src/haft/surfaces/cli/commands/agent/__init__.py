"""`haft agent`: the types of sub-agents, and sub-agents that a person starts."""
