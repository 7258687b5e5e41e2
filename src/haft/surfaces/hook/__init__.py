"""The hook surface: agents call it before and after each of their own tools.

`start.py` is the program that an agent's configuration names. It needs nothing of haft, and passes the agent's words to
the resident (`resident`), one process for each state home. `formats/` has one module for each agent: it reads the
agent's words, and writes answers that this agent understands. `hook_calls` says what becomes of a call. The messages
between `start.py` and the resident are described in `service/hook_messages.py`.
"""
