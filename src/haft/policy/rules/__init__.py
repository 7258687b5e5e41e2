"""Rules: what people have written down about which calls may run."""
