"""Agent Studio tool templates: a folder with `tool.py` and `requirements.txt` is one tool."""
