"""The helper programs: what runs beside the host, so that the host never forks and nothing outlives a call.

`zygote` starts each command in a sandbox of its own, `plain` without any. Both know nothing of the rest of haft: they
import Python's own library alone and are imported by nobody; `processes` starts them by name and speaks to them over
sockets. They stay small because every call is a fork of one of them.
"""
