"""The guard: changes that could run code later on this machine are not committed without approval."""
