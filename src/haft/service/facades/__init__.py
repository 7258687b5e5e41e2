"""What a host offers, one facade for each thing: runs, changes, approvals, tools, the audit log.

Facades delegate to the host. What reads much has an asynchronous form that leaves the event loop to others, and a plain
one, which `ToolService` offers.
"""
