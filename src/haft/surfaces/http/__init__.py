"""The HTTP surface: the API, the event streams and the console of `haft serve http`, on one port.

`app` puts the routes together, `guard` stands before all of them, and `server` is what they share. `api/` has one table
of endpoints, from which routes, checks and the OpenAPI document are made. The console calls the same operations.
"""
