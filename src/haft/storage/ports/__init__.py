"""The ports of a storage, which are its interfaces, one for each kind of stored data; and the types of their parameters
and results.

haft ships with the implementation `storage/sqlite`. Another implementation subclasses these protocols, and must pass
the tests in `tests/storage/contract`.
"""
