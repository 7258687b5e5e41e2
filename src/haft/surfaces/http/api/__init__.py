"""The API: one table of endpoints (`table`), from which the routes, the checks and the OpenAPI document are made.

`operations/` does the work, `types/` describes what goes in and out, `problems` turns errors into answers.
"""
