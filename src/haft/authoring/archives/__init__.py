"""Archives from other people: opened and unpacked within bounds."""
