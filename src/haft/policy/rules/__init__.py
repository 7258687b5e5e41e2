"""Rules, in which people write down which calls may run."""
