"""Opens and unpacks archives that other people made, with limits for the number and size of files."""
