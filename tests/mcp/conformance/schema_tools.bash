#!/usr/bin/env bash
# A bash plugin whose schema uses what JSON Schema 2020-12 has and no Python signature can write.
case "$1" in
schema)
    cat <<'END'
{"id": "json_schema_2020_12_tool", "version": "0.1.0", "args_mode": "json", "tools": [{"type": "function", "function": {
"name": "json_schema_2020_12_tool",
"description": "Tool with JSON Schema 2020-12 features. Use when testing.",
"parameters": {
  "$schema": "https://json-schema.org/draft/2020-12/schema",
  "type": "object",
  "$defs": {"address": {"$anchor": "addressDef", "type": "object",
    "properties": {"street": {"type": "string"}, "city": {"type": "string"}}}},
  "properties": {
    "name": {"type": "string"}, "address": {"$ref": "#/$defs/address"},
    "contactMethod": {"type": "string", "enum": ["phone", "email"]},
    "phone": {"type": "string"}, "email": {"type": "string"}},
  "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
  "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
  "then": {"required": ["phone"]},
  "else": {"required": ["email"]},
  "additionalProperties": false
}}}]}
END
    ;;
run) cat ;;
esac
