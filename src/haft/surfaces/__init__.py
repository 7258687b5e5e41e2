"""Ways in: each surface shows the same service to someone else. They are strangers to each other."""
