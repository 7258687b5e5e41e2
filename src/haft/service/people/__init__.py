"""People and agents that reach haft over HTTP: what each role may do, who somebody is, and their tokens.

The HTTP surfaces use this package. It knows nothing about HTTP. Which calls run is decided elsewhere, by the rules: a
role only says what somebody may ask for.
"""
