"""`ToolService.connect`: the tool service of another process or machine, over HTTP.

`service` has the methods of `ToolService`, `connection` makes the requests, `feed` hears what happens, and `shapes`
turns JSON into the values that the embedded service returns. The tools, the sandbox and the store are the server's.
"""
