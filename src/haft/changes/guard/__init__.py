"""The guard: changes that could run code later on the host are not committed without approval."""
