"""The facades of a host, one for each kind of thing: runs, changes, approvals, tools, the audit log.

Facades delegate to the host. A method that reads much has two forms: an asynchronous one, which does not block the
event loop, and a blocking one, which `ToolService` offers.
"""
