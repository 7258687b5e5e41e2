"""The helper programs, which run beside the host process, so that the host never forks and no process outlives a call.

`zygote` starts each command in its own sandbox, `plain` without a sandbox. Both import only Python's own library, and
no other package imports them: `processes` starts them by name and talks to them over sockets. They stay small because
every call is a fork of one of them.
"""
