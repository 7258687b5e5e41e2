"""Skills made anew, and taken in from elsewhere."""
