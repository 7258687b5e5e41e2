"""The text of a line as bash reads it: parsed, and checked against the rules for words, quotes and here-documents."""
