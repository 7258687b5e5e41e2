"""What a command line would do, before it does it: parsed, taken apart, each part judged."""
