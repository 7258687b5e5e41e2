"""Remote MCP servers: over HTTP and SSE, with checked addresses, and logins with OAuth."""
