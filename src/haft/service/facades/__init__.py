"""What a host offers, one facade for each thing: runs, changes, approvals, tools, the audit log.

Facades delegate to the host. Methods that read a disk are asynchronous and leave the event loop to others;
`ToolService` has the plain forms of some beside them.
"""
