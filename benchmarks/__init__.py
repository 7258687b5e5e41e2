"""What haft costs, as ratios to peers and to the bare minimum, measured in the same run. `make bench` prints the
table."""
