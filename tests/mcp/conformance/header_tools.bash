#!/usr/bin/env bash
# A bash plugin with a parameter that MCP clients repeat in a header of their HTTP request.
case "$1" in
schema)
    cat <<'END'
{"id": "test_headers", "version": "0.1.0", "args_mode": "json", "tools": [{"type": "function", "function": {
"name": "test_headers",
"description": "Repeat its arguments. Use when testing headers.",
"parameters": {"type": "object", "properties": {
  "region": {"type": "string", "description": "Any text", "x-mcp-header": "Region"}}}}}]}
END
    ;;
run) cat ;;
esac
