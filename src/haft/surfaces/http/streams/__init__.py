"""The event streams: one hub reads what happens, serialises each event once, and hands it to all subscribers."""
