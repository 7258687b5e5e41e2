"""Text that all surfaces show to people: requests and sandboxes in words, with every invisible character escaped."""
