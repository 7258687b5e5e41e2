"""One simple command judged: its program, its options, what it hands on, the dangers in it."""
