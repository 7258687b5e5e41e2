"""What the endpoints do, one module for each kind of thing. Each operation gets the `Ask` and its parameters."""
