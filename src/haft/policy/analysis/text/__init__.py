"""What bash reads: a line parsed and held against its rules, words, quotes, braces, here-documents."""
