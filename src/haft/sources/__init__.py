"""Where tools come from: one folder for each format, each making `Tool`s of what it finds.

`service` introduces them to the registry and the pipeline, which know nothing of formats. Below are `schema`, `files`
and `contracts`; a source starts no process and opens no database.
"""
