"""The ports of a storage, one for each kind of stored data, and the values that they exchange.

haft ships with the implementation `storage/sqlite`. Another implementation subclasses these protocols, and must pass
the tests in `tests/storage/contract`.
"""
