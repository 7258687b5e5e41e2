"""The way through a line: each simple command, redirection and dark spot a part."""
