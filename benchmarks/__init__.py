"""What haft costs, as ratios against peers and floors measured in the same run. `make bench` prints the table."""
