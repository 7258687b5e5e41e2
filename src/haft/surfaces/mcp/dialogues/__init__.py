"""Approvals and questions through MCP clients, calls that wait for them, and tasks."""
