"""MCP over HTTP: the app, the guard of every route, and limits for connections."""
